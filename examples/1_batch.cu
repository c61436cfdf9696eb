// Cuts real language-model rows by top-k and top-p, on the GPU if there is one, else on the host by
// the very same algorithm. Prints where each row is cut, what stays, and its largest entries.
#include <thrust/device_vector.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cutoff/cutoff.cuh>
#include <filesystem>

#include "npy.hpp"

using namespace cutoff;

/// Cuts the rows of x [B, V], prints a line for each, and says whether all is as it must be.
template <class Rule>
bool show(char const* name, std::vector<float> const& x, std::int64_t B, Rule rule, bool gpu) {
  std::int64_t const V = std::ssize(x) / B;
  std::vector<float> y(x.size()), t(std::size_t(B), 0.0f);  // renormalised rows, pivots
  rows const in(x.data(), B, V);
  rows const out(y.data(), B, V);
  bool bad = cut(serial{}, in, rule, renorm{out}) || cut(serial{}, in, rule, pivots{t.data()});
  if (!bad && gpu) {
    std::vector<float> const host = y;
    thrust::device_vector<float> dx = x, dy(y.size()), dt(t.size());
    rows const d_in(dx.data().get(), B, V), d_out(dy.data().get(), B, V);
    bad = cut(d_in, rule, renorm{d_out}) || cut(d_in, rule, pivots{dt.data().get()});
    thrust::copy(dy.begin(), dy.end(), y.begin());
    thrust::copy(dt.begin(), dt.end(), t.begin());
    if (y != host) return std::puts("the GPU's bits are not the host's"), false;
  }
  if (bad) throw std::invalid_argument(std::string(name) + ": out of range, or no GPU to run on");
  bool right = true;
  for (std::int64_t b = 0, at = 0; b < B; ++b, at += V) {
    std::vector<std::int64_t> stay;  // the three largest first
    double mass = 0, sum = 0;
    for (std::int64_t i = at; i < at + V; ++i) {
      right &= (y[i] > 0) == (x[i] > 0 && x[i] >= t[b]);
      if (y[i] > 0) mass += x[i], sum += y[i], stay.push_back(i);
    }
    auto const three = stay.begin() + std::min<std::ptrdiff_t>(3, std::ssize(stay));
    std::partial_sort(stay.begin(), three, stay.end(), [&](auto i, auto j) { return x[i] > x[j]; });
    std::printf("%-10s %3td  %10.3e %7zu  %.4f  ", name, b, t[b], stay.size(), mass);
    for (auto i = stay.begin(); i != three; ++i) std::printf(" %6td:%.4f", *i - at, y[*i]);
    std::puts("");
    right &= stay.empty() || std::abs(sum - 1) < 1e-4;
  }
  return right;
}

int main(int argc, char** argv) try {
  auto file = std::filesystem::path(__FILE__).parent_path() / "data/lm_logits_8x151936_f16.npy";
  long k = 50;
  double p = 0.95;
  for (int i = 1; i < argc; ++i) {
    std::string const arg = argv[i];
    if (arg == "--help") return std::puts("usage: 1_batch [--k K] [--p P] [logits.npy]"), 0;
    char* end = arg == "--k" || arg == "--p" ? argv[++i] : nullptr;
    if (end && arg == "--k") k = std::strtol(argv[i], &end, 10);
    if (end && arg == "--p") p = std::strtod(argv[i], &end);
    if (arg.starts_with("-") && (!end || end == argv[i] || *end))
      throw std::invalid_argument(arg + ": no such option, or no number after it; see --help");
    if (!arg.starts_with("-")) file = arg;
  }
  npy::array const logits = npy::read(file.string());
  std::vector<float> x;
  for (std::int64_t b = 0; b < logits.rows; ++b)
    for (float q : npy::softmax(&logits.values[b * logits.columns], logits.columns)) x.push_back(q);
  if (x.empty()) throw std::invalid_argument(file.string() + ": no rows");
  int devices = 0;
  bool const gpu = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
  std::printf("%td rows of %td, on the %s\n", logits.rows, logits.columns, gpu ? "GPU" : "host");
  std::puts("rule       row       pivot    stay    mass    largest of the renormalised row");
  bool const by_k = show("top_k", x, logits.rows, top_k{k}, gpu);
  return show("top_p", x, logits.rows, top_p{p}, gpu) && by_k ? 0 : 1;
} catch (std::exception const& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 2;
}
