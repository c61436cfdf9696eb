#pragma once
// What the members of a group on the device do together: the contract of group.hpp.
//
//  1. A scope says who the members are: the threads of a unit (a warp or a block) that shares memory,
//     times the number of units (1, or a cluster's blocks).
//  2. Sums, maxima and scans are CUB's within a warp, once for the warp's members and once more, in
//     every warp, for the warps' totals: a third of the time of a block scan, whose every thread adds
//     up the totals of all warps (bench/README.md). Units exchange one word each on top. What is
//     told lies in two places in turn, so that one barrier is enough.
//  3. A histogram lives in shared memory as 32-bit limbs, bin d's limb l at limb[l][d]. Adding a
//     weight of several limbs carries from one to the next: a 32-bit shared-memory atomic costs a
//     cycle a warp, one more for each lane on the same word, a 64-bit one 85 to 218 (H200, CUDA
//     13.0, 2026-11). Whatever the order of the adds, each limb wraps as often in all, so the bins
//     are exact.
//  4. To cross, member t of a unit takes the t-th bins from the top, added up over all units, scans
//     their totals, and the one that sees the target crossed tells the others.
//
// Bodies hide behind NV_IF_TARGET because the algorithms are host and device functions.

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
    std::uint32_t totals[radix + 4];  // of counts, over all units
    std::uint16_t queue[Warps][64];   // of a warp: tiles to visit
    sorted_list sorted;
  };
  uint128 part[2][Warps];    // what each warp has to tell, in two turns
  std::uint32_t word[2][4];  // what a unit has to tell the others, in two turns
  crossing<uint128> crossed;
  std::uint32_t slots, kept;   // taken so far, and before the last restart
  std::uint32_t where[radix];  // what is in them comes from
};

/// What the members of a group do together. Every thread of the scope takes part in every collective.
template <class Scope>
class collectives {
 public:
  using scope = Scope;
  static constexpr std::uint32_t threads = Scope::threads, most_units = Scope::most_units;
  static constexpr std::uint32_t warps = threads / 32;  // of a unit

  /// Shared memory of one unit.
  using scratch = unit_scratch<warps>;

  /// Bins in the scratch of the group: one histogram at a time.
  template <class W>
  struct histogram {
    static constexpr std::uint32_t limbs = sizeof(W) / 4;
    __host__ __device__ explicit histogram(collectives const&) {}
  };

  /// By all threads of the scope: a barrier where it has several units, since all must have begun.
  __host__ __device__ explicit collectives(scratch& own) : s(own) {
    NV_IF_TARGET(NV_IS_DEVICE, (if constexpr (most_units > 1) {
                   which = Scope::unit();
                   many = Scope::units();
                   sync_all();
                 }))
  }

