#pragma once
// Who works together on one row. An algorithm is written once, against the concept below, and runs
// on one thread (serial, here), a warp, a block or a cluster (group.cuh).
//
// The contract of every group g:
//  1. Members are numbered rank() in [0, size()); a sweep deals the row out by these numbers.
//  2. sum, max, scan, clear and cross are collective: all members call them, in the same order,
//     and all get the result. All but clear are barriers too: what a member wrote before is seen
//     after, and what it had to read it has read.
//  3. add, increment and slot are not collective: any member adds to a histogram between a clear
//     and the next cross, and takes slots between a restart, a barrier, and the next barrier.
//  4. Scratch belongs to the caller, one per group. The group's next collective may use it at once;
//     for anything else it is free after a barrier of the caller's.
//  5. Sums are of unsigned integers, so no result depends on the number or order of the members.

#include <nv/target>

#include <cassert>
#include <concepts>
#include <cstdint>
#include <utility>

#include "key.hpp"

namespace cutoff {
inline namespace v0 {

/// Calls f(0), ..., f(N - 1), unrolled for certain: what f indexes by it can stay in registers.
template <std::uint32_t N, class F>
__host__ __device__ void unrolled(F f) {
  [&]<std::uint32_t... I>(std::integer_sequence<std::uint32_t, I...>) { (f(I), ...); }
  (std::make_integer_sequence<std::uint32_t, N>{});
}

/// Result of a scan: what the members of lower rank hold, and what all hold.
template <class W>
struct scanned {
  W before, total;
};

/// Result of a cross: the largest digit d at which the bins from the top down to d reach a target,
/// with the sum of the bins above d and bin d itself. Not reached: digit 0, above = all, at = 0.
template <class W>
struct crossing {
  std::uint32_t digit;
  W above, at;
};

template <class G>
concept group = requires(G const g, std::uint32_t n,
                         typename G::template histogram<std::uint32_t> h) {
  { g.rank() } -> std::same_as<std::uint32_t>;
  { g.size() } -> std::same_as<std::uint32_t>;
  { g.sum(n) } -> std::same_as<std::uint32_t>;
  { g.max(n) } -> std::same_as<std::uint32_t>;
  { g.scan(n) } -> std::same_as<scanned<std::uint32_t>>;
  g.clear(h);
  g.add(h, n, n);
  { g.cross(h, n) } -> std::same_as<crossing<std::uint32_t>>;
};

/// A group that can keep a record of tiles (tiles.hpp). Units share memory: a warp, a block, a
/// cluster's block.
template <class G>
concept tiling_group = group<G> && requires(G const g, std::uint32_t n, std::uint32_t (&four)[4]) {
  { g.unit() } -> std::same_as<std::uint32_t>;
  { g.unit_rank() } -> std::same_as<std::uint32_t>;
  g.sync();                                      // collective, a barrier
  g.increment(n);                                // of shared memory
  g.template merge<1>(&n);                       // collective, a barrier: counts of all units
  g.restart();                                   // before a barrier and then:
  { g.slot() } -> std::same_as<std::uint32_t>;   // 0, 1, ... to whoever asks
  g.tally(0, n);                                 // by warps: to be added up
  { g.slots() } -> std::same_as<std::uint32_t>;  // after a barrier: how many were taken
  g.tile_maxima(four, static_cast<void (*)(std::uint32_t, std::uint32_t)>(nullptr));
};

/// The group of one thread, on the host or on the device.
struct serial {
  template <class W>
  struct histogram {
    W bin[radix];
    __host__ __device__ explicit histogram(serial const&) {}
  };

  __host__ __device__ std::uint32_t rank() const { return 0; }
  __host__ __device__ std::uint32_t size() const { return 1; }

  template <class W>
  __host__ __device__ W sum(W x) const {
    return x;
  }
  __host__ __device__ std::uint32_t max(std::uint32_t x) const { return x; }
  template <class W>
  __host__ __device__ scanned<W> scan(W x) const {
    return {W{0}, x};
  }

  template <class W>
  __host__ __device__ void clear(histogram<W>& h) const {
    for (W& bin : h.bin) bin = 0;
  }
  template <class W>
  __host__ __device__ void add(histogram<W>& h, std::uint32_t digit, W w) const {
    h.bin[digit] += w;
  }
  template <class W>
  __host__ __device__ crossing<W> cross(histogram<W>& h, W target) const {
    return cross<radix>([&](std::uint32_t d) { return h.bin[d]; }, target);
  }
  /// cross, of whatever has a weight for each of so many bins. The target is at least 1.
  template <std::uint32_t Bins, class F, class W>
  __host__ __device__ crossing<W> cross(F bin, W target) const {
    NV_IF_TARGET(NV_IS_HOST, (assert(target != 0);))
    W above = 0;
    for (std::uint32_t d = Bins; d-- > 0; above += bin(d))  // above = sum of bins over d
      if (bin(d) >= target - above) return {d, above, bin(d)};
    return {0, above, 0};
  }

  static constexpr std::uint32_t threads = 1, units = 1;
  __host__ __device__ std::uint32_t unit() const { return 0; }
  __host__ __device__ std::uint32_t unit_rank() const { return 0; }
  __host__ __device__ void sync() const {}
  __host__ __device__ void increment(std::uint32_t& x) const { ++x; }
  __host__ __device__ void mark(std::uint32_t& x, std::uint32_t bits) const { x |= bits; }
  template <std::uint32_t Bins>
  __host__ __device__ void merge(std::uint32_t*) const {}
  template <class W>
  __host__ __device__ W unit_sum(W x) const {
    return x;
  }
  __host__ __device__ std::uint32_t unit_max(std::uint32_t x) const { return x; }
  __host__ __device__ void restart() const { taken = 0, total[0] = total[1] = 0; }
  __host__ __device__ std::uint32_t slot() const { return taken++; }
  __host__ __device__ std::uint32_t slot(std::uint32_t n) const { return (taken += n) - n; }
  __host__ __device__ std::uint32_t slots() const { return taken; }
  __host__ __device__ void tell(float x) const { number = x; }
  __host__ __device__ float told() const { return number; }
  __host__ __device__ std::uint64_t* weights() const { return weight; }
  template <class R>
  __host__ __device__ void tell_result(R const& x, bool mine) const {
    if (mine) *reinterpret_cast<R*>(answer) = x;
  }
  template <class R>
  __host__ __device__ R result() const {
    return *reinterpret_cast<R const*>(answer);
  }
  template <std::uint32_t, class W>
  __host__ __device__ W sum_of(W x) const {
    return x;
  }
  __host__ __device__ void tally(int i, std::uint64_t x) const { total[i] += x; }
  __host__ __device__ std::uint64_t tallied(int i) const { return total[i]; }
  template <class X>
  __host__ __device__ X& first_unit(X& own) const {
    return own;
  }
  template <class F>
  __host__ __device__ void tile_maxima(std::uint32_t const (&most)[4], F f) const {
    std::uint32_t largest = 0;
    for (std::uint32_t key : most) largest = key > largest ? key : largest;
    f(0, largest);
  }
  template <class F>
  __host__ __device__ void visit(std::uint16_t const* most, std::uint32_t tiles, std::uint32_t mark,
                                 F f) const {
    for (std::uint32_t t = 0; t < tiles; ++t)
      if (most[t] >= mark) f([t](std::uint32_t u) { return 4 * t + u; });
  }
  template <class F>
  __host__ __device__ auto by_one_unit(F f) const {
    return f(*this);
  }

 private:
  mutable std::uint32_t taken = 0;
  mutable std::uint64_t total[2] = {}, weight[512];
  mutable float number = 0;
  alignas(16) mutable unsigned char answer[64];
};

static_assert(group<serial>);

}  // namespace v0
}  // namespace cutoff
