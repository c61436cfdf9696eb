#pragma once
// One look at a row, and what it leaves behind for the next.
//
//  1. survey, the only sweep that reads every element, records the largest key of each tile of 64
//     bytes and counts the keys by their top bits, eight bins to a power of two. 16-bit probabilities have
//     so few keys that each is counted by itself, and nothing is left to look for: tally.hpp.
//  2. A pivot by count lies in the bin where the counts from the top reach the target. For a pivot
//     by mass the counts, each weighed as the middle of its bin, give a guess of the bin, and of the
//     place in it. Where so few keys reach the bin that most of the output is zeros, they are written
//     from here on, by the bulk copy engine where there is one.
//  3. Later looks visit only tiles that have a key in or above that range. As long as it holds more
//     keys than the list, a look counts it by finer bins: by single keys in the end, whose counts are
//     the answer. The last look lists it, and sums what lies above: now a guess is proved, or refuted.
//  4. A short list is sorted by counting before each key; a long one is narrowed first by a step of the
//     same descent as ever. Where a guess was wrong, the exact mass at its edge gives the next one.
//
// survey is here, with what visits tiles; the rest is in find.hpp. Where much of a row will stay, 1 and 3
// are one look: sample.hpp.

#include <cstddef>
#include <cstdint>

#include "pivot.hpp"

