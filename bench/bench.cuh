#pragma once
// How the bench measures:
//
//  1. Calls rotate through sets of inputs and outputs, 128 MB and more in all, so that no call
//     finds its rows in the L2 cache (60 MB on an H200).
//  2. Whole turns through the sets are captured in a graph that runs for 2 ms and more.
//  3. Before anything is timed, outputs are poisoned, each set is called once, and the first and
//     the last row of what came out are compared with the host: a wrong result is never timed.
//  4. The graph is replayed once, and then 25 times between two events each, all queued at once: the
//     device never waits for the host. A call's time is the median replay / its calls.
//  5. The roof is measured in the same way over the same bytes in the same run, once for each size.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <any>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cutoff/cutoff.cuh>
#include <map>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../tests/rows.hpp"

namespace bench {

inline void check(cudaError_t e, std::source_location at = std::source_location::current()) {
  if (e == cudaSuccess) return;
  throw std::runtime_error(std::string(at.file_name()) + ":" + std::to_string(at.line()) + ": " +
                           cudaGetErrorString(e));
}

template <auto Destroy>
struct destroy {
  void operator()(auto* x) const { Destroy(x); }
};
template <class T>
using memory = std::unique_ptr<T[], destroy<cudaFree>>;
using event = std::unique_ptr<CUevent_st, destroy<cudaEventDestroy>>;
using graph = std::unique_ptr<CUgraph_st, destroy<cudaGraphDestroy>>;
using replay = std::unique_ptr<CUgraphExec_st, destroy<cudaGraphExecDestroy>>;

template <class T>
memory<T> allocate(std::int64_t count) {
  T* p = nullptr;
  check(cudaMalloc(&p, count * sizeof(T)));
  return memory<T>(p);
}

inline cudaStream_t const stream = cudaStreamPerThread;  // everything goes here, copies too

template <class T>
void copy(T* to, T const* from, std::int64_t count) {
  check(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDefault, stream));
}

template <class T>
std::vector<T> download(T const* from, std::int64_t count) {
  std::vector<T> host(count);
  copy(host.data(), from, count);
  check(cudaStreamSynchronize(stream));
  return host;
}

// --- Time -------------------------------------------------------------------------------------

struct timing {
  double seconds = 0;      // of one call, median
  double spread = 0;       // distance of the quartiles / median
  std::int64_t calls = 0;  // in a replay
};

/// A graph of calls on the sets in turn: call(set, stream) -> cudaError_t.
template <class Call>
replay captured(std::int64_t sets, std::int64_t calls, Call const& call) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaError_t e = cudaSuccess;
  for (std::int64_t i = 0; i < calls && e == cudaSuccess; ++i) e = call(i % sets, stream);
  cudaGraph_t recorded = nullptr;
  cudaError_t const ended = cudaStreamEndCapture(stream, &recorded);
  graph const owner(recorded);
  check(e);
  check(ended);
  cudaGraphExec_t ready = nullptr;
  check(cudaGraphInstantiate(&ready, recorded, 0));
  return replay(ready);
}

/// Seconds that each of some replays took, sorted. One more goes before them, restore() before each.
inline std::vector<double> replayed(replay const& calls, int replays, auto const& restore) {
  std::vector<event> events(2 * (replays + 1));  // around each
  for (std::size_t i = 0; i < events.size(); ++i) {
    cudaEvent_t made = nullptr;
    check(cudaEventCreate(&made));
    events[i].reset(made);
    if (i % 2 == 0)
      restore();
    else
      check(cudaGraphLaunch(calls.get(), stream));
    check(cudaEventRecord(made, stream));
  }
  check(cudaStreamSynchronize(stream));
  std::vector<double> seconds;
  for (std::size_t i = 2; i < events.size(); i += 2) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, events[i].get(), events[i + 1].get()));
    seconds.push_back(ms * 1e-3);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

inline constexpr auto nothing = [] {};

