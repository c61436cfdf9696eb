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
  using row = tiled<T, D>;
  static constexpr bool weighs = Rule::weighs || Sink::weighs;
  batch<T, D> in;
  Rule rule;
  Sink sink;
};

/// A kernel's form: a group a row, at least so many blocks a multiprocessor, with a record of tiles or
/// without.
template <class G, std::uint32_t Least, bool Tiles>
struct form {
  using group = G;
  static constexpr std::uint32_t threads = G::threads, least = Least;
  static constexpr bool tiles = Tiles;
};

/// The forms that are built.
namespace forms {
using small = form<block<256>, 1, false>;
using tiles = form<cluster<320, 8>, 2, true>;
using large = form<cluster<1024, 8>, 1, false>;
}  // namespace forms

/// Begins to bring a unit's share of a row to the L2 cache, but for what is left over.
template <group G, element T, domain D>
__device__ void prefetch(G const& g, row<T, D> r) {
  auto const address = reinterpret_cast<std::uintptr_t>(r.data + misaligned_head(r.data, r.length));
  std::uint32_t const each = r.length / pack<T>::size / g.units();
  if (each > 1) g.prefetch(reinterpret_cast<pack<T> const*>(address) + each * g.unit(), each - 1);
}

/// Cuts rows; groups take further ones where the grid has too few.
template <class Form, class Job>
[[gnu::visibility("hidden")]] __global__ void __launch_bounds__(Form::threads, Form::least)
    kernel(Job const job) {
  using G = typename Form::group;
  using W = typename Job::word;
  __shared__ typename G::scratch scratch;
  extern __shared__ __align__(128) std::uint32_t cutoff_record[];
  G const g(scratch);
  wait_for_earlier_kernels();
  for (std::int64_t b = G::scope::index_in_grid(); b < job.in.in.count;
       b += G::scope::groups_in_grid()) {
    if constexpr (Form::tiles) {
      // So few blocks have a multiprocessor each, and memory would wait for them (bench/README.md).
      if (gridDim.x <= 128) prefetch(g, job.in[b]);
      cut_row<W>(g, tiled(g, job.in[b], cutoff_record), b, job.rule, job.sink);
    } else {
      cut_row<W>(g, job.in[b], b, job.rule, job.sink);
    }
    let_later_kernels_begin();
    g.sync();  // no block leaves, or begins again, whose memory another one reads
  }
}

/// How a call runs. force: a launch shape in place of the library's choice, for tuning and tests.
/// dependent: it may be launched before the kernel ahead of it in the stream has ended, if that one
/// signals it, to wait on the device (programmatic dependent launch; sm_90 and newer, else it changes
/// nothing). Ours signal in any case.
struct options {
  cudaStream_t stream = nullptr;
  shape const* force = nullptr;
  bool dependent = false;
};

/// Launches the kernel of a form with so many blocks a row. What cannot be launched so, since there
/// are no clusters in this build or on this device, or since a row's tiles need more shared memory
/// than a block may have or more numbers than 16 bits, is found out by asking, not by failing: one
/// block takes a cluster's place, and the small form the tiles'. So it does for a first call while an
/// error of earlier work waits to be seen.
template <class Form, class Job>
[[gnu::visibility("hidden")]] cudaError_t launch(Job const& job, int blocks, options how) {
  using G = typename Form::group;
  auto const run = kernel<Form, Job>;
  auto const units = static_cast<unsigned>(blocks);
  std::int64_t const most = 0x7fffffff / units;  // groups in x, the grid's long dimension
  cudaLaunchAttribute attributes[2]{};
  cudaLaunchConfig_t config{};
  config.attrs = attributes;
  auto const ask = [&](cudaLaunchAttributeID id) -> auto& {
    attributes[config.numAttrs].id = id;
    return attributes[config.numAttrs++].val;
  };
  if (units > 1) ask(cudaLaunchAttributeClusterDimension).clusterDim = {units, 1, 1};
  config.gridDim =
      dim3(static_cast<unsigned>(job.in.in.count < most ? job.in.in.count : most) * units);
  config.blockDim = dim3(Form::threads);
  config.stream = how.stream;
  cudaFuncAttributes built{};
  if (Form::tiles || units > 1 || how.dependent)
    if (cudaError_t const e = cudaFuncGetAttributes(&built, run)) return e;
  bool const newer = built.ptxVersion >= 90;  // clusters, bulk copies, waiting on the device
  if constexpr (Form::tiles) {
    auto const packs =
        static_cast<std::uint32_t>(job.in.in.length) / pack<typename Job::row::value>::size;
    std::uint32_t const tiles = tile_record::tiles(tile_record::share(packs, units), G::threads);
    std::size_t const bytes = tile_record::bytes(tiles, Job::row::words, newer);
    int id = 0, room = 0;
    if (cudaError_t const e = cudaGetDevice(&id)) return e;
    if (cudaError_t const e =
            cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, id))
      return e;
    room -= static_cast<int>((built.sharedSizeBytes + 127) / 128 * 128);
    bool fits = tiles <= 65536 && static_cast<std::int64_t>(bytes) <= room;
    config.dynamicSmemBytes = bytes;
    if (fits && static_cast<std::size_t>(built.maxDynamicSharedSizeBytes) < bytes) {
      // To ask for more than is usual clears the last error, which may be one of earlier work.
      fits = cudaPeekAtLastError() == cudaSuccess;
      if (fits)
        if (cudaError_t const e =
                cudaFuncSetAttribute(run, cudaFuncAttributeMaxDynamicSharedMemorySize, room))
          return e;
    }
    if (!fits && how.force) return cudaErrorInvalidConfiguration;
    if (!fits) return launch<forms::small>(job, 1, how);
  }
  if (units > 1) {
    int clusters = 0;
    if (!newer || cudaOccupancyMaxActiveClusters(&clusters, run, &config) || clusters == 0)
      return how.force ? cudaErrorInvalidConfiguration : launch<Form>(job, 1, how);
  }
  if (how.dependent && newer)
    ask(cudaLaunchAttributeProgrammaticStreamSerialization).programmaticStreamSerializationAllowed =
        1;
  return cudaLaunchKernelEx(&config, run, job);
}

/// From a shape to the form built for it.
template <class Job>
[[gnu::visibility("hidden")]] cudaError_t launch(Job const& job, shape s, options how) {
  bool const portable = s.blocks >= 1 && s.blocks <= 8;
  bool constexpr wide = sizeof(typename Job::word) > 8;
  if constexpr (!wide) {
    if (s == shape{256}) return launch<forms::small>(job, 1, how);
    if (s.threads == 320 && portable) return launch<forms::tiles>(job, s.blocks, how);
  }
  if constexpr (wide || !(Job::weighs))
    if (s.threads == 1024 && portable) return launch<forms::large>(job, s.blocks, how);
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
