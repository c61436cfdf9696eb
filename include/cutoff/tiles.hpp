#pragma once
// One look at a row, and what it leaves behind for the next.
//
//  1. survey, the only sweep that reads every element, records the largest key of each tile of 64
//     bytes and counts the keys by their top eleven bits.
//  2. A pivot by count lies in the bin where the counts from the top reach the target. For a pivot
//     by mass the counts, each weighed as the middle of its bin, give a guess of the bin.
//  3. Later sweeps visit only tiles that have a key in or above that bracket. The first sums what
//     lies above it and lists what lies in it: now the guess is proved, or refuted.
//  4. One warp finishes the list by the same descent as ever. Where the guess was wrong or the list
//     too long, the descent goes over the tiles.

#include <cstdint>

#include "pivot.hpp"

namespace cutoff {
inline namespace v0 {

/// What a row's group must lend it: shared memory of each unit.
struct tile_record {
  static constexpr std::uint32_t bins = 2048, room = 3072;

  std::uint16_t* most;  // [tiles] upper 16 bits of each tile's largest key
  std::uint16_t* hit;   // [tiles] tiles to visit
  std::uint32_t* list;  // [room] keys; before that, counts [bins]

  /// Tiles of a row, rounded up so that each member of a group of so many has as many.
  __host__ __device__ static constexpr std::uint32_t tiles(std::uint32_t packs,
                                                           std::uint32_t members,
                                                           std::uint32_t neighbours) {
    return (packs + 4 * members - 1) / (4 * members) * 4 * (members / neighbours);
  }
};

/// A row with a record of its tiles.
template <element T, domain D>
struct tiled : row<T, D> {
  static constexpr bool surveyed = true;
  static constexpr int bits = format<T>::width - (D == domain::probabilities);  // of a key
  static constexpr int bin_bits = bits - 11;
  static constexpr int fold = format<T>::width - 16;  // from a key to what is recorded of it

  tile_record record;
  float sum = 0;  // of what counts, about

  __host__ __device__ tiled(row<T, D> r, tile_record memory) : row<T, D>(r), record(memory) {}

  __host__ __device__ static std::uint32_t bin(std::uint32_t key) {
    return key >> bin_bits & (tile_record::bins - 1);
  }
  /// Lowest key of a bin.
  __host__ __device__ static std::uint32_t edge(std::uint32_t bin) {
    return row<T, D>::lowest + (bin << bin_bits);
  }
};

/// Where the packs of a row lie, and which of them a member of a group deals with.
template <group G, element T>
struct layout {
  static_assert(tiling_group<G>);
  static constexpr std::uint32_t deep = 4;
  std::uint32_t head, packs, rank, size, unit_rank;

  __host__ __device__ layout(G const& g, T const* data, std::uint32_t length)
      : head(misaligned_head(data, length)),
        packs((length - head) / pack<T>::size),
        rank(g.rank()),
        size(g.size()),
        unit_rank(g.unit_rank()) {}

  static constexpr std::uint32_t across =
      G::threads / G::neighbours;  // tiles side by side in a unit
  __host__ __device__ std::uint32_t tiles() const {
    return (packs + deep * size - 1) / (deep * size) * deep * across;
  }
  /// The n-th pack of tile t of this unit.
  __host__ __device__ std::uint32_t pack_of(std::uint32_t t, std::uint32_t n) const {
    return t / across * size + (rank - unit_rank) + t % across * G::neighbours + n;
  }
};

/// Reads a row for the first time: counts its keys, records its tiles, returns the largest key.
///
/// Group:   every member calls, all get the result; barriers before and after
/// Cost:    one sweep
template <group G, element T, domain D>
__host__ __device__ std::uint32_t survey(G const& g, tiled<T, D>& r) {
  constexpr std::uint32_t n = pack<T>::size, deep = layout<G, T>::deep;
  layout<G, T> const l(g, r.data, r.length);
  auto const* in = reinterpret_cast<pack<T> const*>(r.data + l.head);  // [packs]
  for (std::uint32_t d = l.unit_rank; d < r.record.bins; d += G::threads) r.record.list[d] = 0;
  g.no_slots();  // a barrier
  std::uint32_t largest = 0;
  float sum = 0;  // near enough for a guess: its rounding, and so its bits, decide nothing
  auto const see = [&](T x) {
    std::uint32_t const key = r.key(x);
    if (r.counts(key)) {
      g.increment(r.record.list[r.bin(key)]);
      if constexpr (D == domain::probabilities) sum += to_float(x);
    }
    return key;
  };
  std::uint32_t tile = l.unit_rank / G::neighbours;
  for (std::uint32_t first = 0; first < l.packs; first += deep * l.size, tile += deep * l.across) {
    std::uint32_t const j = first + l.rank;
    pack<T> x[deep];
    unrolled<deep>(
        [&](std::uint32_t u) { x[u] = j + u * l.size < l.packs ? in[j + u * l.size] : pack<T>{}; });
    std::uint32_t most[deep] = {};
    unrolled<deep>([&](std::uint32_t u) {
      if (j + u * l.size < l.packs)
        unrolled<n>([&](std::uint32_t e) {
          std::uint32_t const key = see(x[u].at[e]);
          most[u] = key > most[u] ? key : most[u];
        });
    });
    g.tile_maxima(most, [&](std::uint32_t u, std::uint32_t key) {
      r.record.most[tile + u * l.across] = static_cast<std::uint16_t>(key >> r.fold);
      largest = key > largest ? key : largest;
    });
  }
  for (std::uint32_t i = l.rank; i < r.length - l.packs * n; i += l.size) {
    std::uint32_t const key = see(r.data[i < l.head ? i : l.packs * n + i]);
    largest = key > largest ? key : largest;
  }
  if constexpr (D == domain::probabilities) r.sum = g.sum(sum);
  return g.max(largest);
}

/// Calls f(i, x) at least for each element whose key is >= from: for those of all tiles that have
/// one. The tiles are listed first, so that their loads need not wait for one another.
template <group G, element T, domain D, class F>
__host__ __device__ void sweep_from(G const& g, tiled<T, D> const& r, std::uint32_t from, F f) {
  constexpr std::uint32_t n = pack<T>::size, deep = layout<G, T>::deep;
  layout<G, T> const l(g, r.data, r.length);
  auto const* in = reinterpret_cast<pack<T> const*>(r.data + l.head);  // [packs]
  g.no_slots();
  for (std::uint32_t t = l.unit_rank; t < l.tiles(); t += G::threads)
    if (r.record.most[t] >= from >> r.fold) r.record.hit[g.slot()] = static_cast<std::uint16_t>(t);
  std::uint32_t const packs = g.slots() * G::neighbours;
  g.no_slots();  // f may take some
  for (std::uint32_t j = l.unit_rank; j < packs; j += deep * G::threads) {
    pack<T> x[deep];
    std::uint32_t at[deep];
    unrolled<deep>([&](std::uint32_t u) {
      std::uint32_t const i = j + u * G::threads;
      at[u] = i < packs ? l.pack_of(r.record.hit[i / G::neighbours], i % G::neighbours) : l.packs;
      x[u] = at[u] < l.packs ? in[at[u]] : pack<T>{};
    });
    unrolled<deep>([&](std::uint32_t u) {
      if (at[u] < l.packs)
        unrolled<n>([&](std::uint32_t e) { f(l.head + at[u] * n + e, x[u].at[e]); });
    });
  }
  for (std::uint32_t i = l.rank; i < r.length - l.packs * n; i += l.size) {
    std::uint32_t const k = i < l.head ? i : l.packs * n + i;
    f(k, r.data[k]);
  }
}

/// transform, where f gives zero for every key < from: tiles without another are not read.
template <group G, element T, domain D, class F>
__host__ __device__ void transform_from(G const& g, tiled<T, D> const& r, std::uint32_t from,
                                        T* out, F f) {
  constexpr std::uint32_t n = pack<T>::size, deep = layout<G, T>::deep;
  layout<G, T> const l(g, r.data, r.length);
  bool const alike = l.head == misaligned_head<T>(out, r.length);
  auto const* in = reinterpret_cast<pack<T> const*>(r.data + l.head);  // [packs]
  std::uint32_t tile = l.unit_rank / G::neighbours;
  for (std::uint32_t j = l.rank; j < l.packs; j += deep * l.size, tile += deep * l.across) {
    pack<T> x[deep] = {};
    bool read[deep];
    unrolled<deep>([&](std::uint32_t u) {
      read[u] = j + u * l.size < l.packs && r.record.most[tile + u * l.across] >= from >> r.fold;
      if (read[u]) x[u] = in[j + u * l.size];
    });
    unrolled<deep>([&](std::uint32_t u) {
      if (j + u * l.size >= l.packs) return;
      std::uint32_t const i = l.head + (j + u * l.size) * n;
      if (read[u]) unrolled<n>([&](std::uint32_t e) { x[u].at[e] = f(i + e, x[u].at[e]); });
      if (alike)
        *reinterpret_cast<pack<T>*>(out + i) = x[u];
      else
        unrolled<n>([&](std::uint32_t e) { out[i + e] = x[u].at[e]; });
    });
  }
  for (std::uint32_t i = l.rank; i < r.length - l.packs * n; i += l.size) {
    std::uint32_t const k = i < l.head ? i : l.packs * n + i;
    out[k] = f(k, r.data[k]);
  }
}

/// Keys of a row that lie in a bracket, as a row of their own.
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

/// Keys among which the pivot lies, or is guessed to lie: [low, high).
struct bracket {
  std::uint32_t low, high;
};

/// A guess within one bin of more keys than the list holds: the share of it around the place where
/// the target lies if keys, or masses, fall evenly over the bin. Hopelessly many: all of it.
template <element T, domain D, class W>
__host__ __device__ bracket within_bin(tiled<T, D> const& r, crossing<W> const& c, W target) {
  constexpr std::uint32_t room = tile_record::room * 3 / 4, width = 1u << r.bin_bits;
  std::uint32_t const n = r.record.list[c.digit];
  if (n > 12 * room || width < 16) return {r.edge(c.digit), r.edge(c.digit + 1)};
  auto const part = static_cast<std::uint32_t>(std::uint64_t{width} * room / n) | 1;
  int const drop = bit_length(c.at) > 20 ? bit_length(c.at) - 20 : 0;
  auto const share = static_cast<std::uint32_t>((target - c.above) >> drop);
  auto const whole = static_cast<std::uint32_t>(c.at >> drop) + 1;
  auto const down = static_cast<std::uint32_t>(std::uint64_t{width} * share / whole) + part / 2;
  std::uint32_t const up = down < width ? width - down : 0;
  std::uint32_t const from = r.edge(c.digit) + (up < width - part ? up : width - part);
  return {from, from + part};
}

/// By count: the bin that crosses the target. Not reached: empty.
template <group G, element T, domain D>
__host__ __device__ bracket bracket_of(G const& g, tiled<T, D> const& r, count,
                                       std::uint32_t target) {
  auto const c = g.template cross<tile_record::bins>(
      [&](std::uint32_t d) { return r.record.list[d]; }, target);
  if (c.at > tile_record::room) return within_bin(r, c, target);
  return {r.edge(c.digit), r.edge(c.digit + (c.at != 0))};
}

/// By mass, a guess: around the bin that crosses the target if every key weighs as much as the
/// middle of its bin, as wide as the list has room for. What middles get wrong in all is known from
/// the row's sum, so of the two ends the guess starts from the one that has less between it and the
/// pivot.
template <group G, element T, domain D, class W>
__host__ __device__ bracket bracket_of(G const& g, tiled<T, D> const& r, mass<T, W> const& m,
                                       W target) {
  auto const* const counts = r.record.list;
  auto const middle = [&](std::uint32_t d) {
    return W{counts[d]} * m.weigh(r.edge(d) + (1u << (r.bin_bits - 1)), counts[d] != 0);
  };
  W const sum = m.target(r.sum);
  W guessed = target;
  if (target > sum / 2) {
    W mine = 0;
    for (std::uint32_t d = g.unit_rank(); d < tile_record::bins; d += G::threads) mine += middle(d);
    W const middles = g.sum(mine);  // one unit: each has counted all
    W const rest = sum > target ? sum - target : W{0};
    guessed = middles > rest ? middles - rest : W{1};
  }
  auto const c = g.template cross<tile_record::bins>(middle, guessed);
  constexpr std::uint32_t room = tile_record::room * 3 / 4;
  std::uint32_t low = c.digit, high = c.digit + 1, n = counts[low];
  if (n > room) return within_bin(r, c, guessed);
  for (int step = 0; step < 8; ++step) {
    if (high < tile_record::bins && n + counts[high] <= room) n += counts[high++];
    if (low > 0 && n + counts[low - 1] <= room) n += counts[--low];
  }
  return {r.edge(low), r.edge(high)};
}

/// Finds the pivot in a surveyed row by the descent: the way for rows whose list would be too long,
/// and for guesses that were refuted. Not inlined, and all by
/// value, so that it costs the usual way no registers.
template <group G, element T, domain D, measure M, measure K, class W>
[[gnu::noinline]] __host__ __device__ auto find_by_tiles(G const g, tiled<T, D> const r, M const m,
                                                         W target, K const k, range<W> in) {
  pivot<W> p = descend(g, r, m, target, in);
  if (!p.reached() && in.low != 0) p = descend(g, r, m, target, all_keys<tiled<T, D>, W>());
  return found<W, typename K::weight>{p, kept_measure(g, r, k, p.key)};
}

/// Finds the pivot in a surveyed row: a bracket, one look, a short list.
///
/// Group:   every member calls, all get the result; barriers
/// Cost:    one visit of the tiles that reach the bracket; else those of find_by_tiles
template <group G, element T, domain D, measure M, measure K>
__host__ __device__ auto find(G const& g, tiled<T, D> const& r, M const& m,
                              typename M::weight target, K const& k) {
  using W = typename M::weight;
  using X = typename K::weight;
  constexpr bool alike = std::same_as<M, K>;
  bracket const in = bracket_of(g, r, m, target);
  W above = 0;
  X beyond = 0;  // the same by k
  sweep_from(g, r, in.low, [&](std::uint32_t, T x) {
    std::uint32_t const key = r.key(x);
    if (key >= in.high) {
      if constexpr (!alike) above += m.weigh(key);
      beyond += k.weigh(key);
    } else if (key >= in.low && r.counts(key)) {
      std::uint32_t const at = g.slot();
      if (at < r.record.room) r.record.list[at] = key;
    }
  });
  std::uint32_t const n = g.slots();
  if constexpr (!std::same_as<K, nothing>) beyond = g.sum(beyond);
  if constexpr (alike)
    above = beyond;
  else
    above = g.sum(above);
  range<W> within{in.low, in.high - 1, above};
  if (n <= r.record.room && above < target) {
    listed<T, D> const list{r.record.list, n};
    auto const f = g.by_one_warp([&](auto const& w) {
      pivot<W> const p = descend(w, list, m, target, within);
      return found<W, X>{p, static_cast<X>(beyond + kept_measure(w, list, k, p.key))};
    });
    if (f.at.reached()) return f;
  }
  return find_by_tiles(g, r, m, target, k, above < target ? within : all_keys<tiled<T, D>, W>());
}

}  // namespace v0
}  // namespace cutoff