namespace cutoff {
inline namespace v0 {

/// What a row's group must lend it: shared memory of each unit.
struct tile_record {
  static constexpr std::uint32_t bins = 4096, room = 6144;
  static constexpr std::uint32_t quads = 2;  // of packs that survey has in flight, at most

  std::uint32_t* list;    // [room] keys; where keys have a counter each, in its memory
  std::uint32_t* counts;  // [bins], or [tally::counters]
  std::uint16_t* most;    // [tiles] upper 16 bits of each tile's largest key, rounded up
  unsigned char* zeros;   // [bytes_of_zeros], where the group copies in bulk

  tile_record() = default;
  /// Lays it out in memory aligned to 128 bytes, so many words for list and counts.
  __host__ __device__ tile_record(std::uint32_t* memory, std::uint32_t tiles, std::uint32_t words)
      : list(memory),
        counts(memory + (words == room + bins ? room : 0)),
        most(reinterpret_cast<std::uint16_t*>(memory + words)),
        zeros(reinterpret_cast<unsigned char*>(most) + bytes_of_most(tiles)) {}
  static constexpr std::size_t bytes(std::uint32_t tiles, std::uint32_t words, bool bulk) {
    return sizeof(std::uint32_t) * words + bytes_of_most(tiles) +
           bulk * bytes_of_zeros(tiles, words);
  }
  /// With what is left free so that zeros begin 32 bytes after a multiple of 128: a bulk copy from an odd
  /// multiple of 16 takes a sixth longer, from one of 128 a fiftieth (bench/README.md).
  __host__ __device__ static constexpr std::uint32_t bytes_of_most(std::uint32_t tiles) {
    return (tiles + 63) / 64 * 128 + 32;
  }
  /// The fewer copies the better: what is left of 91 KB, but not less than 16. More would take the L1
  /// cache of two blocks a multiprocessor (bench/README.md).
  __host__ __device__ static constexpr std::uint32_t bytes_of_zeros(std::uint32_t tiles,
                                                                    std::uint32_t words) {
    constexpr std::uint32_t all = 91 << 10, least = 16 << 10;
    auto const used =
        static_cast<std::uint32_t>(bytes_of_most(tiles) + sizeof(std::uint32_t) * words);
    return used + least < all ? all - used : least;
  }

  /// Packs of a unit, where so many share a row: whole tiles.
  __host__ __device__ static constexpr std::uint32_t share(std::uint32_t packs,
                                                           std::uint32_t units) {
    return ((packs + units - 1) / units + 3) / 4 * 4;
  }
  /// Tiles of a unit's share, rounded up to what so many threads record at a time.
  __host__ __device__ static constexpr std::uint32_t tiles(std::uint32_t share,
                                                           std::uint32_t threads) {
    std::uint32_t const at_a_time = 4 * quads * threads;
    return (share + at_a_time - 1) / at_a_time * quads * threads;
  }
};

/// Counters for the keys of 16-bit probabilities. Most values up to 1 have one of their own: of fp16 all of
/// them, of bfloat16 those from 2^-120 up, for such a row's smaller ones share the first. From a little
/// over 1 on, where only entries of rows are that do not add up to 1, 32 neighbours share one.
template <element T>
struct tally {
  static constexpr int together = 5;  // bits
  static constexpr std::uint32_t single = 15'392,
                                 end = (format<T>::bias << format<T>::mantissa) + (1 << together),
                                 begin = end - single;  // bits of values
  static constexpr std::uint32_t minus = single + ((format<T>::infinity - end) >> together);  // -0
  static constexpr std::uint32_t counters = minus + 1;
  static_assert(format<T>::width == 32 || counters * sizeof(std::uint32_t) % 128 == 0,
                "whole lines");

  __host__ __device__ static std::uint32_t counter(std::uint32_t bits) {
    if (bits >= end) return single + ((bits - end) >> together);
    return (bits > begin ? bits : begin) - begin;
  }
  /// Bits of the least and of the largest value that a counter has.
  __host__ __device__ static std::uint32_t from(std::uint32_t d) {
    if (d >= single) return end + ((d - single) << together);
    return d == 0 ? 0 : begin + d;
  }
  __host__ __device__ static std::uint32_t to(std::uint32_t d) {
    return d < single ? begin + d : from(d) + ((1 << together) - 1);
  }
};

/// A row with a record of its tiles.
template <element T, domain D>
struct tiled : row<T, D> {
  using row<T, D>::data;
  using row<T, D>::length;
  using row<T, D>::lowest;
  static constexpr bool surveyed = true;
  static constexpr int bin_bits = format<T>::mantissa - 3;
  static constexpr int fold = format<T>::width - 16;  // from a key to what is recorded of it
  static constexpr std::uint32_t highest =
      lowest + (D == domain::logits ? 2 * (format<T>::sign - 1) + 1 : format<T>::infinity - 1);
  /// Bins of keys that count, from the lowest. What does not count is in bins of its own; of those
  /// the first, minus, has the smallest negative values and -0.
  static constexpr std::uint32_t bins = ((highest - lowest) >> bin_bits) + 1,
                                 minus = format<T>::sign >> bin_bits;
  static constexpr std::uint32_t used =
      ((bins > minus ? bins : minus + 1) + 3) / 4 * 4;  // those that are read

  static constexpr bool foretells = sizeof(T) == 4;  // whether within is ever set (sample.hpp)
  static constexpr bool tallied = sizeof(T) == 2 && D == domain::probabilities;
  static constexpr std::uint32_t counters = tallied ? tally<T>::counters : used,
                                 words = tallied ? counters : tile_record::room + tile_record::bins;

  tile_record record;
  std::uint32_t head, packs;   // elements before the row's first pack, packs of the row
  std::uint32_t first, share;  // of them, the unit's
  std::uint32_t window = 0;    // the first of the `radix` bins up to the highest that is not empty;
                               // where keys have counters, the largest key's
  T* background = nullptr;     // an output that may be zeros before the line is known
  bool early = false;          // it will be, for certain
  std::uint32_t blank = 0;     // packs from the unit's first that will be zeros after G::filled
  std::uint32_t held = ~0u;    // all keys of the unit from here up are listed: G::kept, G::where
  range<std::uint64_t> within{1, 0, 0};  // not empty: its keys are listed, and one is the pivot

  template <class G>
  __host__ __device__ tiled(G const& g, row<T, D> r, std::uint32_t* memory)
      : row<T, D>(r), head(misaligned_head(data, length)), packs((length - head) / pack<T>::size) {
    std::uint32_t const most = tile_record::share(packs, g.units());
    first = g.unit() * most < packs ? g.unit() * most : packs;
    share = packs - first < most ? packs - first : most;
    record = tile_record(memory, tile_record::tiles(share, G::threads), words);
  }

  /// Where an element lies over a key: in [0, highest - low] for keys from low to the highest. Quick,
  /// and so -0 counts as nothing.
  __host__ __device__ static std::uint32_t over(std::uint32_t low, T x) {
    if constexpr (D == domain::logits)
      return row<T, D>::key(x) - low;
    else
      return to_bits(x) - (low - lowest);
  }
  __host__ __device__ auto* packed() const {
    return reinterpret_cast<pack<T> const*>(data + head) + first;  // [share]
  }
  /// Index in the row of the first element of a pack of the unit's.
  __host__ __device__ std::uint32_t index(std::uint32_t j) const {
    return head + (first + j) * pack<T>::size;
  }
  __host__ __device__ std::uint32_t tiles() const { return (share + 3) / 4; }
  /// Memory of the counts that is free once units have met after these were added up: room for `radix`
  /// keys and 16 zeros. Those that may be added up again, of probabilities, are not there.
  __host__ __device__ std::uint32_t* spare() const {
    constexpr bool once = tallied || D == domain::logits;
    constexpr std::uint32_t kept = once ? 0 : (used | 31) + 1;  // whole lines
    static_assert(kept + radix + 16 <= tile_record::bins);
    return record.counts + kept;
  }
  /// Packs of zeros in the record, a multiple of 8. Worked out again: a register more is one too many.
  template <class G>
  __host__ __device__ std::uint32_t zero_packs(G const&) const {
    return tile_record::bytes_of_zeros(tile_record::tiles(share, G::threads), words) / 128 * 8;
  }
  /// What is recorded of a tile's largest key: rounded up, so that +0 alone gives what zero does.
  __host__ __device__ static std::uint32_t mark(std::uint32_t key) {
    return (key + ((1u << fold) - 1)) >> fold;
  }
  __host__ __device__ bool reaches(std::uint32_t tile, std::uint32_t from) const {
    return record.most[tile] >= mark(from);
  }
  /// Elements that belong to no pack: those before are the first unit's, those behind the last one's.
  template <class G, class F>
  __host__ __device__ void singles(G const& g, F f) const {
    for (std::uint32_t s = g.unit_rank(); s < length - packs * pack<T>::size; s += G::threads)
      if (g.unit() == (s < head ? 0 : g.units() - 1)) f(s < head ? s : packs * pack<T>::size + s);
  }
};

/// Begins to write zeros for packs of the unit up to a number; to less than all only as far as a multiple
/// of 128 bytes, since bulk copies to other places are slower by a third (bench/README.md).
template <group G, element T, domain D>
__host__ __device__ void fill(G const& g, tiled<T, D>& r, std::uint32_t packs) {
  if (packs != r.share) {
    auto const begin = reinterpret_cast<std::uintptr_t>(r.background + r.index(0));
    packs -= static_cast<std::uint32_t>(begin / sizeof(pack<T>) + packs) % 8;
    if (static_cast<std::int32_t>(packs - r.blank) <= 0) return;
  }
  auto* const to = reinterpret_cast<pack<T>*>(r.background + r.index(r.blank));
  g.fill(to, packs - r.blank, reinterpret_cast<pack<T> const*>(r.record.zeros), r.zero_packs(g));
  r.blank = packs;
}

/// Begins to write zeros as far as that keeps no one waiting: the copy engine takes two copies at once, and
/// who asks for more waits for it (bench/README.md).
template <group G, element T, domain D>
__host__ __device__ void fill_ahead(G const& g, tiled<T, D>& r) {
  constexpr std::uint32_t copies = 2;
  std::uint32_t const packs = r.blank + copies * r.zero_packs(g);
  fill(g, r, packs < r.share ? packs : r.share);
}

/// Reads a row for the first time: records its tiles, counts its keys, returns the largest. The
/// group's totals are those of the bins from r.window on, and of the bin minus; where keys have counters,
/// those are what it leaves. After a barrier.
///
/// Group:   every member calls, all get the result; a barrier at the end
/// Cost:    one sweep
template <group G, element T, domain D>
__host__ __device__ std::uint32_t survey(G const& g, tiled<T, D>& r) {
  constexpr std::uint32_t n = pack<T>::size;
  // Twice as many entries would be too many for the registers (bench/README.md).
  constexpr std::uint32_t quads = sizeof(T) == 4 ? tile_record::quads : 1, deep = 4 * quads;
  std::uint32_t* const counts = r.record.counts;
  std::uint32_t const rank = g.unit_rank();
  struct alignas(16) four {
    std::uint32_t count[4];
  };
  for (std::uint32_t d = rank; d < r.counters / 4; d += G::threads)
    reinterpret_cast<four*>(counts)[d] = {};
  if (r.background) g.blank_zeros(reinterpret_cast<pack<T>*>(r.record.zeros), r.zero_packs(g));
  g.clear_totals();
  g.restart();
  g.sync_unit();
  auto const careful = [&](T x) {
    std::uint32_t const key = r.key(x);
    if (!r.counts(key)) return key;
    if constexpr (tiled<T, D>::tallied) {
      g.increment(counts[tally<T>::counter(key - r.lowest)]);
      if (to_bits(x) == format<T>::sign) g.increment(counts[tally<T>::minus]);  // -0
    } else {
      g.increment(counts[(key - r.lowest) >> r.bin_bits]);
    }
    return key;
  };
  std::uint32_t largest = 0;
  // What is to be recorded of a pack.
  auto const see = [&](pack<T> const& x) {
    if constexpr (D == domain::probabilities) {
      // Bits instead of keys: what does not count is in bins of its own, or seen to be there.
      using keys = tally<T>;
      constexpr bool tallied = tiled<T, D>::tallied;
      std::uint32_t most = 0;
      auto const count = [&](std::uint32_t e) {
        std::uint32_t const bits = to_bits(x.at[e]);
        if constexpr (tallied)
          g.increment(counts[(bits > keys::begin ? bits : keys::begin) - keys::begin]);
        else
          g.increment(counts[bits >> r.bin_bits]);
      };
      unrolled<n>([&](std::uint32_t e) {
        if constexpr (!tallied) count(e);
        most = to_bits(x.at[e]) > most ? to_bits(x.at[e]) : most;
      });
      if (most < (tallied ? keys::end : format<T>::infinity)) {
        if constexpr (tallied) unrolled<n>(count);
        most |= format<T>::sign;
        largest = most > largest ? most : largest;
        return most;
      }
    }
    std::uint32_t most = 0;
    unrolled<n>([&](std::uint32_t e) {
      std::uint32_t key;
      if constexpr (D == domain::logits || tiled<T, D>::tallied) {
        key = careful(x.at[e]);
      } else {
        key = r.key(x.at[e]);
        if (to_bits(x.at[e]) == format<T>::sign) g.increment(counts[0]);  // -0
      }
      most = key > most ? key : most;
    });
    largest = most > largest ? most : largest;
    // Something else than +0 is there that has to become it.
    return D == domain::probabilities && most <= r.lowest ? r.lowest + 1 : most;
  };
  auto const* const in = r.packed();
  for (std::uint32_t first = 0; first < r.share; first += deep * G::threads) {
    std::uint32_t const j = first + rank;
    // Half of the row behind, so that what is left is written while the line is drawn.
    if (r.early && first > r.share / 2) fill(g, r, first - r.share / 2);
    pack<T> x[deep];
    unrolled<deep>([&](std::uint32_t u) {
      x[u] = j + u * G::threads < r.share ? in[j + u * G::threads] : pack<T>{};
    });
    unrolled<quads>([&](std::uint32_t q) {
      std::uint32_t const from = 4 * q;
      std::uint32_t most[4] = {};
      unrolled<4>([&](std::uint32_t u) {
        if (j + (from + u) * G::threads >= r.share) return;
        most[u] = see(x[from + u]);
      });
      g.tile_maxima(most, [&](std::uint32_t u, std::uint32_t key) {
        r.record.most[(first + (from + u) * G::threads) / 4 + rank / 4] =
            static_cast<std::uint16_t>(r.mark(key));
      });
    });
  }
  r.singles(g, [&](std::uint32_t i) {
    std::uint32_t const key = careful(r.data[i]);
    largest = key > largest ? key : largest;
  });
  largest = g.max(largest);
  if constexpr (tiled<T, D>::tallied) {
    r.window = largest > r.lowest ? tally<T>::counter(largest - r.lowest) : 0;
    return largest;
  }
  std::uint32_t const top = largest > r.lowest ? (largest - r.lowest) >> r.bin_bits : 0;
  r.window = top < radix ? 0 : (top - radix + 4) / 4 * 4;
  g.add_up(counts + r.window, D == domain::logits ? nullptr : counts + r.minus);
  return largest;
}

/// Calls f(at, x) for Deep packs x at a time, of which those exist whose number at[u] is < r.share:
/// for all packs of tiles that reach a key. Members of a warp call together.
template <std::uint32_t Deep, group G, element T, domain D, class F>
__host__ __device__ void visit_from(G const& g, tiled<T, D> const& r, std::uint32_t from, F f) {
  auto const* const in = r.packed();
  g.visit(r.record.most, r.tiles(), r.mark(from), [&](auto const pick) {
    for (std::uint32_t first = 0; first < 4; first += Deep) {
      pack<T> x[Deep];
      std::uint32_t at[Deep];
      unrolled<Deep>([&](std::uint32_t u) {
        at[u] = pick(first + u);
        x[u] = at[u] < r.share ? in[at[u]] : pack<T>{};
      });
      f(at, x);
    }
  });
}

/// Calls f(at, x) as visit_from does, for all packs of the unit.
template <std::uint32_t Deep, group G, element T, domain D, class F>
__host__ __device__ void visit_all(G const& g, tiled<T, D> const& r, F f) {
  auto const* const in = r.packed();
  for (std::uint32_t first = g.unit_rank(); first < r.share; first += Deep * G::threads) {
    pack<T> x[Deep];
    std::uint32_t at[Deep];
    unrolled<Deep>([&](std::uint32_t u) {
      at[u] = first + u * G::threads;
      x[u] = at[u] < r.share ? in[at[u]] : pack<T>{};
    });
    f(at, x);
  }
}

/// Calls f(i, x) at least for each element whose key is >= from: for those of all tiles that have
/// one.
template <group G, element T, domain D, class F>
__host__ __device__ void sweep_from(G const& g, tiled<T, D> const& r, std::uint32_t from, F f) {
  constexpr std::uint32_t n = pack<T>::size, deep = 4;
  visit_from<deep>(g, r, from, [&](std::uint32_t const(&at)[deep], pack<T> const(&x)[deep]) {
    unrolled<deep>([&](std::uint32_t u) {
      if (at[u] < r.share) unrolled<n>([&](std::uint32_t e) { f(r.index(at[u]) + e, x[u].at[e]); });
    });
  });
  r.singles(g, [&](std::uint32_t i) { f(i, r.data[i]); });
}

/// Writes zeros for all packs of tiles that do not reach a key; in place only where there are none.
template <group G, element T, domain D>
__host__ __device__ void blank(G const& g, tiled<T, D> const& r, std::uint32_t from, T* out,
                               bool alike) {
  constexpr std::uint32_t ahead = 4;
  // In place, tiles of nothing but +0 are as they should be: what is recorded of others is larger.
  std::uint32_t const least = r.mark(r.lowest) + (out == r.data), below = r.mark(from) - least;
  auto const wanted = [&](std::uint32_t j) {
    return j < r.share && r.record.most[j / 4] - least < below;
  };
  std::uint32_t const rank = g.unit_rank();
  if (alike) {
    auto* const to = reinterpret_cast<pack<T>*>(out + r.index(0));
    for (std::uint32_t j = rank; j < r.share; j += ahead * G::threads)
      unrolled<ahead>([&](std::uint32_t u) {
        if (wanted(j + u * G::threads)) to[j + u * G::threads] = pack<T>{};
      });
  } else {
    for (std::uint32_t i = rank; i < r.share * pack<T>::size; i += G::threads)
      if (wanted(i / pack<T>::size)) out[r.index(0) + i] = from_bits<T>(0);
  }
}

/// transform, where f gives zero for every key < from: tiles without another are not read, and if the
/// output is blank and all others are held, nothing is.
template <bool Seldom, group G, element T, domain D, class F>
__host__ __device__ void transform_from(G const& g, tiled<T, D> const& r, std::uint32_t from,
                                        T* out, F f) {
  constexpr std::uint32_t n = pack<T>::size, deep = Seldom ? 1 : 4;
  bool const alike = r.head == misaligned_head<T>(out, r.length);
  r.singles(g, [&](std::uint32_t i) { out[i] = f(i, r.data[i]); });
  if (r.blank) g.filled();
  if (r.blank && r.blank == r.share && r.held <= from) {
    for (std::uint32_t s = g.unit_rank(); s < g.kept(); s += G::threads)
      if (r.record.list[s] >= from) {
        std::uint32_t const i = g.where()[s];
        out[i] = f(i, from_key<T>(r.record.list[s]));
      }
    return;
  }
  visit_from<deep>(g, r, from, [&](std::uint32_t const(&at)[deep], pack<T> const(&x)[deep]) {
    unrolled<deep>([&](std::uint32_t u) {
      if (at[u] >= r.share) return;
      pack<T> y;
      unrolled<n>([&](std::uint32_t e) { y.at[e] = f(r.index(at[u]) + e, x[u].at[e]); });
      T* const to = out + r.index(at[u]);
      if (alike)
        *reinterpret_cast<pack<T>*>(to) = y;
      else
        unrolled<n>([&](std::uint32_t e) { to[e] = y.at[e]; });
    });
  });
  if (r.blank < r.share) blank(g, r, from, out, alike);
}

/// enumerate, of what has keys >= from: where those are held, each finds its rank among them. Else by a
/// bit for each element of a unit, in the memory of list and counts behind what may be held.
///
/// Group:   every member calls, all get the result; barriers
/// Cost:    one scan, and one visit of the tiles unless they are held; where the bits do not fit,
///          enumerate's
template <group G, element T, domain D, class Wanted, class F>
__host__ __device__ std::uint32_t enumerate_from(G const& g, tiled<T, D> const& r,
                                                 std::uint32_t from, Wanted wanted, F f) {
  constexpr std::uint32_t n = pack<T>::size, deep = 1, bits = 32;
  if constexpr (G::threads >= radix)
    if (r.held <= from) {
      constexpr std::uint32_t none = ~0u;
      std::uint32_t* const place = g.sorted().alike;  // [radix]
      std::uint32_t const s = g.unit_rank(), i = s < g.kept() ? g.where()[s] : none;
      T const x = i != none ? r.data[i] : from_bits<T>(0);
      bool const take = i != none && wanted(i, x);
      if (s < radix) place[s] = take ? i : none;
      auto const [before, total] = g.scan(std::uint32_t{take});  // in the units' order
      std::uint32_t at = before;
      for (std::uint32_t o = 0; o < g.kept(); ++o) {  // within one by place, not by slot
        at += place[o] < i;
        at -= o < s && place[o] != none;
      }
      if (take) f(i, x, at);
      return total;
    }
  std::uint32_t const most = tile_record::share(r.packs, g.units()) * n + 2 * n;  // of a unit
  if (most > (r.words - radix) * bits)
    return enumerate(g, static_cast<row<T, D> const&>(r), wanted, f);
  std::uint32_t const begin = g.unit() == 0 ? 0 : r.index(0),
                      end = g.unit() + 1 == g.units() ? r.length : r.index(r.share),
                      words = (end - begin + bits - 1) / bits;
  std::uint32_t* const word = r.record.list + radix;
  g.sync();
  for (std::uint32_t w = g.unit_rank(); w < words; w += G::threads) word[w] = 0;
  g.sync_unit();
  auto const mark = [&](std::uint32_t i, T x) {
    if (wanted(i, x)) g.mark(word[(i - begin) / bits], 1u << (i - begin) % bits);
  };
  visit_from<deep>(g, r, from, [&](std::uint32_t const(&at)[deep], pack<T> const(&x)[deep]) {
    unrolled<deep>([&](std::uint32_t u) {
      if (at[u] < r.share)
        unrolled<n>([&](std::uint32_t e) { mark(r.index(at[u]) + e, x[u].at[e]); });
    });
  });
  r.singles(g, [&](std::uint32_t i) { mark(i, r.data[i]); });
  g.sync_unit();
  std::uint32_t const each = (words + G::threads - 1) / G::threads;
  std::uint32_t const first = g.unit_rank() * each < words ? g.unit_rank() * each : words,
                      last = words - first < each ? words : first + each;
  std::uint32_t mine = 0;
  for (std::uint32_t w = first; w < last; ++w)
    mine += static_cast<std::uint32_t>(cuda::std::popcount(word[w]));
  auto [at, total] = g.scan(mine);
  for (std::uint32_t w = first; w < last; ++w)
    for (std::uint32_t left = word[w]; left != 0; left &= left - 1) {
      std::uint32_t const i =
          begin + w * bits + static_cast<std::uint32_t>(cuda::std::countr_zero(left));
      f(i, r.data[i], at++);
    }
  return total;
}

}  // namespace v0
}  // namespace cutoff
