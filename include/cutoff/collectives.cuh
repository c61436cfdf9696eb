#pragma once
// What the members of a group on the device do together: the contract of group.hpp.
//
//  1. A scope says who the members are: the threads of a unit (a warp or a block) that shares memory,
//     times the number of units (1, or a cluster's blocks).
//  2. Sums, maxima and scans are CUB's within a warp, once for the warp's members and once more, in
//     every warp, for the warps' totals: a third of the time of a block scan, whose every thread adds
//     up the totals of all warps (bench/README.md). Units exchange one word each on top.
//  3. A histogram lives in shared memory as 32-bit limbs, bin d's limb l at limb[l][d]. Adding a
//     weight of several limbs carries from one to the next: a 32-bit shared-memory atomic costs a
//     cycle a warp, one more for each lane on the same word, a 64-bit one 85 to 218 (H200, CUDA
//     13.0, 2026-11). Whatever the order of the adds, each limb wraps as often in all, so the bins
//     are exact.
//  4. To cross, member t of a unit takes the t-th bins from the top, added up over all units, scans
//     their totals, and the one that sees the target crossed tells the others.
//
// Bodies hide behind NV_IF_TARGET because the algorithms are host and device functions. Before
// sm_90 a cluster compiles but traps: the launcher never starts one there.

#include <nv/target>

#include <cub/util_ptx.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuda/functional>
#include <cuda/std/functional>

#include "group.hpp"
#include "scope.cuh"