/// Times call(set, stream). verify() is called when each set has been called once, before anything
/// is timed, and throws where the results are wrong. If calls change what they read, restore() puts it
/// back before each replay, which then takes one turn.
template <class Call, class Verify, class Restore = decltype(nothing)>
timing timed(std::int64_t sets, Call const& call, Verify const& verify,
             Restore const& restore = nothing) {
  constexpr double shortest = 2e-3;    // seconds of a replay
  constexpr std::int64_t most = 4096;  // calls in a replay of more than one turn
  constexpr int replays = 25;
  check(call(0, stream));  // kernels are loaded before the capture
  replay calls = captured(sets, sets, call);
  restore();
  check(cudaGraphLaunch(calls.get(), stream));
  check(cudaStreamSynchronize(stream));
  verify();
  double const turn = replayed(calls, 1, restore)[0];
  std::int64_t turns = 1;
  if constexpr (std::same_as<Restore, decltype(nothing)>)
    while (turns * turn < shortest && (turns + 1) * sets <= most) ++turns;
  if (turns > 1) calls = captured(sets, turns * sets, call);
  std::vector<double> const s = replayed(calls, replays, restore);
  double const median = s[replays / 2], quartiles = s[replays * 3 / 4] - s[replays / 4];
  return {median / (turns * sets), quartiles / median, turns * sets};
}

// --- Batches ----------------------------------------------------------------------------------

/// Where a case lies on the axes, but for the element type: B rows of V entries from a row maker.
struct point {
  std::int64_t B, V;
  std::string_view input;
  bool operator==(point const&) const = default;
};

/// Different rows of a maker in device memory, row d from seed d; the last ones asked for are kept.
///
/// Shapes:  [distinct, V]
inline constexpr std::int64_t distinct = 64;
template <class T>
T const* distinct_rows(std::string_view input, std::int64_t V) {
  static memory<T> held;
  static point of{};
  point const wanted{distinct, V, input};
  if (of == wanted) return held.get();
  std::vector<T> host(distinct * V);
  auto const make = [&](std::int64_t d) {
    auto const row = test::to<T>(test::make_row(input, V, static_cast<std::uint32_t>(d)));
    std::copy(row.begin(), row.end(), host.begin() + d * V);
  };
  make(0);  // here and not in a thread: what it throws is caught
  std::atomic<std::int64_t> next = 1;
  std::vector<std::jthread> workers(std::max(1u, std::thread::hardware_concurrency()));
  for (std::jthread& worker : workers)
    worker = std::jthread([&] {
      for (std::int64_t d = next++; d < distinct; d = next++) make(d);
    });
  workers.clear();  // joins
  of = {};
  held.reset();
  held = allocate<T>(distinct * V);
  copy(held.get(), host.data(), distinct * V);
  check(cudaStreamSynchronize(stream));
  of = wanted;
  return held.get();
}

/// Batches to rotate through. Row b of set s is a copy of distinct row (s * B + b) mod 64.
template <class T>
struct sets {
  point at;
  std::int64_t batch = at.B * at.V;               // elements
  std::int64_t bytes = batch * sizeof(T);         // of a batch
  std::int64_t step = (batch + 127) / 128 * 128;  // from set to set, aligned as allocations are
  std::int64_t count = turning(bytes);            // the inputs alone are 128 MB
  memory<T> in = allocate<T>(count * step), out = allocate<T>(count * step);

  explicit sets(point p) : at(p) {
    T const* const from = distinct_rows<T>(at.input, at.V);
    for (std::int64_t row = 0; row < count * at.B; ++row)
      copy(in.get() + row / at.B * step + row % at.B * at.V, from + row % distinct * at.V, at.V);
  }
  cutoff::rows<T const> input(std::int64_t set) const {
    return {in.get() + set * step, at.B, at.V};
  }
  T* output(std::int64_t set) const { return out.get() + set * step; }

  /// How many sets to turn through if a call reads and writes so many bytes.
  static std::int64_t turning(std::int64_t bytes) { return ((128 << 20) + bytes - 1) / bytes; }

  /// Fills the outputs with bytes that no result has.
  void poison() const { check(cudaMemsetAsync(out.get(), 0xee, count * step * sizeof(T), stream)); }
};

/// The sets at a point. Those held before are freed first.
inline std::any held_sets;
template <class T>
sets<T> const& sets_at(point at) {
  using shared = std::shared_ptr<sets<T>>;
  auto const* const here = std::any_cast<shared>(&held_sets);
  if (here && (*here)->at == at) return **here;
  held_sets.reset();
  return *held_sets.emplace<shared>(std::make_shared<sets<T>>(at));
}

// --- Roofs ------------------------------------------------------------------------------------

