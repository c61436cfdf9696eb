#pragma once
// The pivot of a row that has been read once: what survey left behind says where to look.

#include <cstdint>

#include "tiles.hpp"

namespace cutoff {
inline namespace v0 {

/// Keys of a row that lie in a range, as a row of their own.
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
  for (std::uint32_t i = g.rank(); i < r.length; i += g.size()) f(i, r.keys[i]);
}

/// A range in which a pivot lies, or is guessed to lie, and how many keys are in it.
template <class W>
struct bracket : range<W> {
  std::uint32_t n;
};

/// How a range is divided into bins.
struct division {
  std::uint32_t low, last;
  int shift;  // bits of a bin
  std::uint32_t bins;
};

/// By count: the bin that crosses the target.
template <group G, element T, domain D>
__host__ __device__ bracket<std::uint32_t> narrowed(G const& g, tiled<T, D> const& r, count,
                                                    std::uint32_t target, division in,
                                                    std::uint32_t above, std::uint32_t) {
  auto const c = g.template cross<tiled<T, D>::bins>(
      [&](std::uint32_t d) { return d < in.bins ? r.record.counts[d] : 0; }, target - above);
  std::uint32_t const low = in.low + (c.digit << in.shift), last = low + ((1u << in.shift) - 1);
  return {{low, last < in.last ? last : in.last, above + c.above}, c.at};
}

/// By mass, a guess: the bin that crosses the target if every key weighs as much as the middle of its
/// bin. What middles get wrong in all is known from the row's sum, where that is given: then of the
/// two ends the guess starts from the one that has less between it and the pivot.
template <group G, element T, domain D, class W>
__host__ __device__ bracket<W> narrowed(G const& g, tiled<T, D> const& r, mass<T, W> const& m,
                                        W target, division in, W above, W sum) {
  auto const* const counts = r.record.counts;
  auto const middle = [&](std::uint32_t d) {  // between the two keys there, where bins are even
    std::uint32_t const n = d < in.bins ? counts[d] : 0, middle_bit = 1u << in.shift >> 1,
                        key = in.low + (d << in.shift) + middle_bit;
    return W{n} * ((m.weigh(key - (middle_bit != 0), n != 0) + m.weigh(key, n != 0)) / 2);
  };
  W guessed = target - above;
  if (guessed < sum && guessed > sum / 2) {
    W mine = 0;
    for (std::uint32_t d = g.unit_rank(); d < in.bins; d += G::threads) mine += middle(d);
    W const middles = g.unit_sum(mine);
    W const rest = sum - guessed;
    guessed = middles > rest ? middles - rest : W{1};
  }
  auto const c = g.template cross<tiled<T, D>::bins>(middle, guessed);
  std::uint32_t const low = in.low + (c.digit << in.shift), last = low + ((1u << in.shift) - 1);
  return {{low, last < in.last ? last : in.last, above}, counts[c.digit]};
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
  return found<W, typename K::weight>{p, kept_measure(g, r, k, p.key)};
}

/// A finer bracket, and what lies above the one it was found in, by the measure of the kept mass.
template <class W, class X>
struct zoom {
  bracket<W> in;
  X beyond;
  bool single;  // one key is all there is in it, and what lies above it is known
};

/// Looks at a bracket again, by finer bins. What lies above it is known then: if that is the target or
/// more, the bracket comes back as it was.
template <group G, element T, domain D, measure M, measure K, class W>
__host__ __device__ auto zoomed(G const& g, tiled<T, D> const& r, M const& m, W target, K const& k,
                                bracket<W> in) {
  using X = typename K::weight;
  constexpr std::uint32_t bins = 1024;
  std::uint32_t const span = in.last - in.low, reach = r.highest - in.low;
  int const bits = bit_length(std::uint64_t{span}), shift = bits > 10 ? bits - 10 : 0;
  std::uint32_t* const counts = r.record.counts;
  g.sync();
  for (std::uint32_t d = g.unit_rank(); d < bins; d += G::threads) counts[d] = 0;
  g.sync();
  X beyond = 0;
  std::uint32_t below_least = 0, most = 0;
  sweep_from(g, r, in.low, [&](std::uint32_t, T x) {
    std::uint32_t const over = r.over(in.low, x);
    beyond += k.weigh_value(over > span && over <= reach ? x : from_bits<T>(0),
                            over > span && over <= reach);
    if (over > span) return;
    g.increment(counts[over >> shift]);
    below_least = span - over > below_least ? span - over : below_least;
    most = over > most ? over : most;
  });
  g.template merge<bins>(counts);
  if constexpr (!std::same_as<K, nothing>) beyond = g.sum(beyond);
  if constexpr (std::same_as<M, K>) in.above = beyond;
  if (in.above >= target) return zoom<W, X>{in, beyond, false};  // a wrong guess, too low
  most = g.max(most);
  std::uint32_t const least = span - g.max(below_least);
  if (least == most)
    return zoom<W, X>{
        {{in.low + least, in.low + least, in.above}, counts[least >> shift]}, beyond, true};
  return zoom<W, X>{narrowed(g, r, m, target, division{in.low, in.last, shift, (span >> shift) + 1},
                             in.above, W{0}),
                    beyond, false};
}

/// Finds the pivot among at most `most` listed keys by comparing each with all.
///
/// Group:   one unit: every member calls, all get the result; barriers
/// Cost:    one read of the list by each of its keys
struct by_pairs {
  static constexpr std::uint32_t most = 256;

