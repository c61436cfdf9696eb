#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "rows.hpp"

// The right answers, by sorting. Nothing of the library is used here, and none of its ways: values
// are compared as floats, weights and quotients are computed in double where double is exact.
namespace test {

__extension__ typedef unsigned __int128 wide;

template <class T>
struct answer {
  std::vector<std::uint32_t> kept;  // ascending index
  bool cut;                         // false where `pivots` writes +0 (logits: -inf)
  T pivot;                          // what `pivots` writes
  std::vector<T> renormed;          // [V], what `renorm` writes; empty for logits
};

struct entry {
  float value;
  std::uint32_t index;
};

/// The valid entries, value descending, then index ascending. -0 equals +0; NaNs come last, by
/// index.
template <class T>
std::vector<entry> ordered(std::span<T const> x, bool logits) {
  std::vector<entry> all;
  for (std::size_t i = 0; i < x.size(); ++i) {
    float const value = from(x[i]);
    bool const weight = value >= 0.0f && value < std::numeric_limits<float>::infinity();
    if (logits || weight) all.push_back({value, static_cast<std::uint32_t>(i)});
  }
  std::sort(all.begin(), all.end(), [](entry const& a, entry const& b) {
    bool const a_nan = std::isnan(a.value), b_nan = std::isnan(b.value);
    if (a_nan != b_nan) return b_nan;
    if (!a_nan && a.value != b.value) return a.value > b.value;
    return a.index < b.index;
  });
  return all;
}

/// n and the rest of the tie group in which the first n of `all` end. A NaN ties with nothing.
inline std::size_t with_ties(std::vector<entry> const& all, std::size_t n) {
  while (n > 0 && n < all.size() && all[n].value == all[n - 1].value) ++n;
  return n;
}

inline std::vector<std::uint32_t> first_indices(std::vector<entry> const& all, std::size_t n) {
  std::vector<std::uint32_t> kept(n);
  for (std::size_t i = 0; i < n; ++i) kept[i] = all[i].index;
  std::sort(kept.begin(), kept.end());
  return kept;
}

/// s of the weights floor(x * 2^s), from the row's largest valid entry.
inline int scale(std::vector<entry> const& all, std::size_t V) {
  if (all.empty() || !(all[0].value > 0.0f)) return 0;  // every weight is 0 then
  return (V <= (std::size_t{1} << 20) ? 43 : 75) - std::ilogb(all[0].value);
}

// Exact: 24 bits and a power of two fit in double, and V <= 2^31 weights below 2^76 in `wide`.
inline wide weight(float x, int s) {
  return static_cast<wide>(std::floor(std::ldexp(static_cast<double>(x), s)));
}

/// ceil(p * 2^s); beyond all sums, so never reached, where that is 2^127 or more.
inline wide mass_target(float p, int s) {
  double const target = std::ceil(std::ldexp(static_cast<double>(p), s));
  return target < 0x1p127 ? static_cast<wide>(target) : ~wide{0};
}

/// The kept integer mass, rounded to 24 bits (nearest, even), as a value. Double holds any exponent
/// that occurs, so that no scaling by 2^-32 is needed here.
inline double divisor(wide mass, int s) {
  int drop = 0;
  while (mass >> drop >= (wide{1} << 24)) ++drop;
  wide top = mass >> drop;
  wide const rest = mass - (top << drop), half = drop == 0 ? 0 : wide{1} << (drop - 1);
  if (drop > 0 && (rest > half || (rest == half && top % 2 == 1))) ++top;
  return std::ldexp(static_cast<double>(top), drop - s);
}

template <class T>
T canonical_nan() {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<T>(std::uint32_t{0x7fc00000});
  if constexpr (std::is_same_v<T, __half>) return std::bit_cast<T>(std::uint16_t{0x7e00});
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return std::bit_cast<T>(std::uint16_t{0x7fc0});
}

/// The answer that keeps the first n of `all`, and where it is a cut also what ties with the last.
template <class T>
answer<T> keep_first(std::span<T const> x, std::vector<entry> const& all, std::size_t n, bool cut,
                     bool lowest_index, bool logits) {
  float pivot = logits ? -std::numeric_limits<float>::infinity() : 0.0f;
  if (cut) pivot = all[n - 1].value + 0.0f;  // -0 + 0 is +0
  if (cut && !lowest_index) n = with_ties(all, n);
  answer<T> a{first_indices(all, n), cut, rounded<T>(pivot), {}};
  if (std::isnan(pivot)) a.pivot = canonical_nan<T>();
  if (logits) return a;

  int const s = scale(all, x.size());
  wide mass = 0;
  for (std::uint32_t i : a.kept) mass += weight(from(x[i]), s);
  double const D = divisor(mass, s);
  a.renormed.assign(x.size(), rounded<T>(0.0f));
  for (std::uint32_t i : a.kept) {
    // Rounding the double quotient again is the correctly rounded fp32 quotient: a quotient of two
    // 24-bit numbers that is no midpoint of fp32 is at least 2^-49 of itself away from one.
    float const value = from(x[i]);
    if (value > 0.0f) a.renormed[i] = rounded<T>(static_cast<float>(value / D));
  }
  return a;
}

/// Top-k of one row. k as in a per-row array: k <= 0 or k >= V is no cut.
template <class T>
answer<T> reference_top_k(std::span<T const> x, std::int64_t k, bool lowest_index,
                          bool logits = false) {
  auto const all = ordered(x, logits);
  bool const cut =
      k > 0 && static_cast<std::size_t>(k) < x.size() && static_cast<std::size_t>(k) <= all.size();
  return keep_first(x, all, cut ? static_cast<std::size_t>(k) : all.size(), cut, lowest_index,
                    logits);
}

/// Top-p of one row by integer weights: the definition. p as in a per-row array: NaN or p >= 1 is
/// no cut, p <= 0 the maximum.
template <class T>
answer<T> reference_top_p(std::span<T const> x, float p, bool lowest_index) {
  auto const all = ordered(x, false);
  std::size_t n = all.size();
  bool cut = false;
  if (p < 1.0f) {  // false for NaN
    int const s = scale(all, x.size());
    wide const target = p > 0.0f ? mass_target(p, s) : 0;
    wide mass = 0;
    for (std::size_t i = 0; i < all.size() && !cut; ++i) {
      mass += weight(all[i].value, s);
      cut = mass >= target;
      if (cut) n = i + 1;
    }
  }
  return keep_first(x, all, n, cut, lowest_index, false);
}

/// A sum of floats without rounding: a whole number of 2^-149 below 2^320, the highest word first.
struct exact_sum {
  std::array<std::uint64_t, 5> words{};
  auto operator<=>(exact_sum const&) const = default;

