// Keys: value <-> key over all 65,536 patterns of the 16-bit types and over the edges of fp32,
// against values decoded here from the definition of the formats.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cutoff/key.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "rows.hpp"

namespace {

using cutoff::domain;

/// A format's layout, written down again.
template <class T>
struct layout;
template <>
struct layout<float> {
  static constexpr int exponent_bits = 8, fraction_bits = 23;
};
template <>
struct layout<__half> {
  static constexpr int exponent_bits = 5, fraction_bits = 10;
};
template <>
struct layout<__nv_bfloat16> {
  static constexpr int exponent_bits = 8, fraction_bits = 7;
};

/// The value of a pattern, by IEEE 754.
template <class T>
double decoded(std::uint32_t pattern) {
  constexpr int E = layout<T>::exponent_bits, F = layout<T>::fraction_bits;
  int const field = static_cast<int>(pattern >> F) % (1 << E);
  int const fraction = static_cast<int>(pattern % (1u << F));
  int const bias = (1 << (E - 1)) - 1;
  double value = std::ldexp(field ? (1 << F) + fraction : fraction, std::max(field, 1) - bias - F);
  if (field == (1 << E) - 1) {
    value = fraction ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  }
  return pattern >> (E + F) ? -value : value;
}

template <class T>
std::uint32_t canonical_nan() {
  if (sizeof(T) == 4) return 0x7fc00000;
  return layout<T>::fraction_bits == 10 ? 0x7e00 : 0x7fc0;
}

template <class T>
constexpr std::uint32_t sign = 1u << (8 * sizeof(T) - 1);

template <class T>
std::uint32_t key_of(std::uint32_t pattern) {
  return cutoff::to_key(cutoff::from_bits<T>(pattern));
}

/// Number of patterns whose value or key breaks the map's promises, other than order.
template <class T>
std::uint32_t broken(std::uint32_t pattern) {
  double const value = decoded<T>(pattern);
  bool const valid = value >= 0.0 && value < std::numeric_limits<double>::infinity();
  T const x = cutoff::from_bits<T>(pattern);
  std::uint32_t const key = cutoff::to_key(x);
  std::uint32_t back = pattern;
  if (value == 0.0) back = 0;
  if (std::isnan(value)) back = canonical_nan<T>();

  bool ok = cutoff::to_bits(x) == pattern && test::bits(x) == pattern;
  ok = ok && cutoff::to_bits(cutoff::from_key<T>(key)) == back;
  ok = ok && cutoff::to_key(cutoff::from_key<T>(key)) == key;
  ok = ok && (key == 0) == std::isnan(value);
  ok = ok && (sizeof(T) == 4 || key < 0x10000);
  ok = ok && cutoff::key_in<domain::logits>(x) == key;
  ok = ok && cutoff::key_in<domain::probabilities>(x) == (valid ? key : 0);
  ok = ok && (std::isnan(value) || (key >= sign<T>) == (value >= 0.0));
  return !ok;
}

/// Number of pairs of patterns whose keys have another order than their values.
template <class T>
std::uint32_t misplaced(std::uint32_t a, std::uint32_t b) {
  double const x = decoded<T>(a), y = decoded<T>(b);
  std::uint32_t const x_key = key_of<T>(a), y_key = key_of<T>(b);
  if (std::isnan(x) || std::isnan(y)) {
    return std::isnan(x) && std::isnan(y) ? x_key != y_key : std::isnan(x) != (x_key < y_key);
  }
  return (x < y) != (x_key < y_key) || (x == y) != (x_key == y_key);
}

template <class T>
void check_all_patterns() {
  std::uint32_t wrong = 0;
  std::vector<std::uint32_t> numbers, keys;
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    wrong += broken<T>(pattern);
    keys.push_back(key_of<T>(pattern));
    if (!std::isnan(decoded<T>(pattern))) numbers.push_back(pattern);
  }
  CHECK(wrong == 0);

  // Sorted by value, neighbours decide every pair.
  std::sort(numbers.begin(), numbers.end(),
            [](std::uint32_t a, std::uint32_t b) { return decoded<T>(a) < decoded<T>(b); });
  for (std::size_t i = 1; i < numbers.size(); ++i)
    wrong += misplaced<T>(numbers[i - 1], numbers[i]);
  CHECK(wrong == 0);

  // As many keys as values: one for the NaNs, one for both zeros, one for each other pattern.
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::size_t const nans = 0x10000 - numbers.size();
  CHECK(keys.size() == 0x10000 - (nans - 1) - 1);
}

/// Patterns at and next to every place where the format changes.
std::vector<std::uint32_t> edges() {
  std::vector<std::uint32_t> all;
  for (std::uint32_t const place :
       {0x00000000u, 0x00000001u, 0x00400000u, 0x00800000u, 0x00ffffffu, 0x3f800000u, 0x3f000000u,
        0x4b800000u, 0x7f000000u, 0x7f800000u, 0x7fa00000u, 0x7fc00000u, 0x7fffffffu}) {
    for (std::uint32_t const near : {place - 1, place, place + 1}) {
      all.push_back(near);
      all.push_back(near ^ 0x80000000u);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("keys of all fp16 patterns keep the order and come back") {
  check_all_patterns<__half>();
}

TEST_CASE("keys of all bf16 patterns keep the order and come back") {
  check_all_patterns<__nv_bfloat16>();
}

TEST_CASE("keys at the edges of fp32 keep the order and come back") {
  for (std::uint32_t const a : edges()) {
    CAPTURE(a);
    CHECK(broken<float>(a) == 0);
    std::uint32_t wrong = 0;
    for (std::uint32_t const b : edges()) wrong += misplaced<float>(a, b);
    CHECK(wrong == 0);
  }
}

TEST_CASE("keys of four million fp32 patterns keep the order and come back") {
  std::uint32_t wrong = 0, before = 0;
  for (std::uint64_t pattern = 0; pattern <= 0xffffffff; pattern += 1021) {
    auto const p = static_cast<std::uint32_t>(pattern);
    auto const other = static_cast<std::uint32_t>(test::random_word(1, pattern));
    wrong += broken<float>(p) + misplaced<float>(before, p) + misplaced<float>(p, p + 1) +
             misplaced<float>(p, other);
    before = p;
  }
  CHECK(wrong == 0);
}

TEST_CASE(
    "the lowest key that counts, and the keys around infinity, are where they are said to be") {
  CHECK(cutoff::lowest_key<domain::logits, float> == 0u);
  CHECK(cutoff::lowest_key<domain::probabilities, float> == key_of<float>(0));
  CHECK(cutoff::lowest_key<domain::probabilities, __half> == key_of<__half>(0));
  CHECK(cutoff::lowest_key<domain::probabilities, __nv_bfloat16> == key_of<__nv_bfloat16>(0));
  CHECK(key_of<float>(0xff800000) == 0x007fffffu);  // -inf, as the design has it
  CHECK(key_of<float>(0xff7fffff) == 0x00800000u);  // lowest finite, the next
  CHECK(key_of<__half>(0xfbff) == key_of<__half>(0xfc00) + 1);
  CHECK(key_of<__nv_bfloat16>(0xff7f) == key_of<__nv_bfloat16>(0xff80) + 1);
}

TEST_CASE("the digits of a key, the highest first, are the key") {
  for (std::uint32_t const key : edges()) {
    std::uint32_t again = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
      CHECK(cutoff::digit(key, shift) < cutoff::radix);
      again = again * cutoff::radix + cutoff::digit(key, shift);
    }
    CHECK(again == key);
  }
}
