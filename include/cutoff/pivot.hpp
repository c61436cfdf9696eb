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

/// What an entry weighs if it is there: by its value where the measure can, which is faster.
template <measure M, class T>
__host__ __device__ typename M::weight weight_of(M const& m, T x, std::uint32_t key, bool there) {
  if constexpr (element<T> && requires { m.weigh_value(x, there); })
    return m.weigh_value(there ? x : from_bits<T>(0), there);
  else
    return m.weigh(key, there);
}

/// sweep, of at least those elements whose keys are >= from: of all, if the row knows no better.
template <group G, class Row, class F>
__host__ __device__ void sweep_from(G const& g, Row const& r, std::uint32_t, F f) {
  sweep(g, r, f);
}

/// Keys among which a pivot is sought, from low to last, with so much above them.
template <class W>
struct range {
  std::uint32_t low, last;
  W above;
};

/// All keys of a row.
template <class Row, class W>
__host__ __device__ range<W> all_keys() {
  return {0, (format<typename Row::value>::sign << 1) - 1, 0};
}

/// A step of the descent: narrows a range by 8 bits to where the target is reached. Returns the measure
/// of the new range; 0, and above it all there is, if the target is not reached.
///
/// Group:   every member calls, all get the result; a barrier at the end
/// Cost:    a sweep and a histogram
template <group G, class Row, measure M, class W = typename M::weight>
__host__ __device__ W narrow(G const& g, Row const& r, M const& m, W target, range<W>& in) {
  typename G::template histogram<W> h(g);
  int const bits = bit_length(std::uint64_t{in.last - in.low}), shift = bits > 8 ? bits - 8 : 0;
  g.clear(h);
  sweep_from(g, r, in.low, [&](std::uint32_t, typename Row::value x) {
    std::uint32_t const key = Row::key(x), offset = key - in.low;
    if (offset <= in.last - in.low && Row::counts(key)) g.add(h, offset >> shift, m.weigh(key));
  });
  auto const found = g.cross(h, static_cast<W>(target - in.above));
  in.above += found.above;
  if (found.at == 0) return 0;
  in.low += found.digit << shift;
  std::uint32_t const last = in.low + ((1u << shift) - 1);
  in.last = last < in.last ? last : in.last;
  return found.at;
}

/// Finds the pivot within a range by radix descent.
///
/// Shapes:  r [V]
/// Units:   target in units of the measure, above in.above
/// Group:   every member calls, all get the result; a barrier at the end
/// Cost:    a sweep and a histogram for each 8 bits, 1 where the target is not reached
template <group G, class Row, measure M, class W = typename M::weight>
__host__ __device__ pivot<W> descend(G const& g, Row const& r, M const& m, W target, range<W> in) {
  W at = 0;  // measure of the range; in.above < target <= in.above + at
  do {
    at = narrow(g, r, m, target, in);
    if (at == 0) return {Row::lowest, in.above, at};
  } while (in.low < in.last);
  return {in.low, in.above, at};
}

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
  return descend(g, r, m, target, all_keys<Row, W>());
}

/// Measure of all entries from a key up.
template <group G, class Row, measure M>
__host__ __device__ typename M::weight kept_measure(G const& g, Row const& r, M const& m,
                                                    std::uint32_t from) {
  typename M::weight mine = 0;
  if constexpr (std::same_as<M, nothing>) return mine;
  sweep_from(g, r, from, [&](std::uint32_t, typename Row::value x) {
    std::uint32_t const key = Row::key(x);
    mine += weight_of(m, x, key, key >= from && Row::counts(key));
  });
  return g.sum(mine);
}

/// A pivot by one measure, and what another says of all from the pivot up.
template <class W, class X>
struct found {
  pivot<W> at;
  X kept;
};

/// Finds the pivot by the measure m, and weighs what stays by k.
template <group G, class Row, measure M, measure K>
__host__ __device__ auto find(G const& g, Row const& r, M const& m, typename M::weight target,
                              K const& k) {
  auto const p = radix_pivot(g, r, m, target);
  found<typename M::weight, typename K::weight> f{p, 0};
  if constexpr (std::same_as<M, K>)
    f.kept = p.above + p.at;
  else
    f.kept = kept_measure(g, r, k, p.key);
  return f;
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
      mine += weight_of(m, x, key, key >= t);
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