  void add(std::uint64_t m, int shift) {  // m * 2^shift, cut off to a whole number
    if (shift < 0) m = shift > -64 ? m >> -shift : 0, shift = 0;
    wide carry = wide{m} << (shift % 64);
    for (int i = 4 - shift / 64; i >= 0; --i, carry >>= 64) {
      carry += words[static_cast<std::size_t>(i)];
      words[static_cast<std::size_t>(i)] = static_cast<std::uint64_t>(carry);
    }
  }
  void add(float x) {  // x >= 0
    int exponent = 0;
    float const fraction = std::frexp(x, &exponent);
    // A subnormal's fraction has fewer bits than 24, and the shift is negative by as many.
    add(static_cast<std::uint64_t>(std::ldexp(fraction, 24)), exponent - 24 + 149);
  }
  friend exact_sum operator+(exact_sum a, exact_sum const& b) {
    for (int i = 0; i < 5; ++i) a.add(b.words[static_cast<std::size_t>(i)], 64 * (4 - i));
    return a;
  }
};

struct exact_answer {
  std::vector<std::uint32_t> kept;  // ascending index
  bool close;  // a prefix sum lies within V * 2^-s of p: integer weights may decide otherwise
};

/// Top-p of one row by the true sums of the values.
template <class T>
exact_answer exact_top_p(std::span<T const> x, float p, bool lowest_index) {
  auto const all = ordered(x, false);
  std::size_t n = p < 1.0f && p <= 0.0f ? std::min<std::size_t>(1, all.size()) : all.size();
  bool close = false, reached = false;
  exact_sum sum, target, tolerance;
  if (p > 0.0f && p < 1.0f) {
    target.add(p);
    bool const weighs = !all.empty() && all[0].value > 0.0f;  // else there is nothing to truncate
    if (weighs) tolerance.add(x.size(), 149 - scale(all, x.size()));
    for (std::size_t i = 0; i < all.size(); ++i) {
      sum.add(all[i].value);
      bool const tied = i + 1 < all.size() && all[i + 1].value == all[i].value;
      if (tied && !lowest_index) continue;  // a group is kept whole: its inner sums decide nothing
      close = close || (sum + tolerance >= target && sum <= target + tolerance);
      if (!reached && sum >= target) reached = true, n = i + 1;
    }
  }
  return {first_indices(all, lowest_index ? n : with_ties(all, n)), close};
}

}  // namespace test