namespace cutoff {
inline namespace v0 {

/// Shared memory of one unit: of one warp, or of one block.
template <std::uint32_t Warps>
struct unit_scratch {
  union {
    std::uint32_t limb[4][radix];
    std::uint16_t queue[Warps][64];  // of a warp: tiles to visit
    std::uint64_t weights[512];      // of a short list
  };
  uint128 part[Warps];  // what each warp has to tell
  crossing<uint128> crossed;
  std::uint32_t slots;                 // taken so far; unit 0 counts
  unsigned long long tally[2];         // unit 0 adds up
  float number[16];                    // of each unit
  alignas(16) unsigned char told[64];  // by unit 0
};

/// What the members of a group do together. Every thread of the scope takes part in every collective.
template <class Scope>
class collectives {
 public:
  using scope = Scope;
  static constexpr std::uint32_t threads = Scope::threads, units = Scope::units;
  static constexpr std::uint32_t warps = threads / 32;  // of a unit

  /// Shared memory of one unit.
  struct cluster_scratch : unit_scratch<warps> {
    uint128 word[units];  // what each unit has to tell
  };
  using scratch = std::conditional_t<units == 1, unit_scratch<warps>, cluster_scratch>;

  /// Bins in the scratch of the group: one histogram at a time.
  template <class W>
  struct histogram {
    static constexpr std::uint32_t limbs = sizeof(W) / 4;
    __host__ __device__ explicit histogram(collectives const&) {}
  };

  __host__ __device__ explicit collectives(scratch& own) : s(own) {}

  __host__ __device__ std::uint32_t rank() const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return unit() * threads + Scope::rank();), (return 0;))
  }
  __host__ __device__ std::uint32_t size() const { return units * threads; }
  __host__ __device__ std::uint32_t unit() const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (if constexpr (units > 1) return Scope::unit(); else return 0;),
                      (return 0;))
  }

  template <class W>
  __host__ __device__ scanned<W> scan(W x) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return scan_all(x);), (return {W{0}, x};))
  }
  template <class W>
  __host__ __device__ W sum(W x) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return reduce_all(x, cuda::std::plus<>{});), (return x;))
  }
  __host__ __device__ std::uint32_t max(std::uint32_t x) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return reduce_all(x, cuda::maximum<>{});), (return x;))
  }
  template <class W>
  __host__ __device__ void clear(histogram<W>&) const {
    NV_IF_TARGET(NV_IS_DEVICE, (clear_limbs(histogram<W>::limbs);))
  }
  template <class W>
  __host__ __device__ void add(histogram<W>&, std::uint32_t digit, W w) const {
    NV_IF_TARGET(NV_IS_DEVICE, (add_limbs(digit, w);))
  }
  template <class W>
  __host__ __device__ crossing<W> cross(histogram<W>&, W target) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return cross_limbs(target);), (return {0, target, 0};))
  }

 protected:
  __device__ static void sync_all() {
    if constexpr (units > 1)
      Scope::sync_units();
    else
      Scope::sync();
  }

  /// Tells all units a word: get(u) is unit u's, until the next exchange.
  template <class W>
  __device__ auto exchange(W word) const {
    Scope::sync_units();  // the words of the last exchange have been read
    if (Scope::rank() < units)
      reinterpret_cast<W&>(Scope::in_unit(s.word, Scope::rank())[unit()]) = word;
    Scope::sync_units();
    return [this](std::uint32_t u) { return reinterpret_cast<W const&>(s.word[u]); };
  }

  /// Of one value from each warp: those of the first warps, one in each lane.
  template <class W>
  __device__ W parts(W mine) const {
    std::uint32_t const lane = Scope::rank() % 32;
    W* const part = reinterpret_cast<W*>(s.part);
    Scope::sync();  // the last parts have been read
    if (lane == 0) part[Scope::rank() / 32] = mine;
    Scope::sync();
    return lane < warps ? part[lane] : W{0};
  }

  template <class W, class Op>
  __device__ static W reduce_warp(W x, Op op) {
    typename cub::WarpReduce<W>::TempStorage none;  // a whole warp needs none
    return cub::ShuffleIndex<32>(cub::WarpReduce<W>(none).Reduce(x, op), 0, ~0u);
  }

  template <class W, class Op>
  __device__ W reduce_unit(W x, Op op) const {
    W const total = reduce_warp(x, op);
    if constexpr (warps > 1) return reduce_warp(parts(total), op);
    Scope::sync();
    return total;
  }

  template <class W, class Op>
  __device__ W reduce_all(W x, Op op) const {
    W total = reduce_unit(x, op);
    if constexpr (units > 1) {
      auto const word = exchange(total);
      total = word(0);
      for (std::uint32_t u = 1; u < units; ++u) total = op(total, word(u));
    }
    return total;
  }

  /// Scan within the unit.
  template <class W>
  __device__ scanned<W> scan_unit(W x) const {
    typename cub::WarpScan<W>::TempStorage none;  // a whole warp needs none
    scanned<W> result;
    cub::WarpScan<W>(none).ExclusiveSum(x, result.before, result.total);
    if constexpr (warps == 1) {
      Scope::sync();
    } else {
      scanned<W> of_warps;
      W const part = parts(result.total);
      cub::WarpScan<W>(none).ExclusiveSum(part, of_warps.before, of_warps.total);
      result.before +=
          cub::ShuffleIndex<32>(of_warps.before, static_cast<int>(Scope::rank() / 32), ~0u);
      result.total = of_warps.total;
    }
    return result;
  }

  template <class W>
  __device__ scanned<W> scan_all(W x) const {
    scanned<W> result = scan_unit(x);
    if constexpr (units > 1) {
      auto const word = exchange(result.total);
      result.total = 0;
      for (std::uint32_t u = 0; u < units; ++u) {
        if (u < unit()) result.before += word(u);
        result.total += word(u);
      }
    }
    return result;
  }

  __device__ void clear_limbs(std::uint32_t limbs) const {
    Scope::sync();
    for (std::uint32_t i = Scope::rank(); i < limbs * radix; i += threads)
      s.limb[i / radix][i % radix] = 0;
    Scope::sync();
  }

  template <class W>
  __device__ void add_limbs(std::uint32_t d, W w) const {
    std::uint32_t carry = 0;  // into the next limb, 0 or 1
    for (std::uint32_t l = 0; l < histogram<W>::limbs; ++l) {
      std::uint32_t const limb = static_cast<std::uint32_t>(w >> (32 * l)), low = limb + carry;
      carry = low < limb;  // then low is 0, and nothing is left to add here
      if (low == 0) continue;
      std::uint32_t const old = atomicAdd(&s.limb[l][d], low);
      carry += old + low < old;
    }
  }

  /// Total of bin d over all units.
  template <class W>
  __device__ W bin(std::uint32_t d) const {
    W total = 0;
    for (std::uint32_t u = 0; u < units; ++u)
      for (std::uint32_t l = 0; l < histogram<W>::limbs; ++l) {
        std::uint32_t limb;
        if constexpr (units > 1)
          limb = Scope::in_unit(s.limb, u)[l][d];
        else
          limb = s.limb[l][d];
        total += W{limb} << (32 * l);
      }
    return total;
  }

  template <class W>
  __device__ crossing<W> cross_limbs(W target) const {
    sync_all();  // all adds are done
    return cross_unit<radix, units != 1>([&](std::uint32_t d) { return bin<W>(d); }, target);
  }

  /// Leave: the bins are other units', who may go on only when they have been read.
  template <std::uint32_t Bins, bool Leave = false, class F, class W>
  __device__ crossing<W> cross_unit(F const& bin, W target) const {
    constexpr std::uint32_t n = (Bins + threads - 1) / threads;  // bins a member takes
    std::uint32_t const first = Scope::rank() * n;               // counted from the top
    W mine[n], sum = 0;
    unrolled<n>([&](std::uint32_t i) {
      mine[i] = first + i < Bins ? bin(Bins - 1 - first - i) : W{0};
      sum += mine[i];
    });
    if constexpr (Leave) sync_all();
    auto const [before, total] = scan_unit(sum);
    if (total < target) return {0, total, 0};
    if (before < target && sum >= target - before) {
      W above = before;  // sum of the bins above the i-th
      unrolled<n>([&](std::uint32_t i) {
        if (above < target && mine[i] >= target - above)
          s.crossed = {Bins - 1 - first - i, above, mine[i]};
        above += mine[i];
      });
    }
    Scope::sync();
    return {s.crossed.digit, static_cast<W>(s.crossed.above), static_cast<W>(s.crossed.at)};
  }

  scratch& s;
};

}  // namespace v0
}  // namespace cutoff
