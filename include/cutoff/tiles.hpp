#pragma once
// One look at a row, and what it leaves behind for the next.
//
//  1. survey, the only sweep that reads every element, records the largest key of each tile of 64
//     bytes and counts the keys by their top bits.
//  2. A pivot by count lies in the bin where the counts from the top reach the target. For a pivot
//     by mass the counts, each weighed as the middle of its bin, give a guess of the bin.
//  3. Later looks visit only tiles that have a key in or above that range. As long as it holds more
//     keys than the list, a look counts it by finer bins. The last look lists it, and sums what lies
//     above: now a guess is proved, or refuted.
//  4. A short list is finished by comparing each key with all, a long one by the same descent as
//     ever. Where a guess was wrong, the looks go on at the side where the pivot lies.
//
// survey is here, with what visits tiles; the rest is in find.hpp.

#include <cstddef>
#include <cstdint>

#include "pivot.hpp"

namespace cutoff {
inline namespace v0 {

/// What a row's group must lend it: shared memory of each unit.
struct tile_record {
  static constexpr int bin_bits = 12;
  static constexpr std::uint32_t bins = 1u << bin_bits, room = 6144;

  std::uint32_t* list;    // [room] keys, in unit 0
  std::uint32_t* counts;  // [bins]
  std::uint16_t* most;    // [tiles] upper 16 bits of each tile's largest key

  /// Lays it out in memory aligned to 16 bytes.
  __host__ __device__ explicit tile_record(std::uint32_t* memory)
      : list(memory), counts(list + room), most(reinterpret_cast<std::uint16_t*>(counts + bins)) {}
  static constexpr std::size_t bytes(std::uint32_t tiles) {
    return sizeof(std::uint32_t) * (room + bins) + sizeof(std::uint16_t) * tiles;
  }

  /// Packs of a unit, where so many share a row: whole tiles.
  __host__ __device__ static constexpr std::uint32_t share(std::uint32_t packs,
                                                           std::uint32_t units) {
    return ((packs + units - 1) / units + 3) / 4 * 4;
  }
  /// Tiles of a unit, rounded up to what so many threads record at a time.
  static constexpr std::uint32_t tiles(std::uint32_t packs, std::uint32_t units,
                                       std::uint32_t threads) {
    return (share(packs, units) + 4 * threads - 1) / (4 * threads) * threads;
  }
};

/// A row with a record of its tiles.
template <element T, domain D>
struct tiled : row<T, D> {
  using row<T, D>::data;
  using row<T, D>::length;
  using row<T, D>::lowest;
  static constexpr bool surveyed = true;
  static constexpr int bin_bits = format<T>::width - tile_record::bin_bits;
  static constexpr int fold = format<T>::width - 16;  // from a key to what is recorded of it
  static constexpr std::uint32_t highest =
      lowest + (D == domain::logits ? 2 * (format<T>::sign - 1) + 1 : format<T>::infinity - 1);
  /// Bins of keys that count, from the lowest. What does not count is in bins of its own; of those
  /// the first, minus, has the smallest negative values and -0.
  static constexpr std::uint32_t bins = ((highest - lowest) >> bin_bits) + 1, minus = 2048;
  static constexpr std::uint32_t used = bins > minus ? bins : minus + 1;  // those that are read

  tile_record record;
  std::uint32_t head, packs;   // elements before the row's first pack, packs of the row
  std::uint32_t first, share;  // of them, the unit's
  float sum = 0;               // of what counts, about
  bool blank = false;          // the output is zeros where nobody writes

  template <class G>
  __host__ __device__ tiled(G const& g, row<T, D> r, tile_record memory)
      : row<T, D>(r),
        record(memory),
        head(misaligned_head(data, length)),
        packs((length - head) / pack<T>::size) {
    std::uint32_t const most = tile_record::share(packs, g.units);
    first = g.unit() * most < packs ? g.unit() * most : packs;
    share = packs - first < most ? packs - first : most;
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
  __host__ __device__ bool reaches(std::uint32_t tile, std::uint32_t from) const {
    return record.most[tile] >= from >> fold;
  }
  /// Elements that belong to no pack.
  template <class G, class F>
  __host__ __device__ void singles(G const& g, F f) const {
    for (std::uint32_t i = g.rank(); i < length - packs * pack<T>::size; i += g.size())
      f(i < head ? i : packs * pack<T>::size + i);
  }
};

/// Reads a row for the first time: counts its keys, records its tiles, returns the lowest key of the
/// bin that the largest is in. Writes zeros to an output, where one is given, for all packs.
///
/// Group:   every member calls, all get the result; barriers before and after
/// Cost:    one sweep
template <bool Sum, group G, element T, domain D>
__host__ __device__ std::uint32_t survey(G const& g, tiled<T, D>& r, T* zeros = nullptr) {
  constexpr std::uint32_t n = pack<T>::size, deep = 4, infinity = format<T>::infinity;
  std::uint32_t* const counts = r.record.counts;
  std::uint32_t const rank = g.unit_rank();
  g.sync();
  for (std::uint32_t d = rank; d < r.used; d += G::threads) counts[d] = 0;
  g.restart();
  g.sync();
  float sum = 0;  // near enough for a guess: its rounding, and so its bits, decide nothing
  auto const careful = [&](T x) {
    std::uint32_t const key = r.key(x);
    if (r.counts(key)) {
      g.increment(counts[(key - r.lowest) >> r.bin_bits]);
      if constexpr (Sum) sum += to_float(x);
    }
    return key;
  };
  auto const see = [&](pack<T> const& x) {
    std::uint32_t most = 0;
    if constexpr (D == domain::logits) {
      unrolled<n>([&](std::uint32_t e) {
        std::uint32_t const key = careful(x.at[e]);
        most = key > most ? key : most;
      });
    } else {
      // Bits instead of keys: what does not count is in bins of its own, or seen to be there.
      float part = 0;
      unrolled<n>([&](std::uint32_t e) {
        std::uint32_t const bits = to_bits(x.at[e]);
        g.increment(counts[bits >> r.bin_bits]);
        most = bits > most ? bits : most;
        if constexpr (Sum) part += to_float(x.at[e]);
      });
      if (most < infinity) {
        sum += part;
        return most | format<T>::sign;
      }
      most = 0;
      unrolled<n>([&](std::uint32_t e) {
        std::uint32_t const key = r.key(x.at[e]);
        most = key > most ? key : most;
        if (to_bits(x.at[e]) == format<T>::sign) g.increment(counts[0]);  // -0
        if constexpr (Sum) sum += key ? to_float(x.at[e]) : 0.0f;
      });
    }
    return most;
  };
  auto const* const in = r.packed();
  for (std::uint32_t first = 0; first < r.share; first += deep * G::threads) {
    std::uint32_t const j = first + rank;
    pack<T> x[deep];
    unrolled<deep>([&](std::uint32_t u) {
      x[u] = j + u * G::threads < r.share ? in[j + u * G::threads] : pack<T>{};
    });
    std::uint32_t most[deep] = {};
    unrolled<deep>([&](std::uint32_t u) {
      if (j + u * G::threads >= r.share) return;
      if (zeros) *reinterpret_cast<pack<T>*>(zeros + r.index(j + u * G::threads)) = pack<T>{};
      most[u] = see(x[u]);
    });
    g.tile_maxima(most, [&](std::uint32_t u, std::uint32_t key) {
      r.record.most[(first + u * G::threads) / 4 + rank / 4] =
          static_cast<std::uint16_t>(key >> r.fold);
    });
  }
  r.singles(g, [&](std::uint32_t i) { careful(r.data[i]); });
  if constexpr (Sum) g.tell(g.unit_sum(sum));
  g.template merge<tiled<T, D>::used>(counts);
  if constexpr (Sum) r.sum = g.told();
  std::uint32_t top = 0;
  for (std::uint32_t d = rank; d < r.bins; d += G::threads) top = counts[d] ? d : top;
  top = r.lowest + (g.unit_max(top) << r.bin_bits);
  return top;
}

/// Packs of a member that are looked at together: sixteen elements.
template <element T>
inline constexpr std::uint32_t together = 16 / pack<T>::size;

/// Calls f(at, x) for some packs x, of which those exist whose number at[u] is < r.share: for all
/// packs of tiles that reach a key. Members of a warp call together.
template <group G, element T, domain D, class F>
__host__ __device__ void visit_from(G const& g, tiled<T, D> const& r, std::uint32_t from, F f) {
  constexpr std::uint32_t deep = together<T>;
  auto const* const in = r.packed();
  g.visit(r.record.most, r.tiles(), from >> r.fold, [&](auto const pick) {
    for (std::uint32_t first = 0; first < 4; first += deep) {
      pack<T> x[deep];
      std::uint32_t at[deep];
      unrolled<deep>([&](std::uint32_t u) {
        at[u] = pick(first + u);
        x[u] = at[u] < r.share ? in[at[u]] : pack<T>{};
      });
      f(at, x);
    }
  });
}

/// Calls f(i, x) at least for each element whose key is >= from: for those of all tiles that have
/// one.
template <group G, element T, domain D, class F>
__host__ __device__ void sweep_from(G const& g, tiled<T, D> const& r, std::uint32_t from, F f) {
  constexpr std::uint32_t n = pack<T>::size, deep = together<T>;
  visit_from(g, r, from, [&](std::uint32_t const(&at)[deep], pack<T> const(&x)[deep]) {
    unrolled<deep>([&](std::uint32_t u) {
      if (at[u] < r.share) unrolled<n>([&](std::uint32_t e) { f(r.index(at[u]) + e, x[u].at[e]); });
    });
  });
  r.singles(g, [&](std::uint32_t i) { f(i, r.data[i]); });
}

/// Writes zeros for all packs of tiles that do not reach a key.
template <group G, element T, domain D>
__host__ __device__ void blank(G const& g, tiled<T, D> const& r, std::uint32_t from, T* out,
                               bool alike) {
  constexpr std::uint32_t ahead = 4;
  auto const wanted = [&](std::uint32_t j) { return j < r.share && !r.reaches(j / 4, from); };
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

/// transform, where f gives zero for every key < from: tiles without another are not read.
template <group G, element T, domain D, class F>
__host__ __device__ void transform_from(G const& g, tiled<T, D> const& r, std::uint32_t from,
                                        T* out, F f) {
  constexpr std::uint32_t n = pack<T>::size, deep = together<T>;
  bool const alike = r.head == misaligned_head<T>(out, r.length);
  visit_from(g, r, from, [&](std::uint32_t const(&at)[deep], pack<T> const(&x)[deep]) {
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
  if (!r.blank) blank(g, r, from, out, alike);
  r.singles(g, [&](std::uint32_t i) { out[i] = f(i, r.data[i]); });
}

/// enumerate, of what has keys >= from: by a bit for each element of a unit, in the list's memory.
///
/// Group:   every member calls, all get the result; barriers
/// Cost:    one visit of the tiles, one scan; where the bits do not fit, enumerate's
template <group G, element T, domain D, class Wanted, class F>
__host__ __device__ std::uint32_t enumerate_from(G const& g, tiled<T, D> const& r,
                                                 std::uint32_t from, Wanted wanted, F f) {
  constexpr std::uint32_t n = pack<T>::size, deep = together<T>, bits = 32;
  std::uint32_t const most = tile_record::share(r.packs, g.units) * n + 2 * n;  // of a unit
  if (most > tile_record::room * bits)
    return enumerate(g, static_cast<row<T, D> const&>(r), wanted, f);
  std::uint32_t const begin = g.unit() == 0 ? 0 : r.index(0),
                      end = g.unit() + 1 == g.units ? r.length : r.index(r.share),
                      words = (end - begin + bits - 1) / bits;
  std::uint32_t* const word = r.record.list;
  g.sync();
  for (std::uint32_t w = g.unit_rank(); w < words; w += G::threads) word[w] = 0;
  g.sync();
  auto const mark = [&](std::uint32_t i, T x) {
    if (wanted(i, x)) g.mark(word[(i - begin) / bits], 1u << (i - begin) % bits);
  };
  visit_from(g, r, from, [&](std::uint32_t const(&at)[deep], pack<T> const(&x)[deep]) {
    unrolled<deep>([&](std::uint32_t u) {
      if (at[u] < r.share)
        unrolled<n>([&](std::uint32_t e) { mark(r.index(at[u]) + e, x[u].at[e]); });
    });
  });
  for (std::uint32_t i = begin + g.unit_rank(); i < r.index(0); i += G::threads) mark(i, r.data[i]);
  for (std::uint32_t i = r.index(r.share) + g.unit_rank(); i < end; i += G::threads)
    mark(i, r.data[i]);
  g.sync();
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
