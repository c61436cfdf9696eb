#pragma once

#include <algorithm>
#include <cstdlib>

namespace test {

/// Whether this run is to be short: under compute-sanitizer, which makes it many times slower, set
/// CUTOFF_TEST_QUICK. The same tests with fewer repetitions and smaller rows; those that provoke an
/// error of CUDA's, or need two kernels at a time, say that they were left out.
inline bool quick() { return std::getenv("CUTOFF_TEST_QUICK") != nullptr; }

/// n repetitions, a hundredth of them (and two at least) in a short run.
inline int repeated(int n) { return quick() ? std::max(n / 100, std::min(n, 2)) : n; }

}  // namespace test
