// The library's calls, built once for all device tests; and the named calls, which are the same.

#include <cutoff/cutoff.cuh>
#include <vector>

#include "backend.hpp"
#include "catch.hpp"

using cutoff::gather, cutoff::pivots, cutoff::renorm, cutoff::rows, cutoff::top_k, cutoff::top_p;

namespace test {

template <class In, class Rule, class Sink>
cudaError_t call(In in, Rule rule, Sink sink) {
  cudaError_t const e = cutoff::cut(in, rule, sink);
  check(cudaDeviceSynchronize());
  check(cudaGetLastError());  // a wrong argument is returned and leaves nothing behind
  return e;
}

/// The public call, started in a stream or with a shape of its own, and not waited for (contract.cu).
template <class In, class Rule, class Sink>
cudaError_t start(In in, Rule rule, Sink sink, cutoff::options how) {
  return cutoff::cut(in, rule, sink, how);
}

#define CALLS(T)                                                        \
  template cudaError_t call(rows<T const>, top_k, renorm<T>);           \
  template cudaError_t call(rows<T const>, top_k, pivots<T>);           \
  template cudaError_t call(rows<T const>, top_k, gather<T>);           \
  template cudaError_t call(rows<T const>, top_p, renorm<T>);           \
  template cudaError_t call(rows<T const>, top_p, pivots<T>);           \
  template cudaError_t call(cutoff::logits<T const>, top_k, pivots<T>); \
  template cudaError_t call(cutoff::logits<T const>, top_k, gather<T>)

#define STARTS(T)                                                               \
  template cudaError_t start(rows<T const>, top_k, renorm<T>, cutoff::options); \
  template cudaError_t start(rows<T const>, top_k, gather<T>, cutoff::options); \
  template cudaError_t start(rows<T const>, top_p, renorm<T>, cutoff::options)

CALLS(float);
CALLS(__half);
CALLS(__nv_bfloat16);
STARTS(float);
STARTS(__half);
STARTS(__nv_bfloat16);
#undef CALLS
#undef STARTS

}  // namespace test

using namespace test;

TEMPLATE_TEST_CASE("the named calls are cut with renorm", "[cut]", float, __half, __nv_bfloat16) {
  using T = TestType;
  constexpr std::int64_t B = 3, V = 1000;
  std::vector<T> x;
  for (auto const make : {normal1, zipf, two_values}) {
    auto const row = to<T>(make(V, 3));
    x.insert(x.end(), row.begin(), row.end());
  }
  buffer<T> const in(x), out(x.size());
  rows<T> const from(in.data(), B, V), into(out.data(), B, V);
  buffer<std::int32_t> const k({1, 50, 0});
  buffer<float> const p({0.1f, 0.9f, 1.0f});

  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  auto const written = [&](cudaError_t e) {
    CHECK(e == cudaSuccess);
    check(cudaStreamSynchronize(stream));
    return out.get();
  };
  CHECK(difference(written(cutoff::top_k_renorm(from, into, 50, stream)), renormed(x, B, top_k{50}),
                   V) == "");
  CHECK(difference(written(cutoff::top_p_renorm(from, into, 0.9f, stream)),
                   renormed(x, B, top_p{0.9f}), V) == "");
  CHECK(difference(written(cutoff::top_k_renorm(from, into, k.data(), stream)),
                   renormed(x, B, top_k{k.data()}), V) == "");
  CHECK(difference(written(cutoff::top_p_renorm(from, into, {p.data(), B}, stream)),
                   renormed(x, B, top_p{p.data()}), V) == "");
  check(cudaStreamDestroy(stream));
  CHECK(cutoff::top_k_renorm(from, into, 0) == cudaErrorInvalidValue);
  CHECK(cutoff::top_p_renorm(from, into, NaN) == cudaErrorInvalidValue);
  CHECK(cutoff::top_k_renorm(rows<T const>(nullptr, 0, V), rows<T>(nullptr, 0, V), 50) ==
        cudaSuccess);
  CHECK(cutoff::top_p_renorm(rows<T const>(nullptr, 0, V), rows<T>(nullptr, 0, V), 0.9) ==
        cudaSuccess);
}
