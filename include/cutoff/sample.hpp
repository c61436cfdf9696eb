#pragma once
// Rows of which much stays under top-p, read and looked at in one.
//
//  1. A sample, one tile in sixteen (in 32 of the longest rows), is counted by the bins of survey. What
//     will be below the pivot adds up to 1 - p, of many small entries, which a sample knows well even
//     where it misses the few large ones. So the counts from below tell where the pivot is, but for some
//     hundred keys.
//  2. If much of the row lies above, the first sweep sums it, and lists the keys around the place, as
//     a later look would: one look less. If little does, zeros may be written early.
//  3. What was foretold is proved by the sums. If it was wrong the row is surveyed as ever.
//
// The first sweep does not know the row's largest entry yet, which says what an entry weighs. But from a
// key up weights are whole numbers of units of the key's last place, and so are sums, as long as the
// largest entry is less than 2^21 times as large.

#include <cstdint>

#include "find.hpp"

namespace cutoff {
inline namespace v0 {

/// What a sample of a row tells of its pivot by mass.
struct forecast {
  bool few = false;                      // a sixty-fourth of the row lies above it, or less
  range<std::uint64_t> within{1, 0, 0};  // if not empty: much does, and it is likely in here
};

/// Draws a forecast of where the mass reaches p < 1. Each unit draws it for itself, all the same.
///
/// Group:   every member calls, all get the result; barriers of the unit
/// Cost:    one read of a thirty-second of the row, and where much of it stays of another one
template <class W, group G, element T, domain D>
__host__ __device__ forecast foretell(G const& g, tiled<T, D> const& r, float p) {
  using f = format<T>;
  using row = tiled<T, D>;
  constexpr std::uint32_t n = pack<T>::size, deep = together<T>, turns = 2;
  constexpr std::uint32_t power = 1u << f::mantissa;                // keys to a power of two
  constexpr std::uint32_t one = row::lowest + f::bias * power;      // the key of 1
  constexpr std::uint32_t lowest = one - (radix << row::bin_bits);  // of the bins, up to 1
  constexpr std::uint32_t last_of_bin = (1u << row::bin_bits) - 1;
  constexpr std::uint32_t ahead = 4 * tile_record::quads * G::threads;  // packs survey begins with
  // Longer rows are known better by as large a part: the error is the root of their length. But they have
  // more keys about the place, and so they need the lists of all units.
  bool const longer = r.length > 1 << 18;
  int const one_in = longer ? 6 : 5;  // so rare are the tiles of a turn, as a power of two
  std::uint32_t const wide = 2048 * (longer ? g.units() : 1);  // keys to list to either side
  std::uint32_t const rank = g.unit_rank();
  auto const* const in = reinterpret_cast<pack<T> const*>(r.data + r.head);  // [r.packs]
  mass<T, W> const m(one);
  W const sum = m.target(1.0f);
  forecast told;
  g.clear_totals();
  g.sync_unit();
  for (std::uint32_t turn = 1; turn <= turns; ++turn) {
    for (std::uint32_t first = rank; first < r.packs >> one_in; first += deep * G::threads) {
      pack<T> x[deep];
      unrolled<deep>([&](std::uint32_t u) {
        std::uint32_t const i = first + u * G::threads,
                            tile = (i / 4 << one_in) + ((turn - 1) << one_in) / turns,
                            at = tile * 4 + i % 4;
        x[u] = at < r.packs ? in[at] : pack<T>{};
      });
      if (turn == 1 && first == rank) g.prefetch(r.packed(), r.share < ahead ? r.share : ahead);
      unrolled<deep>([&](std::uint32_t u) {
        unrolled<n>([&](std::uint32_t e) {
          std::uint32_t const bin = r.over(lowest, x[u].at[e]) >> r.bin_bits;
          if (bin < radix) g.increment(g.totals()[bin]);
        });
      });
    }
    g.sync_unit();
    W const expected = (sum >> one_in) * turn, rest = ((sum - m.target(p)) >> one_in) * turn;
    W all = 0, crossed = 0;
    auto const c = g.cross_bins(
        [&](std::uint32_t d) {
          std::uint32_t const low = lowest + (d << r.bin_bits);
          return guessed_mass(m, g.totals()[d], low, low + last_of_bin);
        },
        [&](W total) {
          all = total;
          return crossed = total > rest ? total - rest : W{1};
        });
    auto const entries = [](W of) { return static_cast<std::uint32_t>(of & counted_bits<W>); };
    std::uint32_t const seen = (r.packs >> one_in) * n * turn, at = entries(c.at),
                        reaching = entries(c.above) + at, below = entries(all) - reaching;
    told.few = at != 0 && reaching <= seen / 64;
    // Most tiles have an entry that stays if one in sixteen does. A bin of many keys may have a single
    // one, and the bin that a row ends in is not filled evenly.
    bool const much = reaching >= seen / 16, even = at < seen / 8 && at < 8 * below;
    if (!much || !even) break;
    // Where the sample has nearly the mass it should have, no entry is far over an eighth.
    std::uint32_t const low = lowest + (c.digit << r.bin_bits);
    // Lower down weights may be no whole numbers.
    if (low < one - (nearly(all, expected) ? 23 : 21) * power) break;
    if (turn < turns) continue;
    // How many are below is uncertain by less than the root of it.
    std::uint32_t const most = wide * turns >> one_in, enough = 16 + below / 4;
    if (2 * most * most < 3 * below) break;
    told.within =
        around<W>({low, low + last_of_bin, 0}, at, c, crossed, most < enough ? most : enough);
  }
  return told;
}

/// Reads a row for the first time, sums what lies above a range of keys and lists those in it. Returns the
/// row's largest key, with r.within as find wants it; or 0, if the mass does not reach p in the range.
///
/// Group:   every member calls, all get the result; barriers
/// Cost:    one sweep
template <class W, group G, element T, domain D>
__host__ __device__ std::uint32_t look_first(G const& g, tiled<T, D>& r, float p,
                                             range<std::uint64_t> within) {
  constexpr std::uint32_t above = 20;  // powers of two from low up, of which all weights are whole
  auto* const most = reinterpret_cast<std::uint32_t*>(r.record.most);
  g.restart();
  for (std::uint32_t i = g.unit_rank(); i < (r.tiles() + 1) / 2; i += G::threads) most[i] = ~0u;
  g.sync_unit();
  std::uint32_t const reach = r.highest - within.low,
                      highest = within.low + (above << format<T>::mantissa);
  mass<T, W> const whole(highest);
  std::uint32_t largest = 0;
  W beyond = look<true>(g, r, whole, within, [&]<std::size_t N>(std::uint32_t const(&over)[N]) {
    unrolled<N>([&](std::uint32_t e) {
      largest = over[e] <= reach && over[e] > largest ? over[e] : largest;
    });
    list(g, r, within, over);
  });
  g.sync_unit();
  W listed = 0;
  bool const fits = g.slots() <= tile_record::room;
  if (fits)
    for (std::uint32_t i = g.unit_rank(); i < g.slots(); i += G::threads)
      listed += whole.weigh(r.record.list[i]);
  largest = g.max(fits ? largest : ~0u);
  if (largest > reach) return 0;
  largest += within.low;
  auto const both = g.sum(uint128{listed} << 64 | beyond);
  int const finer = static_cast<int>(highest >> format<T>::mantissa) -
                    static_cast<int>(largest >> format<T>::mantissa);
  if (finer < 0) return 0;
  beyond = static_cast<W>(both) << finer, listed = static_cast<W>(both >> 64) << finer;
  W const target = mass<T, W>(largest).target(p);
  if (beyond >= target || listed < target - beyond) return 0;
  r.within = {within.low, within.last, beyond};
  return largest;
}

/// survey of a row whose line is drawn where the mass reaches p.
template <class W, group G, element T, domain D>
__host__ __device__ std::uint32_t survey_by_mass(G const& g, tiled<T, D>& r, float p) {
  // Where more units share a row a sample costs what it saves. Measured from 70,000 entries on
  // (bench/README.md).
  constexpr std::uint32_t long_enough = 1 << 16, most_units = 3;
  if constexpr (tiled<T, D>::foretells)
    if (to_bits(p) < to_bits(1.0f) && r.length >= long_enough && g.units() <= most_units) {
      forecast const told = foretell<W>(g, r, p);
      r.early = r.background && told.few && g.units() == 1;
      if (told.within.low <= told.within.last)
        if (std::uint32_t const largest = look_first<W>(g, r, p, told.within)) return largest;
    }
  return survey(g, r);
}

}  // namespace v0
}  // namespace cutoff
