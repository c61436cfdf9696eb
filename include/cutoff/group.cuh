#pragma once
// The groups of the device: warp, block and cluster, on the contract of group.hpp.
//
//  1. One class, team, is all three. Its scope says who the members are: the threads of a unit (a
//     warp or a block) that shares memory, times the number of units (1, or a cluster's blocks).
//  2. Every collective is one CUB scan over a unit, whose aggregate all members get; sum and max
//     are scans of which only the aggregate is used. Units exchange one word each on top.
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

#include <cooperative_groups.h>
#include <nv/target>

#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_scan.cuh>

#include "group.hpp"

namespace cutoff {
inline namespace v0 {

/// Scope of a warp: 32 threads.
struct warp_scope {
  static constexpr std::uint32_t threads = 32, units = 1;
  template <class W>
  using scan = cub::WarpScan<W>;

  __device__ static std::uint32_t rank() { return threadIdx.x % threads; }
  __device__ static void sync() { __syncwarp(); }
  __device__ static std::uint32_t index_in_block() { return threadIdx.x / threads; }
  __device__ static std::int64_t index_in_grid() {
    return std::int64_t{blockIdx.x} * (blockDim.x / threads) + index_in_block();
  }
  __device__ static std::int64_t groups_in_grid() {
    return std::int64_t{gridDim.x} * (blockDim.x / threads);
  }
};

/// Scope of a block in one dimension.
template <std::uint32_t Threads>
struct block_scope {
  static_assert(Threads % 32 == 0 && Threads <= 1024,
                "a block has 32 to 1024 threads, in whole warps");
  static constexpr std::uint32_t threads = Threads, units = 1;
  template <class W>
  using scan = cub::BlockScan<W, Threads, cub::BLOCK_SCAN_WARP_SCANS>;

  __device__ static std::uint32_t rank() { return threadIdx.x; }
  __device__ static void sync() { __syncthreads(); }
  __device__ static std::uint32_t index_in_block() { return 0; }
  __device__ static std::int64_t index_in_grid() { return blockIdx.x; }
  __device__ static std::int64_t groups_in_grid() { return gridDim.x; }
};

/// Scope of a cluster in one dimension: Blocks blocks that share memory across multiprocessors.
template <std::uint32_t Threads, std::uint32_t Blocks>
struct cluster_scope : block_scope<Threads> {
  static_assert(Blocks >= 2 && Blocks <= 16, "a cluster has 2 to 16 blocks");
  static constexpr std::uint32_t units = Blocks;

  __device__ static std::uint32_t unit() {
    NV_IF_ELSE_TARGET(NV_PROVIDES_SM_90, (return cooperative_groups::cluster_group::block_rank();),
                      (__trap(); return 0;))
  }
  __device__ static void sync_units() {
    NV_IF_TARGET(NV_PROVIDES_SM_90, (cooperative_groups::cluster_group::sync();))
  }
  /// The same shared object in another block of the cluster.
  template <class S>
  __device__ static S& in_unit(S& own, std::uint32_t unit) {
    NV_IF_ELSE_TARGET(NV_PROVIDES_SM_90,
                      (return *cooperative_groups::cluster_group::map_shared_rank(&own, unit);),
                      (return own;))
  }
  __device__ static std::int64_t index_in_grid() { return blockIdx.x / Blocks; }
  __device__ static std::int64_t groups_in_grid() { return gridDim.x / Blocks; }
};

/// A group of device threads. Every thread of the scope takes part in every collective.
template <class Scope>
class team {
 public:
  using scope = Scope;
  static constexpr std::uint32_t threads = Scope::threads, units = Scope::units;

  /// Shared memory of one unit: of one warp, or of one block.
  struct scratch {
    union {
      typename Scope::template scan<std::uint32_t>::TempStorage w32;
      typename Scope::template scan<std::uint64_t>::TempStorage w64;
      typename Scope::template scan<uint128>::TempStorage w128;
    } scan;
    std::uint32_t limb[4][radix];
    crossing<uint128> crossed;
    uint128 word[units];  // what each unit has to tell
  };

  /// Bins in the scratch of the group: one histogram at a time.
  template <class W>
  struct histogram {
    static constexpr std::uint32_t limbs = sizeof(W) / 4;
    __host__ __device__ explicit histogram(team const&) {}
  };

  __host__ __device__ explicit team(scratch& own) : s(own) {}

  __host__ __device__ std::uint32_t rank() const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return unit() * threads + Scope::rank();), (return 0;))
  }
  __host__ __device__ std::uint32_t size() const { return units * threads; }

  template <class W>
  __host__ __device__ scanned<W> scan(W x) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return scan_all(x);), (return {W{0}, x};))
  }
  template <class W>
  __host__ __device__ W sum(W x) const {
    return scan(x).total;
  }
  __host__ __device__ std::uint32_t max(std::uint32_t x) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return max_all(x);), (return x;))
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
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return cross_all(target);), (return {0, target, 0};))
  }

 private:
  struct larger {
    __device__ std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
      return a > b ? a : b;
    }
  };

  __device__ static std::uint32_t unit() {
    if constexpr (units > 1)
      return Scope::unit();
    else
      return 0;
  }

  template <class W>
  __device__ auto& storage() const {
    if constexpr (sizeof(W) == 4)
      return s.scan.w32;
    else if constexpr (sizeof(W) == 8)
      return s.scan.w64;
    else
      return s.scan.w128;
  }

  /// The words of all units, one from each, in this unit's scratch until the next exchange.
  template <class W>
  __device__ uint128 const* exchange(W word) const {
    Scope::sync_units();  // the words of the last exchange have been read
    if (Scope::rank() < units) Scope::in_unit(s.word, Scope::rank())[unit()] = word;
    Scope::sync_units();
    return s.word;
  }

  /// Scan within the unit.
  template <class W>
  __device__ scanned<W> scan_unit(W x) const {
    scanned<W> result;
    typename Scope::template scan<W>(storage<W>()).ExclusiveSum(x, result.before, result.total);
    Scope::sync();
    return result;
  }

  template <class W>
  __device__ scanned<W> scan_all(W x) const {
    scanned<W> result = scan_unit(x);
    if constexpr (units > 1) {
      auto const* words = exchange(result.total);  // [units]
      result.total = 0;
      for (std::uint32_t u = 0; u < units; ++u) {
        auto const word = static_cast<W>(words[u]);
        if (u < unit()) result.before += word;
        result.total += word;
      }
    }
    return result;
  }

  __device__ std::uint32_t max_all(std::uint32_t x) const {
    std::uint32_t before, most;
    typename Scope::template scan<std::uint32_t>(s.scan.w32)
        .ExclusiveScan(x, before, 0u, larger{}, most);
    Scope::sync();
    if constexpr (units > 1) {
      auto const* words = exchange(most);  // [units]
      for (std::uint32_t u = 0; u < units; ++u)
        most = larger{}(most, static_cast<std::uint32_t>(words[u]));
    }
    return most;
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
  __device__ crossing<W> cross_all(W target) const {
    constexpr std::uint32_t n = (radix + threads - 1) / threads;  // bins a member takes
    std::uint32_t const first = Scope::rank() * n;                // counted from the top
    if constexpr (units > 1)
      Scope::sync_units();  // all adds are done, here and everywhere
    else
      Scope::sync();
    W mine[n] = {}, sum = 0;
    for (std::uint32_t i = 0; i < n && first + i < radix; ++i)
      sum += mine[i] = bin<W>(radix - 1 - first - i);
    if constexpr (units > 1) Scope::sync_units();  // before anyone clears, or leaves
    auto const [before, total] = scan_unit(sum);
    if (total < target) return {0, total, 0};
    W above = before;  // sum of the bins above the i-th
    for (std::uint32_t i = 0; i < n; above += mine[i++])
      if (above < target && mine[i] >= target - above)
        s.crossed = {radix - 1 - first - i, above, mine[i]};
    Scope::sync();
    return {s.crossed.digit, static_cast<W>(s.crossed.above), static_cast<W>(s.crossed.at)};
  }

  scratch& s;
};

/// A warp, a block of Threads threads, a cluster of Blocks such blocks (sm_90 and newer).
using warp = team<warp_scope>;
template <std::uint32_t Threads>
using block = team<block_scope<Threads>>;
template <std::uint32_t Threads, std::uint32_t Blocks>
using cluster = team<cluster_scope<Threads, Blocks>>;

}  // namespace v0
}  // namespace cutoff
