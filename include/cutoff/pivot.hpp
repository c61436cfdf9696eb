#pragma once
// The pivot: the largest key t at which the measure of {x >= t} reaches a target. Two ways to find
// it, which always agree:
//
//  radix_pivot    1. histogram the top byte of the keys, each entry weighing what the measure says
//                 2. take the bin in which the running total from the top first reaches the target
//                 3. subtract what lies above it, and repeat with the next byte of its keys alone
//                 Four sweeps for 32-bit keys, two for 16-bit ones; needs a histogram.
//  bitwise_pivot  binary search on the key, one sum per round
//                 31 sweeps (logits 32), 15 for 16-bit keys (logits 16); needs no scratch but a
//                 sum.

#include <cstdint>

#include "group.hpp"
#include "measure.hpp"
#include "row.hpp"

namespace cutoff {
inline namespace v0 {

/// The largest key of a row at which the measure reaches the target. Not reached: the lowest key
/// that counts, above = the whole measure, at = 0.
template <class W>
struct pivot {
  std::uint32_t key;
  W above;  // measure of the entries above key
  W at;     // measure of the entries with that very key

  __host__ __device__ bool reached() const { return at != 0; }
  bool operator==(pivot const&) const = default;
};

/// Finds the pivot by radix descent.
///
/// Shapes:  r [V]
/// Units:   target in units of the measure, at least 1
/// Group:   every member calls, all get the result; a barrier at the end
/// Cost:    4 sweeps (16-bit types: 2), 1 where the target is not reached; one histogram
/// Source:  MSD radix select, as in CUB and RAFT; theirs count only, this weighs by any measure
template <group G, class Row, measure M>
__host__ __device__ auto radix_pivot(G const& g, Row r, M const& m, typename M::weight target) {
  using W = typename M::weight;
  typename G::template histogram<W> h(g);
  std::uint32_t prefix = 0;  // the pivot's digits so far
  W above = 0, at = 0;  // measure over the prefix's range, and in it; above < target <= above + at
  for (int shift = format<typename Row::value>::width - 8; shift >= 0; shift -= 8) {
    g.clear(h);
    // The two-step shift keeps the first round's 32 + 0 within the width of a key.
    sweep(g, r, [&](std::uint32_t, typename Row::value x) {
      std::uint32_t const key = Row::key(x);
      if (key >> shift >> 8 == prefix && Row::counts(key))
        g.add(h, digit(key, shift), m.weigh(key));
    });
    auto const found = g.cross(h, static_cast<W>(target - above));
    above += found.above;
    at = found.at;
    if (at == 0) return pivot<W>{Row::lowest, above, at};
    prefix = prefix << 8 | found.digit;
  }
  return pivot<W>{prefix, above, at};
}

/// Finds the pivot by binary search on the bits of the key.
///
/// Shapes:  r [V]
/// Units:   target in units of the measure, at least 1
/// Group:   every member calls, all get the result; a barrier at the end
/// Cost:    31 sweeps and sums, logits 32 (16-bit types: 15 and 16); no scratch but the sum's
template <group G, class Row, measure M>
__host__ __device__ auto bitwise_pivot(G const& g, Row r, M const& m, typename M::weight target) {
  using W = typename M::weight;
  constexpr int rounds = format<typename Row::value>::width - (Row::in == domain::probabilities);
  // f(t) = measure of the keys >= t. Keys that count fill less than 2^rounds - 1 values, so the
  // range may begin one below them: a search that ends there has not reached the target.
  std::int64_t low = std::int64_t{Row::lowest} - 1, high = low + (std::int64_t{1} << rounds);
  W f_low = 0, f_high = 0;                        // f_low is set once a round has moved low
  for (int round = 0; round < rounds; ++round) {  // f(low) >= target > f(high)
    std::int64_t const middle = low + (high - low) / 2;
    auto const t = static_cast<std::uint32_t>(middle);
    W mine = 0;
    sweep(g, r, [&](std::uint32_t, typename Row::value x) {
      std::uint32_t const key = Row::key(x);
      mine += m.weigh(key, key >= t);
    });
    W const f = g.sum(mine);
    (f >= target ? low : high) = middle;
    (f >= target ? f_low : f_high) = f;
  }
  if (low < Row::lowest) return pivot<W>{Row::lowest, f_high, 0};
  return pivot<W>{static_cast<std::uint32_t>(low), f_high, static_cast<W>(f_low - f_high)};
}

/// Key of the row's largest entry that counts, 0 if there is none.
///
/// Group:   every member calls, all get the result; a barrier at the end
/// Cost:    one sweep
template <group G, class Row>
__host__ __device__ std::uint32_t largest_key(G const& g, Row r) {
  std::uint32_t mine = 0;
  sweep(g, r, [&](std::uint32_t, typename Row::value x) {
    std::uint32_t const key = Row::key(x);
    mine = key > mine ? key : mine;
  });
  return g.max(mine);
}

}  // namespace v0
}  // namespace cutoff
