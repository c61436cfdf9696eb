#pragma once
// The groups of the device: warp, block and cluster. One class, team, is all three: the collectives of
// the contract, and what tiles.hpp asks for on top of them. What concerns a row's tiles is a unit's own
// affair; what all units share, the counts of the list's slots and the list itself, lies in the first.

#include <nv/target>

#include "collectives.cuh"

namespace cutoff {
inline namespace v0 {

/// A group of device threads.
template <class Scope>
class team : public collectives<Scope> {
  using base = collectives<Scope>;
  using base::s;

 public:
  using base::base, base::threads, base::units, base::unit, base::cross;
  using one_unit = team<typename Scope::one_unit>;

  __host__ __device__ std::uint32_t unit_rank() const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return Scope::rank();), (return 0;))
  }
  __host__ __device__ void sync() const { NV_IF_TARGET(NV_IS_DEVICE, (base::sync_all();)) }
  __host__ __device__ void increment(std::uint32_t& x) const {
    NV_IF_TARGET(NV_IS_DEVICE, (atomicAdd(&x, 1u);))
  }
  __host__ __device__ void mark(std::uint32_t& x, std::uint32_t bits) const {
    NV_IF_TARGET(NV_IS_DEVICE, (atomicOr(&x, bits);))
  }
  template <std::uint32_t Bins>
  __host__ __device__ void merge(std::uint32_t* counts) const {
    NV_IF_TARGET(NV_IS_DEVICE, (merge_units<Bins>(counts);))
  }
  /// cross, of whatever has a weight for each of so many bins, by each unit for itself: they are to
  /// agree about all bins, as after merge.
  template <std::uint32_t Bins, class F, class W>
  __host__ __device__ crossing<W> cross(F bin, W target) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return base::template cross_unit<Bins>(bin, target);),
                      (return {0, target, 0};))
  }
  template <class W>
  __host__ __device__ W unit_sum(W x) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return base::reduce_unit(x, cuda::std::plus<>{});),
                      (return x;))
  }
  __host__ __device__ std::uint32_t unit_max(std::uint32_t x) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return base::reduce_unit(x, cuda::maximum<>{});), (return x;))
  }
  /// No slots taken, nothing added up: seen after the next barrier.
  __host__ __device__ void restart() const {
    NV_IF_TARGET(NV_IS_DEVICE, (if (Scope::rank() == 0) {
                   s.slots = 0;
                   s.tally[0] = s.tally[1] = 0;
                 }))
  }
  __host__ __device__ std::uint32_t slot() const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return atomicAdd(&first_unit(s.slots), 1u);), (return 0;))
  }
  /// By a whole warp: so many slots in a row for each member.
  __host__ __device__ std::uint32_t slot(std::uint32_t n) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return slot_of_warp(n);), (return 0;))
  }
  __host__ __device__ std::uint32_t slots() const { return first_unit(s.slots); }
  /// Tells all units a number of this one's: seen after the next barrier.
  __host__ __device__ void tell(float x) const { NV_IF_TARGET(NV_IS_DEVICE, (tell_units(x);)) }
  __host__ __device__ float told() const {
    float total = 0;
    for (std::uint32_t u = 0; u < units; ++u) total += s.number[u];
    return total;
  }
  __host__ __device__ std::uint64_t* weights() const { return s.weights; }
  /// By a single unit: one member gives a result that all get.
  template <class R>
  __host__ __device__ void tell_result(R const& x, bool mine) const {
    if (mine) *reinterpret_cast<R*>(s.told) = x;
  }
  template <class R>
  __host__ __device__ R result() const {
    sync();
    return *reinterpret_cast<R const*>(s.told);
  }
  /// Sum over some neighbours, a power of two up to a warp.
  template <std::uint32_t N, class W>
  __host__ __device__ W sum_of(W x) const {
    NV_IF_TARGET(NV_IS_DEVICE, (for (std::uint32_t step = 1; step < N; step *= 2) x +=
                                __shfl_xor_sync(~0u, x, step);))
    return x;
  }
  template <class W>
  __host__ __device__ void tally(int i, W x) const {
    NV_IF_TARGET(NV_IS_DEVICE,
                 (x = base::reduce_warp(x, cuda::std::plus<>{}); if (Scope::rank() % 32 == 0)
                      atomicAdd(&first_unit(s.tally[i]), static_cast<unsigned long long>(x));))
  }
  __host__ __device__ std::uint64_t tallied(int i) const { return first_unit(s.tally[i]); }
  /// An object in the shared memory of unit 0 instead of the unit's own.
  template <class X>
  __host__ __device__ X& first_unit(X& own) const {
    if constexpr (units > 1)
      return Scope::in_unit(own, 0);
    else
      return own;
  }
  /// most[u] of four neighbours each: calls f(u, the largest of them) once for each u.
  template <class F>
  __host__ __device__ void tile_maxima(std::uint32_t const (&most)[4], F f) const {
    NV_IF_TARGET(NV_IS_DEVICE, (f(Scope::rank() % 4, largest_of_four(most));))
  }
  template <class F>
  __host__ __device__ void visit(std::uint16_t const* most, std::uint32_t tiles, std::uint32_t mark,
                                 F f) const {
    NV_IF_TARGET(NV_IS_DEVICE, (visit_tiles(most, tiles, mark, f);))
  }
  /// f(u) by unit 0 as a group u of its own: its result, in all.
  template <class F>
  __host__ __device__ auto by_one_unit(F f) const {
    if constexpr (units == 1) {
      return f(*this);
    } else {
      using result = decltype(f(serial{}));
      static_assert(sizeof(result) <= sizeof(s.told));
      NV_IF_TARGET(NV_IS_DEVICE, (tell_all<result>(f);))
      return *reinterpret_cast<result const*>(s.told);
    }
  }

 private:
  /// Of most[u] in four neighbours each, the largest most[rank % 4]: two exchanges with the next
  /// lane, one with the pair of lanes beside.
  __device__ std::uint32_t largest_of_four(std::uint32_t const (&most)[4]) const {
    bool const odd = Scope::rank() & 1, upper = Scope::rank() & 2;
    auto const swap = [](std::uint32_t keep, std::uint32_t give, int lanes) {
      return cuda::maximum<>{}(keep, __shfl_xor_sync(~0u, give, lanes));
    };
    std::uint32_t const a = swap(odd ? most[1] : most[0], odd ? most[0] : most[1], 1);
    std::uint32_t const b = swap(odd ? most[3] : most[2], odd ? most[2] : most[3], 1);
    return swap(upper ? b : a, upper ? a : b, 2);
  }

  /// A warp takes 128 tiles at a time, queues those that reach a mark, and visits 32 of those at a
  /// time: f(pick) with pick(u) the pack of a member, u < 4.
  template <class F>
  __device__ void visit_tiles(std::uint16_t const* most, std::uint32_t tiles, std::uint32_t mark,
                              F const& f) const {
    std::uint32_t const lane = Scope::rank() % 32;
    std::uint16_t* const queue = s.queue[Scope::rank() / 32];
    std::uint32_t held = 0;
    Scope::sync();  // the queue's memory is free
    for (std::uint32_t base = 4 * (Scope::rank() - lane);; base += 4 * threads) {
      bool const last = base >= tiles;
      std::uint32_t reached = 0;
      unrolled<4>([&](std::uint32_t w) {
        std::uint32_t const t = base + 32 * w + lane;
        if (t < tiles && most[t] >= mark) reached |= 1u << w;
      });
      if (!last && !__any_sync(~0u, reached)) continue;
#pragma unroll 1
      for (std::uint32_t w = 0; w < 4; ++w) {
        bool const take = reached >> w & 1;
        unsigned const taken = __ballot_sync(~0u, take);
        if (take)
          queue[held + __popc(taken & ((1u << lane) - 1))] =
              static_cast<std::uint16_t>(base + 32 * w + lane);
        held += __popc(taken);
        __syncwarp();
        if (held >= 32 || (last && held > 0)) {
          f([&](std::uint32_t u) {
            std::uint32_t const i = 8 * u + lane / 4;
            return i < held ? 4u * queue[i] + lane % 4 : ~0u;
          });
          __syncwarp();
          std::uint16_t const rest = queue[32 + lane];
          __syncwarp();
          queue[lane] = rest;
          held = held > 32 ? held - 32 : 0;
          __syncwarp();
        }
        if (last) return;
      }
    }
  }

  __device__ std::uint32_t slot_of_warp(std::uint32_t n) const {
    if (!__any_sync(~0u, n != 0)) return 0;
    typename cub::WarpScan<std::uint32_t>::TempStorage none;  // a whole warp needs none
    std::uint32_t before, total, first = 0;
    cub::WarpScan<std::uint32_t>(none).ExclusiveSum(n, before, total);
    if (Scope::rank() % 32 == 0) first = atomicAdd(&first_unit(s.slots), total);
    return __shfl_sync(~0u, first, 0) + before;
  }

  __device__ void tell_units(float x) const {
    if constexpr (units == 1) {
      if (Scope::rank() == 0) s.number[0] = x;
    } else if (Scope::rank() < units) {
      Scope::in_unit(s.number, Scope::rank())[unit()] = x;
    }
  }

  template <class R, class F>
  __device__ void tell_all(F const& f) const {
    base::sync_all();
    if (unit() == 0) {
      R const result = f(one_unit(reinterpret_cast<typename one_unit::scratch&>(s)));
      Scope::sync();  // all have read what they told one another
      if (Scope::rank() < units)
        *reinterpret_cast<R*>(Scope::in_unit(s.told, Scope::rank())) = result;
    }
    base::sync_all();
  }

  /// Adds counts up over all units: each unit does a slice, for all.
  template <std::uint32_t Bins>
  __device__ void merge_units(std::uint32_t* counts) const {
    base::sync_all();
    if constexpr (units > 1) {
      constexpr std::uint32_t slice = (Bins + units - 1) / units;
      for (std::uint32_t i = Scope::rank(); i < slice && unit() * slice + i < Bins; i += threads) {
        std::uint32_t const d = unit() * slice + i;
        std::uint32_t part[units], total = 0;
        unrolled<units>([&](std::uint32_t u) { part[u] = (&Scope::in_unit(*counts, u))[d]; });
        unrolled<units>([&](std::uint32_t u) { total += part[u]; });
        unrolled<units>([&](std::uint32_t u) { (&Scope::in_unit(*counts, u))[d] = total; });
      }
      base::sync_all();
    }
  }
};

/// A warp, a block of Threads threads, a cluster of Blocks such blocks (sm_90 and newer).
using warp = team<warp_scope>;
template <std::uint32_t Threads>
using block = team<block_scope<Threads>>;
template <std::uint32_t Threads, std::uint32_t Blocks>
using cluster = team<cluster_scope<Threads, Blocks>>;

}  // namespace v0
}  // namespace cutoff