/// Copies packs of 16 bytes, four in flight, or only reads them.
template <bool Write>
__global__ void stream_packs(uint4 const* in, uint4* out, std::int64_t packs) {
  std::int64_t const size = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  std::uint32_t seen = 0;
  auto const put = [&](std::int64_t j, uint4 x) {
    if (Write) out[j] = x;
    seen ^= x.x ^ x.y ^ x.z ^ x.w;
  };
  for (; i + 3 * size < packs; i += 4 * size) {
    uint4 const a = in[i], b = in[i + size], c = in[i + 2 * size], d = in[i + 3 * size];
    put(i, a), put(i + size, b), put(i + 2 * size, c), put(i + 3 * size, d);
  }
  for (; i < packs; i += size) put(i, in[i]);
  if (!Write && seen == 0x9e3779b9) out->x = seen;  // by chance; else the loads would be dropped
}

inline cudaDeviceProp device() {
  int id = 0;
  cudaDeviceProp properties;
  check(cudaGetDevice(&id));
  check(cudaGetDeviceProperties(&properties, id));
  return properties;
}

inline constexpr auto same_bits = [](auto a, auto b) { return test::bits(a) == test::bits(b); };

/// The fastest way to move a batch.
struct roof {
  timing time;
  std::string by;
};

/// Reads a batch and writes it elsewhere, or only reads it: a kernel in a grid that stays on the
/// device, in a larger one, or cudaMemcpyAsync, whichever is fastest.
template <bool Write, class T>
roof const& roof_of(sets<T> const& s) {
  static std::map<std::int64_t, roof> known;
  if (known.contains(s.bytes)) return known[s.bytes];
  roof best;
  auto const consider = [&](std::string by, auto call) {
    std::int64_t const turning = s.turning((1 + Write) * s.bytes);
    s.poison();
    timing const t = timed(turning, call, [&] {
      if (!Write) return;
      std::int64_t const last = s.batch - s.at.V;
      auto const in = download(s.input(turning - 1).data + last, s.at.V),
                 out = download<T>(s.output(turning - 1) + last, s.at.V);
      if (!std::equal(in.begin(), in.end(), out.begin(), same_bits))
        throw std::runtime_error("the copy is not one");
    });
    if (best.by.empty() || t.seconds < best.time.seconds) best = {t, by};
  };
  std::int64_t const packs = (s.bytes + 15) / 16, threads = 512;
  for (int const waves : {1, 16}) {
    auto const blocks = std::min<std::int64_t>((packs + threads - 1) / threads,
                                               waves * 4 * device().multiProcessorCount);
    consider("kernel, " + std::to_string(blocks) + " blocks",
             [&](std::int64_t set, cudaStream_t on) {
               stream_packs<Write>
                   <<<blocks, threads, 0, on>>>(reinterpret_cast<uint4 const*>(s.input(set).data),
                                                reinterpret_cast<uint4*>(s.output(set)), packs);
               return cudaGetLastError();
             });
  }
  if (Write)
    consider("cudaMemcpyAsync", [&](std::int64_t set, cudaStream_t on) {
      return cudaMemcpyAsync(s.output(set), s.input(set).data, s.bytes, cudaMemcpyDeviceToDevice,
                             on);
    });
  return known[s.bytes] = best;
}

// --- Cases ------------------------------------------------------------------------------------

inline int failures = 0;

/// A case: run(state) measures and reports once; what it throws becomes the case's error.
template <class F>
void add(std::string const& name, F run) {
  auto const guarded = [run](benchmark::State& state) {
    try {
      run(state);
    } catch (std::exception const& e) {
      ++failures;
      cudaGetLastError();  // so that the next case does not find it
      state.SkipWithError(e.what());
    }
  };
  benchmark::RegisterBenchmark(name.c_str(), guarded)
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMicrosecond);
}

/// bytes: read once and written once by an ideal call.
inline void report(benchmark::State& state, timing const& t, std::int64_t bytes,
                   std::string const& label) {
  while (state.KeepRunning()) state.SetIterationTime(t.seconds);
  state.counters["GB/s"] = bytes / t.seconds * 1e-9;
  state.counters["spread"] = t.spread;
  state.counters["calls"] = t.calls;
  state.SetLabel(label);
}

}  // namespace bench
