#pragma once
// The library: cut rows of scores at the k-th largest value (top-k), or where the probability mass
// reaches p (top-p), in one kernel launch. Reading order: cut.hpp (a row), rule.hpp and sink.hpp
// (what it is made of), pivot.hpp (the search), group.cuh (who works).

#include <cuda_runtime.h>

#include "cut.hpp"
#include "group.cuh"
#include "shape.hpp"

namespace cutoff {
inline namespace v0 {

/// Everything a kernel is told. W holds the masses of its rows.
template <class W, element T, domain D, class Rule, class Sink>
struct job {
  using word = W;
  batch<T, D> in;
  Rule rule;
  Sink sink;
};

/// One group a row, Rows groups a block; groups take further rows where the grid has too few.
template <class G, std::uint32_t Rows, class Job>
[[gnu::visibility("hidden")]] __global__ void __launch_bounds__(Rows* G::threads)
    kernel(Job const job) {
  __shared__ typename G::scratch scratch[Rows];
  G const g(scratch[G::scope::index_in_block()]);
  for (std::int64_t b = G::scope::index_in_grid(); b < job.in.in.count;
       b += G::scope::groups_in_grid())
    cut_row<typename Job::word>(g, job.in[b], b, job.rule, job.sink);
}

/// How a call runs, for tuning and tests. force: a launch shape in place of the library's choice.
struct options {
  cudaStream_t stream = nullptr;
  shape const* force = nullptr;
};

/// Launches the kernel of one group. Where clusters cannot be launched, by this build or on this
/// device, a block takes the place of one: found out by asking, not by failing.
template <class G, std::uint32_t Rows, class Job>
[[gnu::visibility("hidden")]] cudaError_t launch(Job const& job, options how) {
  constexpr std::int64_t most = 0x7fffffff / G::units;  // groups in x, the grid's long dimension
  std::int64_t const groups = (job.in.in.count - 1) / Rows + 1;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {G::units, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(groups < most ? groups : most) * G::units);
  config.blockDim = dim3(G::threads * Rows);
  config.stream = how.stream;
  if constexpr (G::units > 1) {
    config.attrs = &cluster;
    config.numAttrs = 1;
    cudaFuncAttributes built;
    int fit = 0;
    bool const fits =
        !cudaFuncGetAttributes(&built, kernel<G, Rows, Job>) && built.ptxVersion >= 90 &&
        !cudaOccupancyMaxActiveClusters(&fit, kernel<G, Rows, Job>, &config) && fit > 0;
    if (!fits && how.force) return cudaErrorInvalidConfiguration;
    if (!fits) return launch<block<G::threads>, Rows>(job, how);
  }
  return cudaLaunchKernelEx(&config, kernel<G, Rows, Job>, job);
}

/// From a shape to the kernel built for it.
template <class Job>
[[gnu::visibility("hidden")]] cudaError_t launch(Job const& job, shape s, options how) {
  if constexpr (sizeof(typename Job::word) <= 8) {
    if (s == shape{128, 1, 4}) return launch<warp, 4>(job, how);
    if (s == shape{256}) return launch<block<256>, 1>(job, how);
    if (s == shape{1024, 2}) return launch<cluster<1024, 2>, 1>(job, how);
  }
  if (s == shape{1024}) return launch<block<1024>, 1>(job, how);
  if (s == shape{1024, 8}) return launch<cluster<1024, 8>, 1>(job, how);
  return cudaErrorInvalidConfiguration;
}

/// Cuts each row where the rule says and writes what the sink says: one kernel launch on a stream.
///
/// Shapes:  in [B, V], rows or logits, float, __half or __nv_bfloat16; stream and all memory belong
///          to the current device
/// Cost:    no allocation, synchronisation, workspace or state; may be captured in a graph
/// Errors:  B == 0 is success; cudaErrorInvalidValue for what the types cannot rule out, before any
///          launch; a forced shape that cannot run: cudaErrorInvalidConfiguration; else the
///          launch's. Errors of earlier work are neither cleared nor reported
template <input In, class Rule, class Sink>
[[gnu::visibility("hidden")]] cudaError_t cut(In in, Rule rule, Sink sink, options how) {
  auto const launched = [&]<class W, element T, domain D>(W, batch<T, D> const& batch) {
    job<W, T, D, Rule, Sink> const work{batch, rule, sink};
    if (how.force) return launch(work, *how.force, how);
    int id = 0;
    device d{};
    if (cudaError_t const e = cudaGetDevice(&id)) return e;
    cudaError_t const e =
        cudaDeviceGetAttribute(&d.multiprocessors, cudaDevAttrMultiProcessorCount, id);
    return e ? e : launch(work, shape_for(batch.in.length, batch.in.count, d), how);
  };
  auto const batch = as_batch(in);
  if (batch.in.count == 0) return cudaSuccess;
  if (!valid(batch, rule, sink)) return cudaErrorInvalidValue;
  if constexpr (Rule::weighs || Sink::weighs)
    if (batch.in.length > mass<float, std::uint64_t>::longest) return launched(uint128{}, batch);
  return launched(std::uint64_t{}, batch);
}

template <input In, class Rule, class Sink>
[[gnu::visibility("hidden")]] cudaError_t cut(In in, Rule rule, Sink sink,
                                              cudaStream_t stream = nullptr) {
  return cut(in, rule, sink, options{stream});
}

/// Keeps the k largest probabilities of each row and divides them by their sum; zeros for the rest.
///
/// Shapes:  probs, out [B, V], strides of their own, out may be probs; k one number or device [B]
/// Ties:    all that equal the k-th largest stay
/// Errors:  as cut
template <class T>
[[gnu::visibility("hidden")]] cudaError_t top_k_renorm(std::type_identity_t<rows<T const>> probs,
                                                       rows<T> out, per_row<std::int32_t> k,
                                                       cudaStream_t stream = nullptr) {
  return cut(probs, top_k{k}, renorm{out}, stream);
}

/// Keeps the largest probabilities of each row until their sum reaches p and divides them by it;
/// zeros for the rest.
///
/// Shapes:  probs, out [B, V], strides of their own, out may be probs; p one number or device [B]
/// Units:   p an absolute mass, not a share of the row's
/// Ties:    all that equal the last one kept stay
/// Errors:  as cut
template <class T>
[[gnu::visibility("hidden")]] cudaError_t top_p_renorm(std::type_identity_t<rows<T const>> probs,
                                                       rows<T> out, per_row<float> p,
                                                       cudaStream_t stream = nullptr) {
  return cut(probs, top_p{p}, renorm{out}, stream);
}

}  // namespace v0
}  // namespace cutoff
