#pragma once
// Who works together on one row. An algorithm is written once, against the concept below, and runs
// on one thread (serial, here), a warp, a block or a cluster (group.cuh).
//
// The contract of every group g:
//  1. Members are numbered rank() in [0, size()); a sweep deals the row out by these numbers.
//  2. sum, max, scan, clear and cross are collective: all members call them, in the same order,
//     and all get the result. All but clear are barriers too: what a member had to read it has read,
//     and what it wrote to the shared memory of its block is seen by all. Of what it wrote to global
//     memory only its own block can be sure.
//  3. add, increment and slot are not collective: any member adds to a histogram between a clear
//     and the next cross, and takes slots between a restart, a barrier, and the next barrier.
//  4. Scratch belongs to the caller, one per group. The group's next collective may use it at once;
//     for anything else it is free after a barrier of the caller's.
//  5. Members leave together: the last thing that a cluster does is sync(), since no block may end
//     whose memory another one still reads.
//  6. Sums are of unsigned integers, so no result depends on the number or order of the members.

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

/// Length of a list, and a sum.
template <class W>
struct pooled {
  std::uint32_t n;
  W sum;
};

/// A short list of keys in descending order, and what one member tells the others of it.
struct sorted_list {
  std::uint32_t key[radix], alike[radix], pivot;
  std::uint64_t first, last;
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
    return cross_bins([&](std::uint32_t d) { return h.bin[d]; }, [&](W) { return target; });
  }

  // What a record of tiles (tiles.hpp) asks for on top. Members that share memory are a unit: a warp,
  // a block, a cluster's block. Each unit has a share of the row, and a list, slots and totals of
  // its own.
  static constexpr std::uint32_t threads = 1;  // of a unit
  __host__ __device__ std::uint32_t units() const { return 1; }
  __host__ __device__ std::uint32_t unit() const { return 0; }
  __host__ __device__ std::uint32_t unit_rank() const { return 0; }
  /// Barriers of all, and of the unit; a sum over the unit.
  __host__ __device__ void sync() const {}
  __host__ __device__ void sync_unit() const {}
  template <class W>
  __host__ __device__ W sum_unit(W x) const {
    return x;
  }
  /// By any member, of the unit's shared memory.
  __host__ __device__ std::uint32_t increment(std::uint32_t& x) const { return x++; }
  __host__ __device__ void mark(std::uint32_t& x, std::uint32_t bits) const { x |= bits; }
  /// totals()[d] = counts[d], d < radix, added up over all units; totals()[radix] = *odd, where there
  /// is one. Words of shared memory, counts aligned to 16 bytes; after clear_totals and a barrier of
  /// all. A barrier of the unit at the end: all have to meet before one changes its counts.
  __host__ __device__ void clear_totals() const {
    for (std::uint32_t& t : total) t = 0;
  }
  __host__ __device__ void add_up(std::uint32_t const* counts, std::uint32_t const* odd) const {
    for (std::uint32_t d = 0; d < radix; ++d) total[d] += counts[d];
    if (odd) total[radix] += *odd;
  }
  __host__ __device__ std::uint32_t* totals() const { return total; }
  /// cross by each unit for itself, of weights bin(d) that all units agree about; the target is a
  /// function of their total.
  template <class F, class Target>
  __host__ __device__ auto cross_bins(F bin, Target aim) const {
    using W = decltype(bin(0u));
    W all = 0;
    for (std::uint32_t d = 0; d < radix; ++d) all += bin(d);
    W const target = aim(all);
    NV_IF_TARGET(NV_IS_HOST, (assert(target != 0);))
    W above = 0;
    for (std::uint32_t d = radix; d-- > 0; above += bin(d))  // above = sum of bins over d
      if (bin(d) >= target - above) return crossing<W>{d, above, bin(d)};
    return crossing<W>{0, above, 0};
  }
  /// The same, of weights that add up over all units, each of which asks its members for its own bin(d).
  /// All may still read those when it ends: what shares the scratch waits for a barrier of all.
  template <class F, class W>
  __host__ __device__ crossing<W> cross_sums(F bin, W target) const {
    return cross_bins(bin, [&](W) { return target; });
  }
  /// What a word of shared memory adds up to over all units.
  __host__ __device__ std::uint32_t over_units(std::uint32_t const& word) const { return word; }
  /// Slots 0, 1, ... to whoever asks, n in a row; how many, after a barrier. Begun again from most + 1
  /// on if there were more than that, so that who counts on them sees it.
  __host__ __device__ void restart(std::uint32_t most = ~0u) const {
    taken = taken > most ? most + 1 : 0;
  }
  __host__ __device__ std::uint32_t slot(std::uint32_t n = 1) const { return (taken += n) - n; }
  __host__ __device__ std::uint32_t slots() const { return taken; }
  /// Lets kept() be slots(), also when that begins again.
  __host__ __device__ void keep() const { kept_slots = taken; }
  __host__ __device__ std::uint32_t kept() const { return kept_slots; }
  /// Numbers [radix] for what is in the first slots.
  __host__ __device__ std::uint32_t* where() const { return index; }
  /// Has each unit append to its list, which fills its slots, those of all others if they are no longer
  /// than so much in all; their length; and if asked for the sum of x over all members. Barriers of all;
  /// all have to meet before one changes its list. A list of at most `radix` ends with 16 zeros.
  template <class W>
  __host__ __device__ pooled<W> pool(std::uint32_t*, std::uint32_t, W x, bool) const {
    return {taken, x};
  }
  /// Begins to bring so many packs to the L2 cache, where there is a way to.
  template <class P>
  __host__ __device__ void prefetch(P const*, std::uint32_t) const {}
  /// Begins to write zeros to so many packs; filled() waits for it. zeros: n packs of them in shared
  /// memory, set by blank_zeros before a barrier, from which they may be copied.
  template <class P>
  __host__ __device__ void blank_zeros(P*, std::uint32_t) const {}
  template <class P>
  __host__ __device__ void fill(P* to, std::uint32_t packs, P const*, std::uint32_t) const {
    for (std::uint32_t i = 0; i < packs; ++i) to[i] = P{};
  }
  __host__ __device__ void filled() const {}
  /// most[u] of four neighbours each: calls f(u, the largest of them) once for each u.
  template <class F>
  __host__ __device__ void tile_maxima(std::uint32_t const (&most)[4], F f) const {
    std::uint32_t largest = 0;
    for (std::uint32_t key : most) largest = key > largest ? key : largest;
    f(0, largest);
  }
  /// Calls f(pick) for so many tiles at a time that reach the mark, pick(u) being the u-th pack of a
  /// member, u < 4, or none: ~0. Members of a warp call together.
  template <class F>
  __host__ __device__ void visit(std::uint16_t const* most, std::uint32_t tiles, std::uint32_t mark,
                                 F f) const {
    for (std::uint32_t t = 0; t < tiles; ++t)
      if (most[t] >= mark) f([t](std::uint32_t u) { return 4 * t + u; });
  }

 private:
  mutable std::uint32_t taken = 0, kept_slots = 0, total[radix + 1], index[radix];
};

static_assert(group<serial>);

}  // namespace v0
}  // namespace cutoff
