#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace test {

/// Whether this run is to be short: under compute-sanitizer, which makes it many times slower, set
/// CUTOFF_TEST_QUICK. The same tests with fewer repetitions and smaller rows; those that provoke an
/// error of CUDA's, or need two kernels at a time, say that they were left out.
inline bool quick() { return std::getenv("CUTOFF_TEST_QUICK") != nullptr; }

/// n repetitions, a thousandth of them (and two at least) in a short run.
inline int repeated(int n) { return quick() ? std::max(n / 1000, std::min(n, 2)) : n; }

/// The length of a long row, in a short run at most 8,000: too short for a record of tiles, over which
/// a race checker takes half a second a call. contract.cu has those.
inline std::int64_t shortened(std::int64_t V) {
  return quick() ? std::min<std::int64_t>(V, 8000) : V;
}

}  // namespace test