  template <group G, class List, measure M, measure K, class W, class X>
  __host__ __device__ static found<W, X> find(G const& g, List const& list, M const&, W target,
                                              K const& k, W above, X beyond) {
    constexpr bool alike = std::same_as<M, K>;
    constexpr std::uint32_t parts =
        G::threads >= 2 * most ? (G::threads >= 4 * most ? 4 : 2) : 1;  // members a key

    std::uint64_t* const weights = g.weights();
    g.sync();
    for (std::uint32_t i = g.rank(); i < list.length; i += g.size())
      weights[i] = k.weigh(list.keys[i]);
    g.tell_result(found<W, X>{{List::lowest, above, 0}, 0}, g.rank() == 0);
    g.sync();
    for (std::uint32_t first = 0; first < list.length; first += G::threads / parts) {
      std::uint32_t const i = first + g.rank() / parts;
      std::uint32_t const key = i < list.length ? list.keys[i] : 0;
      std::uint32_t over = 0, level = 0, earlier = 0;
      std::uint64_t heavier = 0, tied = 0;  // by k
      for (std::uint32_t j = g.rank() % parts; j < list.length; j += parts) {
        std::uint32_t const other = list.keys[j];
        over += other > key;
        level += other == key;
        earlier += other == key && j < i;
        if constexpr (!std::same_as<K, nothing>) {
          heavier += other > key ? weights[j] : 0;
          tied += other == key ? weights[j] : 0;
        }
      }
      over = g.template sum_of<parts>(over);
      level = g.template sum_of<parts>(level);
      earlier = g.template sum_of<parts>(earlier);
      if constexpr (!std::same_as<K, nothing>) {
        heavier = g.template sum_of<parts>(heavier);
        tied = g.template sum_of<parts>(tied);
      }
      W const before = above + static_cast<W>(alike ? heavier : over);
      W const at = static_cast<W>(alike ? tied : level);
      bool const here = i < list.length && g.rank() % parts == 0 && earlier == 0 &&
                        before < target && at >= target - before;
      g.tell_result(found<W, X>{{key, before, at}, static_cast<X>(beyond + heavier + tied)}, here);
    }
    return g.template result<found<W, X>>();
  }
};

/// Finds the pivot in a surveyed row: a bracket, one look, a short list.
///
/// Group:   every member calls, all get the result; barriers
/// Cost:    one visit of the tiles that reach the bracket, one more for each 10 bits by which its
///          keys are too many, two more for each guess that was wrong
template <group G, element T, domain D, measure M, measure K>
__host__ __device__ auto find(G const& g, tiled<T, D> const& r, M const& m,
                              typename M::weight target, K const& k) {
  using W = typename M::weight;
  using X = typename K::weight;
  static_assert(sizeof(W) <= 8 && sizeof(X) <= 8);
  constexpr bool alike = std::same_as<M, K>, counted = std::same_as<M, count>;
  static_assert(alike || counted, "a mass is what is kept, or nothing is looked for by mass");
  constexpr std::uint32_t n = pack<T>::size, deep = together<T>, unknown = ~0u;
  std::uint32_t* const list = r.record.list;
  W sum = 0;
  if constexpr (!counted) sum = m.target(r.sum);
  bracket<W> in =
      narrowed(g, r, m, target, division{r.lowest, r.highest, r.bin_bits, r.bins}, W{0}, sum);
  if (counted && in.n == 0) return found<W, X>{{r.lowest, in.above, 0}, 0};
  if (D != domain::logits && in.low == r.lowest && r.record.counts[r.minus] != 0)
    return find_by_descent(g, static_cast<row<T, D> const&>(r), m, target, k);
  std::uint32_t lowest = r.lowest, highest = r.highest;  // between these is the pivot
  for (int attempt = 0; attempt < 4; ++attempt) {
    X beyond = 0;  // what lies above the bracket, by k
    bool single = false;
    while (in.n > r.record.room && in.last > in.low) {
      auto const z = zoomed(g, r, m, target, k, in);
      in = z.in;
      beyond = z.beyond;
      single = z.single;
      if (in.above >= target) break;
    }
    if (in.above >= target) {  // a wrong guess, too low
      lowest = in.last + 1;
      in = {{lowest, highest, 0}, unknown};
      continue;
    }
    if (in.n == unknown) break;
    bool const tied = in.n > r.record.room;  // at a key
    auto const at_key = [&](W over) {
      return found<W, X>{{in.low, over, static_cast<W>(in.n * m.weigh(in.low))},
                         static_cast<X>(beyond + in.n * k.weigh(in.low))};
    };
    if (single && tied) {
      auto const f = at_key(in.above);
      if (f.at.above < target && f.at.at >= target - f.at.above) return f;
    }
    beyond = 0;
    if (attempt > 0) {
      g.sync();
      g.restart();
      g.sync();
    }
    std::uint32_t const span = in.last - in.low, reach = r.highest - in.low;
    auto const see = [&](T x) {  // whether to list it
      std::uint32_t const over = r.over(in.low, x);
      bool const higher = over > span && over <= reach;
      T const counting = higher ? x : from_bits<T>(0);  // no branch: the sums of many overlap
      beyond += k.weigh_value(counting, higher);
      return over <= span && !tied;
    };
    visit_from(g, r, in.low, [&](std::uint32_t const(&at)[deep], pack<T> const(&x)[deep]) {
      std::uint32_t listed = 0;  // a bit an element
      unrolled<deep>([&](std::uint32_t u) {
        if (at[u] < r.share)
          unrolled<n>(
              [&](std::uint32_t e) { listed |= std::uint32_t{see(x[u].at[e])} << (u * n + e); });
      });
      // The counts say that there is room for all.
      std::uint32_t* to = list + g.slot(static_cast<std::uint32_t>(cuda::std::popcount(listed)));
      if (listed == 0) return;
      unrolled<deep>([&](std::uint32_t u) {
        unrolled<n>([&](std::uint32_t e) {
          if (listed >> (u * n + e) & 1) g.first_unit(*to++) = in.low + r.over(in.low, x[u].at[e]);
        });
      });
    });
    r.singles(g, [&](std::uint32_t i) {
      T const x = r.data[i];
      if (see(x)) g.first_unit(list[g.slot()]) = in.low + r.over(in.low, x);
    });
    if constexpr (!std::same_as<K, nothing>) g.tally(1, beyond);
    g.sync();
    std::uint32_t const length = g.slots();
    beyond = static_cast<X>(g.tallied(1));
    W const above = counted ? in.above : static_cast<W>(beyond);
    if (above >= target) {  // a wrong guess, too low
      lowest = in.last + 1;
      in = {{lowest, highest, 0}, unknown};
      continue;
    }
    found<W, X> f;
    if (tied) {
      f = at_key(above);
      g.sync();  // no unit leaves while another reads what it has added up
    } else {
      f = g.by_one_unit([&](auto const& u) {
        listed<T, D> const keys{list, length};
        if (length <= by_pairs::most) {
          auto const pair = by_pairs::find(u, keys, m, target, k, above, beyond);
          if (pair.at.reached() || in.low != r.lowest) return pair;
        }
        pivot<W> const p = descend(u, keys, m, target, range<W>{in.low, in.last, above});
        return found<W, X>{p, static_cast<X>(beyond + kept_measure(u, keys, k, p.key))};
      });
    }
    if (f.at.reached() && f.at.at >= target - f.at.above) return f;
    if (in.low == r.lowest) {  // the target is out of reach
      if (tied) f.at = {in.low, static_cast<W>(above + f.at.at), 0};
      return f;
    }
    if (in.low == lowest) break;
    highest = in.low - 1;  // a wrong guess, too high
    in = {{lowest, highest, 0}, unknown};
  }
  return find_by_descent(g, static_cast<row<T, D> const&>(r), m, target, k);
}

}  // namespace v0
}  // namespace cutoff