  __host__ __device__ std::uint32_t rank() const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return unit() * threads + Scope::rank();), (return 0;))
  }
  __host__ __device__ std::uint32_t size() const { return units() * threads; }
  __host__ __device__ std::uint32_t unit() const { return most_units > 1 ? which : 0; }
  __host__ __device__ std::uint32_t units() const { return most_units > 1 ? many : 1; }

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
  __device__ void sync_all() const {
    if constexpr (most_units > 1)
      if (units() > 1) return Scope::sync_units();
    Scope::sync();
  }

  /// Tells all units a word, where there are several: lane u of every warp gets unit u's. One barrier,
  /// by which all have read the words of the last turn but one.
  template <class W>
  __device__ W exchange(W word) const {
    constexpr std::uint32_t n = sizeof(W) / 4;
    word_turn = !word_turn;
    auto& own = s.word[word_turn];
    if (Scope::rank() == 0)
      unrolled<n>([&](std::uint32_t i) { own[i] = static_cast<std::uint32_t>(word >> (32 * i)); });
    Scope::sync_units();
    std::uint32_t const lane = Scope::rank() % 32;
    W got = 0;
    if (lane < units())
      unrolled<n>([&](std::uint32_t i) { got |= W{Scope::read(own[i], lane)} << (32 * i); });
    return got;
  }

  /// Of one value from each warp: those of the first warps, one in each lane. One barrier, by which
  /// all have read the parts of the last turn but one.
  template <class W>
  __device__ W parts(W mine) const {
    std::uint32_t const lane = Scope::rank() % 32;
    part_turn = !part_turn;
    W* const part = reinterpret_cast<W*>(s.part[part_turn]);
    if (lane == 0) part[Scope::rank() / 32] = mine;
    Scope::sync();
    return lane < warps ? part[lane] : W{0};
  }

  template <class W, class Op>
  __device__ static W reduce_warp(W x, Op op) {
    if constexpr (std::same_as<W, std::uint64_t> && std::same_as<Op, cuda::std::plus<>>) {
      // In three words, whose sums an instruction of sm_80 gives.
      auto const part = [&](int from, int bits) {
        return std::uint64_t{
                   reduce_warp(static_cast<std::uint32_t>(x >> from & ((1u << bits) - 1)), op)}
               << from;
      };
      return part(0, 22) + part(22, 22) + part(44, 20);
    }
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
    W const total = reduce_unit(x, op);
    if constexpr (most_units > 1)
      if (units() > 1) return reduce_warp(exchange(total), op);
    return total;
  }

  template <class W>
  __device__ static scanned<W> scan_warp(W x) {
    typename cub::WarpScan<W>::TempStorage none;  // a whole warp needs none
    scanned<W> result;
    cub::WarpScan<W>(none).ExclusiveSum(x, result.before, result.total);
    return result;
  }

  /// Scan within the unit.
  template <class W>
  __device__ scanned<W> scan_unit(W x) const {
    scanned<W> result = scan_warp(x);
    if constexpr (warps == 1) {
      Scope::sync();
    } else {
      scanned<W> const of_warps = scan_warp(parts(result.total));
      result.before +=
          cub::ShuffleIndex<32>(of_warps.before, static_cast<int>(Scope::rank() / 32), ~0u);
      result.total = of_warps.total;
    }
    return result;
  }

  template <class W>
  __device__ scanned<W> scan_all(W x) const {
    scanned<W> result = scan_unit(x);
    if constexpr (most_units > 1)
      if (units() > 1) {
        scanned<W> const of_units = scan_warp(exchange(result.total));
        result.before += cub::ShuffleIndex<32>(of_units.before, static_cast<int>(unit()), ~0u);
        result.total = of_units.total;
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

  /// A word of shared memory, as unit u has it.
  __device__ static std::uint32_t of_unit(std::uint32_t const& word, std::uint32_t u) {
    if constexpr (most_units > 1)
      return Scope::read(word, u);
    else
      return word;
  }

  /// Total of bin d over all units.
  template <class W>
  __device__ W bin(std::uint32_t d) const {
    W total = 0;
    for (std::uint32_t l = 0; l < histogram<W>::limbs; ++l) {
      std::uint64_t sum = 0;
#pragma unroll 4
      for (std::uint32_t u = 0; u < units(); ++u) sum += of_unit(s.limb[l][d], u);
      total += static_cast<W>(sum) << (32 * l);
    }
    return total;
  }

  template <class W>
  __device__ crossing<W> cross_limbs(W target) const {
    sync_all();  // all adds are done
    return cross_unit<(most_units > 1)>([&](std::uint32_t d) { return bin<W>(d); },
                                        [&](W) { return target; });
  }

  /// Crosses what each unit puts into its bins.
  template <class F, class W>
  __device__ crossing<W> cross_put(F const& own, W target) const {
    for (std::uint32_t d = Scope::rank(); d < radix; d += threads) {
      W const w = own(d);
      for (std::uint32_t l = 0; l < histogram<W>::limbs; ++l)
        s.limb[l][d] = static_cast<std::uint32_t>(w >> (32 * l));
    }
    sync_all();
    return cross_unit<false>([&](std::uint32_t d) { return bin<W>(d); }, [&](W) { return target; });
  }

  /// Leave: the bins are other units', who may go on only when they have been read.
  template <bool Leave, class F, class Target>
  __device__ auto cross_unit(F const& bin, Target const& aim) const {
    using W = decltype(bin(0u));
    constexpr std::uint32_t n = (radix + threads - 1) / threads;  // bins a member takes
    std::uint32_t const first = Scope::rank() * n;                // counted from the top
    W mine[n], sum = 0;
    unrolled<n>([&](std::uint32_t i) {
      mine[i] = first + i < radix ? bin(radix - 1 - first - i) : W{0};
      sum += mine[i];
    });
    if constexpr (Leave) sync_all();
    auto const [before, total] = scan_unit(sum);
    W const target = aim(total);
    if (total < target) return crossing<W>{0, total, 0};
    if (before < target && sum >= target - before) {
      W above = before;  // sum of the bins above the i-th
      unrolled<n>([&](std::uint32_t i) {
        if (above < target && mine[i] >= target - above)
          s.crossed = {radix - 1 - first - i, above, mine[i]};
        above += mine[i];
      });
    }
    Scope::sync();
    return crossing<W>{s.crossed.digit, static_cast<W>(s.crossed.above),
                       static_cast<W>(s.crossed.at)};
  }

  scratch& s;

 private:
  std::uint32_t which = 0, many = 1;  // unit: read once, since special registers are slow
  mutable bool part_turn = false, word_turn = false;
};

}  // namespace v0
}  // namespace cutoff
