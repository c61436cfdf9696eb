// Cuts real language-model rows by top-k and top-p, on the GPU if there is one, else on the host by
// the very same algorithm. Prints where each row is cut, what stays, and its largest entries.
#include <thrust/device_vector.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cutoff/cutoff.cuh>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "npy.hpp"

using namespace cutoff;
using floats = std::vector<float>;

/// Cuts the rows of probs [B, V], prints a line for each, and says whether all is as it must be.
template <class Rule>
bool show(char const* name, floats const& probs, std::int64_t B, Rule rule, bool gpu) {
  auto const V = static_cast<std::int64_t>(probs.size()) / B;
  floats out(probs.size()), pivot(static_cast<std::size_t>(B));
  cudaError_t e = cut(serial{}, rows(probs.data(), B, V), rule, renorm{rows(out.data(), B, V)});
  if (!e) e = cut(serial{}, rows(probs.data(), B, V), rule, pivots{pivot.data()});
  if (!e && gpu) {
    thrust::device_vector<float> x = probs, y(out.size()), t(pivot.size());
    rows const in(x.data().get(), B, V);
    e = cut(in, rule, renorm{rows(y.data().get(), B, V)});
    if (!e) e = cut(in, rule, pivots{t.data().get()});
    floats const host = out;
    thrust::copy(y.begin(), y.end(), out.begin());
    thrust::copy(t.begin(), t.end(), pivot.begin());
    if (!e && host != out) return std::puts("the GPU's bits are not the host's"), false;
  }
  if (e) throw std::invalid_argument(std::string(name) + ": " + cudaGetErrorString(e));

  bool right = true;
  for (std::int64_t b = 0; b < B; ++b) {
    float const *x = probs.data() + b * V, *y = out.data() + b * V, t = pivot.data()[b];
    std::vector<std::int64_t> best;  // what stays, the three largest first
    double mass = 0, sum = 0;
    for (std::int64_t i = 0; i < V; ++i) {
      right &= (y[i] > 0) == (x[i] > 0 && x[i] >= t);
      if (y[i] > 0) mass += x[i], sum += y[i], best.push_back(i);
    }
    auto const three = best.begin() + std::min<std::ptrdiff_t>(3, std::ssize(best));
    std::partial_sort(best.begin(), three, best.end(), [&](auto i, auto j) { return x[i] > x[j]; });
    std::printf("%-10s %3d  %10.3e %7zu  %.4f  ", name, int(b), t, best.size(), mass);
    for (auto i = best.begin(); i != three; ++i) std::printf(" %6d:%.4f", int(*i), y[*i]);
    std::puts("");
    right &= best.empty() || std::abs(sum - 1) < 1e-4;
  }
  return right;
}

int main(int argc, char** argv) try {
  std::filesystem::path file = __FILE__;
  file.replace_filename("data/lm_logits_8x151936_f16.npy");
  long k = 50;
  double p = 0.95;
  for (int i = 1; i < argc; ++i) {
    std::string const arg = argv[i];
    if (arg == "--help") return std::puts("usage: 1_batch [--k K] [--p P] [logits.npy]"), 0;
    if (arg == "--k" || arg == "--p") {
      char* end = argv[++i];
      if (end && arg == "--k") k = std::strtol(argv[i], &end, 10);
      if (end && arg == "--p") p = std::strtod(argv[i], &end);
      if (!end || end == argv[i] || *end) throw std::invalid_argument(arg + " needs a number");
    } else {
      if (arg.starts_with("-")) throw std::invalid_argument(arg + ": no such option, see --help");
      file = arg;
    }
  }
  npy::array const logits = npy::read(file.string());
  std::size_t const V = std::size_t(logits.columns);
  floats probs;
  for (std::size_t at = 0; at < logits.values.size(); at += V)
    for (float x : npy::softmax(&logits.values[at], V)) probs.push_back(x);
  if (probs.empty()) throw std::invalid_argument(file.string() + ": no rows");
  int devices = 0;
  bool const gpu = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
  std::printf("%td rows of %zu, cut on the %s\n", logits.rows, V, gpu ? "GPU" : "host");
  std::puts("rule       row       pivot    stay    mass    largest of the renormalised row");
  bool const by_k = show("top_k", probs, logits.rows, top_k{k}, gpu);
  bool const by_p = show("top_p", probs, logits.rows, top_p{p}, gpu);
  return by_k && by_p ? 0 : 1;
} catch (std::exception const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 2;
}
