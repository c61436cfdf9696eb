#pragma once
// The pivot of a row that has been read once: what survey left behind says where to look.

#include <cstdint>

#include "tiles.hpp"

namespace cutoff {
inline namespace v0 {

/// Keys of a unit's share of a row that lie in a range, as a row of their own.
template <element T, domain D>
struct listed {
  using value = std::uint32_t;
  static constexpr std::uint32_t lowest = row<T, D>::lowest;

  std::uint32_t const* keys;  // [length]
  std::uint32_t length;

  __host__ __device__ static std::uint32_t key(std::uint32_t k) { return k; }
  __host__ __device__ static bool counts(std::uint32_t) { return true; }
};
template <group G, element T, domain D, class F>
__host__ __device__ void sweep(G const& g, listed<T, D> r, F f) {
  for (std::uint32_t i = g.unit_rank(); i < r.length; i += G::threads) f(i, r.keys[i]);
}

/// A range in which a pivot lies, or is guessed to lie; how many keys are in it, and from it up.
template <class W>
struct bracket : range<W> {
  std::uint32_t n, reaching;
};

/// What the group's totals count: bin d has the keys from low + (d << shift), the last of all is last.
/// Bins over that have what does not count; keys below least are of no interest.
struct division {
  std::uint32_t low, last;
  int shift;
  std::uint32_t least = low;

  __host__ __device__ std::uint32_t from(std::uint32_t d) const {
    std::uint32_t const key = low + (d << shift);
    return key > least ? key : least;
  }
  __host__ __device__ std::uint32_t to(std::uint32_t d) const {
    std::uint32_t const key = low + (d << shift) + ((1u << shift) - 1);
    return key < last ? key : last;
  }
  template <class G>
  __host__ __device__ std::uint32_t count(G const& g, std::uint32_t d) const {
    return d <= (last - low) >> shift && d >= (least - low) >> shift ? g.totals()[d] : 0;
  }
  template <class W>
  __host__ __device__ bracket<W> bin(std::uint32_t d, W above, std::uint32_t n,
                                     std::uint32_t reaching) const {
    return {{from(d), to(d), above}, n, reaching};
  }
};

/// By count: the bin that crosses the target.
template <group G>
__host__ __device__ bracket<std::uint32_t> narrowed(G const& g, count, std::uint32_t target,
                                                    division in, std::uint32_t above,
                                                    std::uint32_t = 0, std::uint32_t = 0) {
  auto const c = g.cross_bins([&](std::uint32_t d) { return in.count(g, d); },
                              [&](std::uint32_t) { return target - above; });
  return in.bin(c.digit, above + c.above, c.at, c.above + c.at);
}

/// Whether a sum is what it should be, to a sixteenth.
template <class W>
__host__ __device__ bool nearly(W sum, W expected) {
  return sum - expected / 16 * 15 < expected / 8;
}

/// The mass of so many keys of a bin, if each weighs as much as its middle; in the low bits, which a mass
/// has to spare, how many they are.
template <class W>
inline constexpr W counted_bits = (W{1} << 21) - 1;
template <element T, class W>
__host__ __device__ W guessed_mass(mass<T, W> const& m, std::uint32_t n, std::uint32_t from,
                                   std::uint32_t to) {
  std::uint32_t const middle = (to - from) / 2;  // of two keys, where bins are even
  W const each = (m.weigh(from + middle, n != 0) + m.weigh(to - middle, n != 0)) / 2;
  return static_cast<W>((n * each & ~counted_bits<W>)+n);
}

/// Of the n keys of a bin some are left, around the place where the target is crossed if all lie evenly:
/// so many to either side.
template <class W>
__host__ __device__ range<W> around(range<W> bin, std::uint32_t n, crossing<W> c, W crossed,
                                    std::uint32_t some) {
  int const drop = bit_length(c.at) > 16 ? bit_length(c.at) - 16 : 0;
  auto const part = static_cast<std::uint32_t>((crossed - c.above) >> drop << 16) /
                    (static_cast<std::uint32_t>(c.at >> drop) + 1);
  constexpr std::uint32_t finer = 16, most = 2;  // last digit of a quotient; bins, if n is small
  std::uint32_t const span = bin.last - bin.low, times = finer * n / some,
                      reach = span / (times > finer / most ? times : finer / most) * finer,
                      center = bin.last - static_cast<std::uint32_t>(W{span} * part >> 16);
  return {center > reach ? center - reach : 0, center + reach, bin.above};
}

/// By mass, a guess: the bin that crosses the target if every key weighs as much as the middle of its
/// bin. Where it is known what lies above the bins and what with them, the guess starts from the end
/// that has less between it and the pivot. all: that, or 0; if it is not far from what was guessed.
/// Of a bin with many keys, but less than `dense`, only some are taken, around the place where the
/// target is crossed if they lie evenly: dense ones are likely not to.
template <group G, element T, class W>
__host__ __device__ bracket<W> narrowed(G const& g, mass<T, W> const& m, W target, division in,
                                        W above, W all, std::uint32_t dense) {
  auto const n = [&](std::uint32_t d) {  // of interest
    std::uint32_t const of_bin = in.count(g, d), span = in.to(d) - in.from(d) + 1;
    return span >> in.shift || of_bin == 0
               ? of_bin
               : static_cast<std::uint32_t>(std::uint64_t{of_bin} * span >> in.shift);
  };
  auto const guessed = [&](std::uint32_t d) { return guessed_mass(m, n(d), in.from(d), in.to(d)); };
  W crossed = 0;
  auto const aim = [&](W total) {
    W const wanted = target - above, rest = all - target;
    W const from_end = total > rest ? total - rest : 1;
    return crossed = nearly(total, all) && target < all && rest < wanted ? from_end : wanted;
  };
  auto const c = g.cross_bins(guessed, aim);
  bracket<W> bin = in.bin(c.digit, above, n(c.digit),
                          static_cast<std::uint32_t>((c.above + c.at) & counted_bits<W>));
  constexpr std::uint32_t least = 512;  // with 384 some guesses are wrong (bench/README.md)
  std::uint32_t const enough = bin.n / 8 > least ? bin.n / 8 : least;
  if (bin.n < dense && bin.n > enough && c.at != 0 && bin.low > row<T>::lowest) {
    range<W> const some = around<W>(bin, bin.n, c, crossed, enough / 2);
    bin.low = some.low > in.least ? some.low : in.least;
    bin.last = some.last < in.last ? some.last : in.last;
    bin.n = enough;
  }
  return bin;
}

/// Finds the pivot in a surveyed row by the descent: the way for guesses that were refuted. Not
/// inlined, and all by value, so that it costs the usual way no registers; but in relocatable code a
/// function of its own would not know how many its kernel has.
template <group G, element T, domain D, measure M, measure K, class W>
#ifdef __CUDACC_RDC__
[[gnu::always_inline]] inline
#else
[[gnu::noinline, gnu::visibility("hidden")]]
#endif
    __host__ __device__ auto
    find_by_descent(G const g, row<T, D> const r, M const m, W target, K const k) {
  pivot<W> const p = descend(g, r, m, target, all_keys<row<T, D>, W>());
  found<W, typename K::weight> const f{p, kept_measure(g, r, k, p.key)};
  g.sync();  // the caller's g does not know whose turn it is
  return f;
}

/// A finer bracket. Or, if the keys of the one looked at were all alike or had a bin each, the pivot: not
/// reached, its key means nothing.
template <class W, class X>
struct zoom {
  bracket<W> in;
  bool settled = false;
  found<W, X> pivot{};
};

/// Visits a bracket: within(over) is told of some entries how far their keys are over in.low, as arrays,
/// and has to look which are not beyond in.last. Returns what a member has seen above it, by k. Whole: all
/// tiles are visited.
template <bool Whole, group G, element T, domain D, measure K, class W, class F>
__host__ __device__ typename K::weight look(G const& g, tiled<T, D> const& r, K const& k,
                                            range<W> in, F within) {
  std::uint32_t const span = in.last - in.low, reach = r.highest - in.low;
  typename K::weight beyond = 0;
  auto const see = [&]<std::size_t N>(T const(&x)[N]) {
    std::uint32_t over[N];
    T above[N];  // what is not stays, as 0: no branch, so that the sums of many overlap
    unrolled<N>([&](std::uint32_t e) {
      over[e] = r.over(in.low, x[e]);
      above[e] = over[e] > span && over[e] <= reach ? x[e] : from_bits<T>(0);
    });
    beyond += k.weigh_values(above);
    within(over);
  };
  auto const packs = [&]<std::size_t N>(std::uint32_t const(&at)[N], pack<T> const(&x)[N]) {
    unrolled<N>([&](std::uint32_t u) {
      if (at[u] < r.share) see(x[u].at);
    });
  };
  if constexpr (Whole)
    visit_all<2 * together<T>>(g, r, packs);
  else
    visit_from<together<T>>(g, r, in.low, packs);
  r.singles(g, [&](std::uint32_t i) {
    T const alone[1] = {r.data[i]};
    see(alone);
  });
  return beyond;
}

/// Looks at a bracket again, by finer bins. What lies above it is known then: if that is the target or
/// more, the bracket comes back as it was.
template <group G, element T, domain D, measure M, measure K, class W>
__host__ __device__ auto zoomed(G const& g, tiled<T, D> const& r, M const& m, W target, K const& k,
                                bracket<W> in) {
  using X = typename K::weight;
  std::uint32_t const span = in.last - in.low;
  int const bits = bit_length(std::uint64_t{span}), shift = bits > 8 ? bits - 8 : 0;
  std::uint32_t* const counts = r.spare();
  g.sync();
  for (std::uint32_t d = g.unit_rank(); d < radix; d += G::threads) counts[d] = 0;
  g.sync_unit();
  std::uint32_t below_least = 0, most = 0;
  X beyond = look<false>(g, r, k, in, [&]<std::size_t N>(std::uint32_t const(&over)[N]) {
    unrolled<N>([&](std::uint32_t e) {
      if (over[e] > span) return;
      g.increment(counts[over[e] >> shift]);
      below_least = span - over[e] > below_least ? span - over[e] : below_least;
      most = over[e] > most ? over[e] : most;
    });
  });
  g.sync_unit();  // the totals' memory is free
  g.clear_totals();
  g.sync();
  g.add_up(counts, nullptr);
  if constexpr (!std::same_as<K, nothing>) beyond = g.sum(beyond);
  if constexpr (std::same_as<M, K>) in.above = beyond;
  zoom<W, X> z{in};
  if (in.above >= target) return z;  // a wrong guess, too low
  division const bins{in.low, in.last, shift};
  if (shift == 0) {
    auto const c = g.cross_bins(
        [&](std::uint32_t d) { return static_cast<W>(bins.count(g, d) * m.weigh(in.low + d)); },
        [&](W) { return static_cast<W>(target - in.above); });
    z.settled = true;
    z.pivot = {{in.low + c.digit, static_cast<W>(in.above + c.above), c.at}, beyond};
    if constexpr (std::same_as<M, K>) {
      z.pivot.kept += c.above + c.at;
    } else if constexpr (!std::same_as<K, nothing>) {
      X kept = 0;
      for (std::uint32_t d = c.digit + g.unit_rank(); d < radix; d += G::threads)
        kept += bins.count(g, d) * k.weigh(in.low + d);
      z.pivot.kept += g.sum_unit(kept);
    }
    return z;
  }
  most = g.max(most);
  std::uint32_t const least = span - g.max(below_least);
  z.settled = least == most;
  if (z.settled) {
    std::uint32_t const key = in.low + least, n = g.totals()[least >> shift];
    W const at = static_cast<W>(n * m.weigh(key));
    bool const reached = at >= target - in.above;
    z.pivot = {{key, reached ? in.above : static_cast<W>(in.above + at), reached ? at : W{0}},
               static_cast<X>(beyond + n * k.weigh(key))};
  } else {
    z.in = narrowed(g, m, target, bins, in.above, W{0}, r.length);
    // A guess, for which so few are in a bin that three may be listed.
    if (std::same_as<M, K> && z.in.n < radix) {
      std::uint32_t const bin = 1u << shift;
      z.in.low = z.in.low - in.low > bin ? z.in.low - bin : in.low;
      z.in.last = in.last - z.in.last > bin ? z.in.last + bin : in.last;
      z.in.n *= 3;
    }
  }
  return z;
}

/// Finds the pivot in a short list by sorting it: each key goes where the number of those before it
/// says.
///
/// Group:   every member calls, all get the result; barriers of the units, which all do the same
/// Cost:    one read of the list by each of its keys
struct by_rank {
  static constexpr std::uint32_t most = radix;  // keys

  /// Longer lists are better narrowed first, for which units have to meet: the longer the more they are
  /// (bench/README.md).
  template <class G>
  __host__ __device__ static std::uint32_t quick(G const& g) {
    std::uint32_t const n = 64 + 32 * g.units();
    return n < most ? n : most;
  }

  /// keys: [n] and 16 zeros, aligned to 16 bytes. above, beyond: what lies over them, by m and by k.
  template <group G, measure M, measure K, class W, class X>
  __host__ __device__ static found<W, X> find(G const& g, std::uint32_t const* keys,
                                              std::uint32_t n, M const& m, W target, K const& k,
                                              W above, X beyond, std::uint32_t lowest) {
    static_assert(G::threads >= most);
    struct alignas(16) four {
      std::uint32_t key[4];
    };
    sorted_list& sorted = g.sorted();
    std::uint32_t const i = g.unit_rank(), own = i < n ? keys[i] : 0;
    if (i < most) sorted.alike[i] = 0;
    g.sync_unit();
    if (i < n) {
      // Without comparisons, whose results arrive late: of the maxima of another key with own + 1 and
      // with own, the first is larger by one unless the other key is over own.
      std::uint32_t before = 0;
      for (std::uint32_t j = 0; j < n; j += 16) {
        four x[4];
        unrolled<4>(
            [&](std::uint32_t u) { x[u] = *reinterpret_cast<four const*>(keys + j + 4 * u); });
        std::uint32_t with_next = 0, with_own = 0;
        unrolled<16>([&](std::uint32_t e) {
          std::uint32_t const other = x[e / 4].key[e % 4];
          with_next += other > own + 1 ? other : own + 1;
          with_own += other > own ? other : own;
        });
        before += 16 - (with_next - with_own);
      }
      sorted.key[before + g.increment(sorted.alike[before])] = own;
    }
    g.sync_unit();
    std::uint32_t const key = i < n ? sorted.key[i] : 0;
    W const weight = i < n ? m.weigh(key) : W{0}, wanted = target - above;
    W before, total;
    std::uint32_t pivot;
    if constexpr (std::same_as<M, count>) {
      before = i, total = n;
      if (total < wanted) return {{lowest, above + total, 0}, beyond};
      pivot = sorted.key[wanted - 1];
    } else {
      auto const scan = g.scan_unit(weight);
      before = scan.before, total = scan.total;
      if (total < wanted)
        return {{lowest, static_cast<W>(above + total), 0}, static_cast<X>(beyond + total)};
      if (before < wanted && weight >= wanted - before) sorted.pivot = key;
      g.sync_unit();
      pivot = sorted.pivot;
    }
    if (i < n && key == pivot) {
      if (i == 0 || sorted.key[i - 1] != pivot) sorted.first = before;
      if (i + 1 == n || sorted.key[i + 1] != pivot) sorted.last = before + weight;
    }
    if constexpr (std::same_as<M, K> || std::same_as<K, nothing>)
      g.sync_unit();
    else
      beyond += g.sum_unit(k.weigh(key, i < n && key >= pivot));
    W const first = static_cast<W>(sorted.first), end = static_cast<W>(sorted.last);
    if constexpr (std::same_as<M, K>) beyond += end;
    return {{pivot, static_cast<W>(above + first), static_cast<W>(end - first)}, beyond};
  }
};

/// Finds the pivot in what the units have listed of a range: in their lists together, of length n, or in
/// each its own, which are narrowed first by a step of the descent, until few enough keys are left to be
/// sorted. beyond: what lies above the range, by k. Returns whether there was room for all in the lists,
/// which may be known: fits.
///
/// Group:   every member calls, all get the result; barriers
/// Cost:    by_rank's; if narrowed two reads of the lists and a histogram more
template <group G, element T, domain D, measure M, measure K, class W, class X>
__host__ __device__ bool find_in_lists(G const& g, tiled<T, D> const& r, bool fits, bool narrows,
                                       std::uint32_t n, M const& m, W target, K const& k,
                                       range<W> in, X beyond, found<W, X>& f) {
  constexpr bool alike = std::same_as<M, K>;
  constexpr std::uint32_t room = tile_record::room;
  listed<T, D> const own{r.record.list, g.slots() > room ? 0 : g.slots()};
  bool const reached = !narrows || narrow(g, own, m, target, in) != 0;
  if constexpr (G::threads >= by_rank::most) {
    std::uint32_t *const left = r.spare(), *const keys = narrows ? left : r.record.list;
    X above = beyond;
    if (narrows) {
      g.restart(room);
      g.sync_unit();
      X over = 0;
      sweep(g, own, [&](std::uint32_t, std::uint32_t key) {
        if constexpr (!alike) over += k.weigh(key, key > in.last);
        if (key < in.low || key > in.last) return;
        std::uint32_t const to = g.slot();
        if (to < by_rank::most) left[to] = key;
      });
      auto const all = g.pool(left, by_rank::most, over, !alike && !std::same_as<K, nothing>);
      above = alike ? static_cast<X>(in.above) : static_cast<X>(beyond + all.sum);
      n = all.n;
    }
    if (n > room && !fits) return false;
    if (reached && n <= by_rank::most) {
      f = by_rank::find(g, keys, n, m, target, k, in.above, above, r.lowest);
      return true;
    }
  } else if (!fits && g.max(g.slots() > room)) {
    return false;
  }
  f = {{r.lowest, in.above, 0}, 0};
  if (reached) f.at = descend(g, own, m, target, in);
  if constexpr (alike)
    f.kept = f.at.above + f.at.at;
  else
    f.kept = static_cast<X>(beyond + kept_measure(g, own, k, f.at.key));
  return true;
}

/// Lists all keys from `low` up, and where they are: few.
template <group G, element T, domain D>
__host__ __device__ void hold(G const& g, tiled<T, D> const& r, std::uint32_t low) {
  sweep_from(g, r, low, [&](std::uint32_t i, T x) {
    std::uint32_t const over = r.over(low, x);
    if (over > r.highest - low) return;
    std::uint32_t const to = g.slot();
    r.record.list[to] = low + over;
    g.where()[to] = i;
  });
}

/// Lists those of some keys, given as what they are over in.low, that are in a bracket, as far as there
/// is room.
template <group G, element T, domain D, class W, std::size_t N>
__host__ __device__ void list(G const& g, tiled<T, D> const& r, range<W> in,
                              std::uint32_t const (&over)[N]) {
  std::uint32_t const span = in.last - in.low;
  std::uint32_t n = 0;
  unrolled<N>([&](std::uint32_t e) { n += over[e] <= span; });
  if (n == 0) return;
  std::uint32_t to = g.slot(n);
  if (to + n > tile_record::room) return;
  unrolled<N>([&](std::uint32_t e) {
    if (over[e] <= span) r.record.list[to++] = in.low + over[e];
  });
}

/// The bins that survey's counts were added up of.
template <element T, domain D>
__host__ __device__ division window(tiled<T, D> r) {
  std::uint32_t const low = r.lowest + (r.window << r.bin_bits), span = (radix << r.bin_bits) - 1;
  return {low, r.highest - low < span ? r.highest : low + span, r.bin_bits};
}

/// The next guess by mass, between two keys, moved by what is known now: either all there is down to
/// lowest (ends_there), or what lies above highest. What has no counts any more is one bracket.
///
/// Group:   every member calls, all get the result; barriers
template <group G, element T, domain D, class W>
__host__ __device__ bracket<W> corrected(G const& g, tiled<T, D> const& r, mass<T, W> const& m,
                                         W target, std::uint32_t lowest, std::uint32_t highest,
                                         bool ends_there, W known) {
  division bins = window(r);
  bracket<W> in{{lowest, highest, 0}, ~0u, ~0u};
  if (highest < bins.low) return in;
  if (highest < bins.last) bins.last = highest;
  if (lowest > bins.low) bins.least = lowest;
  g.sync();
  g.clear_totals();
  g.sync();
  g.add_up(r.record.counts + r.window, nullptr);
  bracket<W> const bin =
      narrowed(g, m, target, bins, ends_there ? W{0} : known, ends_there ? known : W{0}, 0);
  return bin.n > 0 ? bin : in;
}

/// Finds the pivot in a surveyed row: a bracket, one look, a short list.
///
/// Group:   every member calls, all get the result; barriers
/// Cost:    one visit of the tiles that reach the bracket, one more for each 8 bits by which its
///          keys are too many, one more for each guess that was wrong
template <group G, element T, domain D, measure M, measure K>
requires(!tiled<T, D>::tallied) __host__ __device__
    auto find(G const& g, tiled<T, D>& r, M const& m, typename M::weight target, K const& k) {
  using W = typename M::weight;
  using X = typename K::weight;
  static_assert(sizeof(W) <= 8 && sizeof(X) <= 8);
  constexpr bool alike = std::same_as<M, K>, counted = std::same_as<M, count>;
  static_assert(alike || counted, "a mass is what is kept, or nothing is looked for by mass");
  constexpr std::uint32_t room = tile_record::room;
  bool const minus = D != domain::logits && g.totals()[radix] != 0;
  W sum = 0;  // what the row's masses most often add up to
  if constexpr (!counted) sum = m.target(1.0f);
  division const bins = window(r);
  bool const foretold = !counted && r.foretells && r.within.low <= r.within.last;
  bracket<W> in;
  if (foretold)
    in = {{r.within.low, r.within.last, static_cast<W>(r.within.above)}, room, ~0u};
  else
    in = narrowed(g, m, target, bins, W{0}, sum, r.length / 8);
  if (counted && in.n == 0) {  // not in these bins
    if (r.window == 0) return found<W, X>{{r.lowest, in.above, 0}, 0};
    in = {{r.lowest, bins.low - 1, in.above}, ~0u, ~0u};
  }
  if (counted && minus && in.low == r.lowest)  // -0 is no number of bits over 0
    return find_by_descent(g, static_cast<row<T, D> const&>(r), m, target, k);
  bool const fills = r.background && in.reaching <= r.length / 64;
  if (fills && counted)
    fill_ahead(g, r);
  else if (fills)
    fill(g, r, r.share);
  // A guess of so many keys, zeros perhaps, that they would have to be counted again: if few lie above
  // them, those are looked at first.
  std::uint32_t const higher = in.reaching - in.n;
  if (!counted && in.n > room && higher > 0 && higher <= by_rank::most)
    in = {{in.last + 1, r.highest, 0}, higher, higher};
  bool const few = in.reaching <= by_rank::most;       // then all of them are listed
  std::uint32_t const bottom = r.lowest + !counted;    // what weighs nothing is no pivot
  std::uint32_t lowest = bottom, highest = r.highest;  // between these is the pivot
  if (few) {
    std::uint32_t n = in.reaching, d = (in.low - bins.low) >> r.bin_bits;
    // And those of the next bins, as far as they are sorted as quickly: the guess may be too high.
    if (!counted)
      for (int more = 8; more > 0 && d > 1 && n + g.totals()[d - 1] <= by_rank::quick(g); --more)
        n += g.totals()[--d];
    in = {{bins.low + (d << r.bin_bits), r.highest, 0}, n, n};
  } else if (!counted && in.low < lowest) {
    in.low = lowest;
  }
  for (int attempt = 0; attempt < 4; ++attempt) {
    found<W, X> f{};
    bool settled = false;
    while (!settled && in.above < target && (in.n > room || in.last - in.low < radix)) {
      auto const z = zoomed(g, r, m, target, k, in);
      in = z.in;
      f = z.pivot;
      settled = z.settled;
      if (counted && in.n == 0) return found<W, X>{{r.lowest, in.above, 0}, 0};
    }
    if (!settled && in.above < target) {
      bool const listed = foretold && attempt == 0;
      X beyond = listed ? static_cast<X>(in.above) : X{0};  // what lies above the bracket, by k
      if (attempt > 0) {
        g.sync();
        g.restart();
        g.sync_unit();
      }
      bool const holds = few && attempt == 0, sums = !std::same_as<K, nothing> && !holds;
      bool const narrows = G::threads < by_rank::most || in.n > by_rank::quick(g);
      r.held = holds ? in.low : ~0u;
      if (holds)
        hold(g, r, in.low);
      else if (!listed)
        beyond = look<false>(g, r, k, in, [&](auto const& over) { list(g, r, in, over); });
      if (fills && counted && attempt == 0) fill(g, r, r.share);
      std::uint32_t n = 0;  // of all lists together
      if (!narrows) {
        auto const all = g.pool(r.record.list, room, beyond, sums);
        beyond = all.sum, n = all.n;
      } else if (sums && !listed) {
        beyond = g.sum(beyond);
      } else {
        g.sync();
      }
      g.keep();
      if constexpr (!counted) in.above = static_cast<W>(beyond);
      if (in.above < target &&
          !find_in_lists(g, r, listed, narrows, n, m, target, k, in, beyond, f)) {
        in.n = ~0u;  // so many that they are counted first
        continue;
      }
    }
    bool const low = in.above >= target;  // a wrong guess; else it is right, or too high
    if (!low && f.at.reached()) return f;
    if (!low && in.low <= bottom) {  // the target is out of reach
      f.at.key = r.lowest;
      return f;
    }
    if constexpr (counted) break;  // never, since counts are no guess
    (low ? lowest : highest) = low ? in.last + 1 : in.low - 1;
    if (lowest > highest) break;
    if constexpr (!counted)
      in = corrected(g, r, m, target, lowest, highest, low, low ? in.above : f.at.above);
  }
  return find_by_descent(g, static_cast<row<T, D> const&>(r), m, target, k);
}

}  // namespace v0
}  // namespace cutoff
