#pragma once
// The pivot of a row of 16-bit probabilities, of which survey has counted every key: the counts are the
// answer, and no element is looked at again to find it.
//
//  1. The counters up to the largest key's are cut into 256 parts. What these weigh is crossed, and then
//     what the counters of that part weigh.
//  2. Seldom the counter that is left has several keys: those are looked at by zoomed.
//  3. What stays is measured by the counters, too.

#include <cstdint>

#include "find.hpp"

namespace cutoff {
inline namespace v0 {

/// Finds the pivot in a surveyed row whose keys have counters.
///
/// Group:   every member calls, all get the result; barriers
/// Cost:    one read of the counters, and a sum; one visit of few tiles if their keys are held; two looks
///          at most where a counter has several keys
template <group G, element T, domain D, measure M, measure K>
requires(tiled<T, D>::tallied) __host__ __device__
    auto find(G const& g, tiled<T, D>& r, M const& m, typename M::weight target, K const& k) {
  using W = typename M::weight;
  using X = typename K::weight;
  using keys = tally<T>;
  constexpr std::uint32_t deep = 8;  // counters of a member that are read together
  constexpr bool alike = std::same_as<M, K>, counted = std::same_as<M, count>;
  static_assert(alike || counted, "a mass is what is kept, or nothing is looked for by mass");
  auto const by_descent = [&] {
    return find_by_descent(g, static_cast<row<T, D> const&>(r), m, target, k);
  };
  std::uint32_t const* const counts = r.record.counts;
  // Weighs a counter of several keys as the least of them. From 1 up that is enough, since a mass is
  // sought that is less, and so the row's largest entry is the pivot. Below nothing is not enough if the
  // largest entry is so small that others like these weigh something.
  if constexpr (!counted && keys::begin > 0)
    if (r.window == 0 || (m.weigh(r.lowest + keys::begin) != 0 && g.max(counts[0]) != 0))
      return by_descent();
  // In a cluster the copies would be in the way of what its blocks tell each other.
  if (r.early && g.units() == 1) fill_ahead(g, r);
  std::uint32_t const n = r.window + 1,    // counters
      each = (n + radix - 1) / radix | 1;  // of a part; odd: each lane has a bank of its own
  auto const weighed = [&](std::uint32_t d, std::uint32_t entries) {
    if constexpr (counted)
      return W{entries};
    else
      return entries == 0 ? W{0} : static_cast<W>(entries * m.weigh(r.lowest + keys::from(d)));
  };
  auto const part = g.cross_sums(
      [&](std::uint32_t of) {
        W sum = 0;
        std::uint32_t const end = (of + 1) * each < n ? (of + 1) * each : n;
        for (std::uint32_t d = of * each; d < end; d += deep) {
          std::uint32_t entries[deep];
          unrolled<deep>([&](std::uint32_t u) { entries[u] = d + u < end ? counts[d + u] : 0; });
          unrolled<deep>([&](std::uint32_t u) { sum += weighed(d + u, entries[u]); });
        }
        return sum;
      },
      target);
  found<W, X> f{{r.lowest, part.above, 0}, 0};
  if (part.at == 0) {
    g.sync();  // all have read the bins
    if constexpr (alike) f.kept = f.at.above;
    return f;
  }
  static_assert((keys::counters + radix - 1) / radix < radix);
  auto const one = g.cross_bins(
      [&](std::uint32_t d) {
        std::uint32_t const at = part.digit * each + d;
        return d < each && at < n ? weighed(at, g.over_units(counts[at])) : W{0};
      },
      [&](W) { return static_cast<W>(target - part.above); });
  std::uint32_t const first = part.digit * each + one.digit;
  f.at = {r.lowest + keys::from(first), static_cast<W>(part.above + one.above), one.at};

  // What reaches that counter, or weighs from it up.
  X sum = 0;
  if constexpr (!std::same_as<K, nothing>) {
    for (std::uint32_t d = first + g.unit_rank(); d <= r.window; d += G::threads)
      if (std::uint32_t const entries = counts[d])
        sum += alike ? entries : static_cast<X>(entries * k.weigh(r.lowest + keys::from(d)));
    sum = g.sum(sum);
  }
  f.kept = alike ? static_cast<X>(f.at.above + f.at.at) : sum;
  auto const reaching = static_cast<std::uint32_t>(counted ? f.at.above + f.at.at : sum);
  bool const fills = r.background && reaching <= r.length / 64;
  if (fills) fill_ahead(g, r);

  if (keys::from(first) != keys::to(first)) {  // several keys
    bracket<W> in{{f.at.key, r.lowest + keys::to(first), f.at.above}, reaching, reaching};
    // -0 is no number of bits over 0.
    if (counted && first == 0 && g.max(counts[keys::minus]) != 0) return by_descent();
    for (bool settled = false; !settled;) {
      auto const z = zoomed(g, r, m, target, k, in);
      if (!z.settled && z.in.above >= target) return by_descent();
      settled = z.settled, in = z.in, f = z.pivot;
    }
    return f;
  }
  // What those weigh that share counters is not known.
  if constexpr (!alike && !std::same_as<K, nothing>)
    if (r.window >= keys::single) f.kept = kept_measure(g, r, k, f.at.key);
  bool const few = reaching <= by_rank::most && f.at.key > r.lowest;
  if (few) {
    r.held = f.at.key;
    g.restart();
    if constexpr (std::same_as<K, nothing>)
      g.sync();  // all have read the bins
    else
      g.sync_unit();
    hold(g, r, r.held);
  }
  if (fills) fill(g, r, r.share);
  if (few) {
    g.sync_unit();
    g.keep();
    g.sync_unit();
  }
  return f;
}

}  // namespace v0
}  // namespace cutoff
