#pragma once
// The groups of the device: warp, block and cluster. One class, team, is all three: the collectives of
// the contract, and what tiles.hpp asks for on top of them. What concerns a row's tiles is a unit's own
// affair: its share of the row, its list, its slots. Units exchange counts and short lists, and then
// all do the same.

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
  using base::base, base::threads, base::most_units, base::unit, base::units, base::cross;

  __host__ __device__ std::uint32_t unit_rank() const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return Scope::rank();), (return 0;))
  }
  __host__ __device__ void sync() const { NV_IF_TARGET(NV_IS_DEVICE, (base::sync_all();)) }
  __host__ __device__ void sync_unit() const { NV_IF_TARGET(NV_IS_DEVICE, (Scope::sync();)) }
  __host__ __device__ std::uint32_t increment(std::uint32_t& x) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return atomicAdd(&x, 1u);), (return x++;))
  }
  __host__ __device__ void mark(std::uint32_t& x, std::uint32_t bits) const {
    NV_IF_TARGET(NV_IS_DEVICE, (atomicOr(&x, bits);))
  }
  __host__ __device__ void clear_totals() const {
    NV_IF_TARGET(NV_IS_DEVICE, (for (std::uint32_t d = Scope::rank(); d < radix + 4; d += threads)
                                    s.totals[d] = 0;))
  }
  __host__ __device__ void add_up(std::uint32_t const* counts, std::uint32_t const* odd) const {
    NV_IF_TARGET(NV_IS_DEVICE, (add_units_up(counts, odd);))
  }
  __host__ __device__ std::uint32_t* totals() const { return s.totals; }
  template <class F, class Target>
  __host__ __device__ auto cross_bins(F bin, Target target) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return base::template cross_unit<false>(bin, target);),
                      (return crossing<decltype(bin(0u))>{};))
  }
  __host__ __device__ std::uint32_t over_units(std::uint32_t const& word) const {
    std::uint32_t sum = 0;
    NV_IF_TARGET(NV_IS_DEVICE,
                 (for (std::uint32_t u = 0; u < units(); ++u) sum += base::of_unit(word, u);))
    return sum;
  }
  template <class F, class W>
  __host__ __device__ crossing<W> cross_sums(F bin, W target) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return base::cross_put(bin, target);), (return {};))
  }
  template <class W>
  __host__ __device__ W sum_unit(W x) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return base::reduce_unit(x, cuda::std::plus<>{});),
                      (return x;))
  }
  template <class W>
  __host__ __device__ scanned<W> scan_unit(W x) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return base::scan_unit(x);), (return {W{0}, x};))
  }
  __host__ __device__ void restart(std::uint32_t most = ~0u) const {
    NV_IF_TARGET(NV_IS_DEVICE, (if (Scope::rank() == 0) s.slots = s.slots > most ? most + 1 : 0;))
  }
  __host__ __device__ std::uint32_t slot(std::uint32_t n = 1) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return atomicAdd(&s.slots, n);), (return 0;))
  }
  __host__ __device__ std::uint32_t slots() const { return s.slots; }
  __host__ __device__ void keep() const {
    NV_IF_TARGET(NV_IS_DEVICE, (if (Scope::rank() == 0) s.kept = s.slots;))
  }
  __host__ __device__ std::uint32_t kept() const { return s.kept; }
  __host__ __device__ std::uint32_t* where() const { return s.where; }
  __host__ __device__ auto& sorted() const { return s.sorted; }
  template <class W>
  __host__ __device__ pooled<W> pool(std::uint32_t* list, std::uint32_t most, W x,
                                     bool sums) const {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return pool_units(list, most, x, sums);), (return {0, x};))
  }
  template <class P>
  __host__ __device__ void blank_zeros(P* zeros, std::uint32_t n) const {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (for (std::uint32_t i = Scope::rank(); i < n; i += threads) zeros[i] = P{};
                  asm volatile("fence.proxy.async.shared::cta;" ::
                                   : "memory");))
  }
  template <class P>
  __host__ __device__ void prefetch(P const* from, std::uint32_t packs) const {
    NV_IF_TARGET(
        NV_PROVIDES_SM_90,
        (if (Scope::rank() == 0 && packs != 0) asm volatile(
             "cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)),
             "r"(static_cast<std::uint32_t>(sizeof(P) * packs))
             : "memory");))
  }
  template <class P>
  __host__ __device__ void fill(P* to, std::uint32_t packs, P const* zeros, std::uint32_t n) const {
    NV_IF_TARGET(NV_IS_DEVICE, (fill_unit(to, packs, zeros, n);))
  }
  __host__ __device__ void filled() const {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (if (Scope::rank() == 0) asm volatile("cp.async.bulk.wait_group 0;" ::
                                                           : "memory");))
    NV_IF_TARGET(NV_IS_DEVICE, (Scope::sync();))
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

  __device__ void add_units_up(std::uint32_t const* counts, std::uint32_t const* odd) const {
    constexpr std::uint32_t deep = 4;
    for (std::uint32_t i = Scope::rank(); i < radix * units(); i += deep * threads) {
      std::uint32_t x[deep];
      unrolled<deep>([&](std::uint32_t e) {
        std::uint32_t const j = i + e * threads;
        x[e] = j < radix * units() ? base::of_unit(counts[j % radix], j / radix) : 0;
      });
      unrolled<deep>([&](std::uint32_t e) {
        if (x[e]) atomicAdd(&s.totals[(i + e * threads) % radix], x[e]);
      });
    }
    if (odd && Scope::rank() < units())
      atomicAdd(&s.totals[radix], base::of_unit(*odd, Scope::rank()));
    Scope::sync();
  }

  template <class W>
  __device__ pooled<W> pool_units(std::uint32_t* list, std::uint32_t most, W x, bool sums) const {
    W sum = 0;
    if (sums)
      sum = base::reduce_unit(x, cuda::std::plus<>{});
    else
      Scope::sync();
    std::uint32_t const mine = s.slots;
    std::uint32_t n = mine;
    if constexpr (most_units > 1)
      if (units() > 1) {
        uint128 const told = base::exchange(uint128{mine} << 64 | sum);
        if (sums) sum = base::reduce_warp(static_cast<W>(told), cuda::std::plus<>{});
        auto const here = static_cast<std::uint32_t>(told >> 64);
        auto const [before, total] = base::scan_warp(here);
        n = total;
        std::uint32_t const lane = Scope::rank() % 32;  // a warp copies the list of a unit
        for (std::uint32_t u = Scope::rank() / 32; u < units(); u += base::warps) {
          std::uint32_t const length = __shfl_sync(~0u, here, u),
                              to = __shfl_sync(~0u, before, u) + (u < unit() ? mine : 0);
          if (u != unit() && n <= most)
            for (std::uint32_t i = lane; i < length; i += 32)
              list[to + i] = base::of_unit(list[i], u);
        }
      }
    if (Scope::rank() < 16 && n <= radix) list[n + Scope::rank()] = 0;
    Scope::sync();
    return {n, sum};
  }

  template <class P>
  __device__ void fill_unit(P* to, std::uint32_t packs, P const* zeros, std::uint32_t n) const {
    NV_IF_ELSE_TARGET(
        NV_PROVIDES_SM_90,
        (if (Scope::rank() != 0) return; for (std::uint32_t i = 0; i < packs; i += n) asm volatile(
             "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                 __cvta_generic_to_global(to + i)),
             "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(zeros))),
             "r"(static_cast<std::uint32_t>(sizeof(P) * (packs - i < n ? packs - i : n)))
             : "memory");
         asm volatile("cp.async.bulk.commit_group;" ::
                          : "memory");),
        (for (std::uint32_t i = Scope::rank(); i < packs; i += threads) to[i] = P{};))
  }
};

/// A warp, a block of Threads threads, a cluster of up to Blocks such blocks (one before sm_90).
using warp = team<warp_scope>;
template <std::uint32_t Threads>
using block = team<block_scope<Threads>>;
template <std::uint32_t Threads, std::uint32_t Blocks>
using cluster = team<cluster_scope<Threads, Blocks>>;

}  // namespace v0
}  // namespace cutoff
