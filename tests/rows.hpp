#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "../examples/npy.hpp"

// Row makers for tests and bench: the same name, V and seed give the same row, on every machine up
// to the last bit of std::log, cos and exp. Any V >= 1.
namespace test {

/// x rounded once to T, to nearest, ties to even. By intrinsics, since a build may switch the
/// operators of the half types off.
template <class T>
T rounded(float x) {
  if constexpr (std::is_same_v<T, __half>) return __float2half_rn(x);
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return __float2bfloat16_rn(x);
  if constexpr (std::is_same_v<T, float>) return x;
}

template <class T>
float from(T x) {
  if constexpr (std::is_same_v<T, __half>) return __half2float(x);
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return __bfloat162float(x);
  if constexpr (std::is_same_v<T, float>) return x;
}

template <class T>
auto bits(T x) {
  return std::bit_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>(x);
}

template <class T>
std::vector<T> to(std::vector<float> const& row) {
  std::vector<T> out(row.size());
  std::transform(row.begin(), row.end(), out.begin(), rounded<T>);
  return out;
}

/// The i-th random word of a seed (splitmix64, reached directly by its counter).
inline std::uint64_t random_word(std::uint32_t seed, std::uint64_t i) {
  std::uint64_t z = ((std::uint64_t{seed} << 32) + i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

inline double random_unit(std::uint32_t seed, std::uint64_t i) {  // in [0, 1)
  return static_cast<double>(random_word(seed, i) >> 11) * 0x1p-53;
}

/// A random order of 0 .. V-1 (Fisher-Yates).
inline std::vector<std::uint32_t> permutation(std::size_t V, std::uint32_t seed) {
  std::vector<std::uint32_t> order(V);
  std::iota(order.begin(), order.end(), 0u);
  for (std::size_t i = V; i > 1; --i) std::swap(order[i - 1], order[random_word(seed, i) % i]);
  return order;
}

/// V normal deviates (Box-Muller, one random word a pair).
inline std::vector<float> normal(std::size_t V, std::uint32_t seed, double deviation) {
  std::vector<float> x(V);
  for (std::size_t i = 0; i < V; i += 2) {
    std::uint64_t const word = random_word(seed, i);
    double const u = (static_cast<double>(word >> 32) + 1.0) * 0x1p-32;  // in (0, 1]
    double const angle = static_cast<double>(word & 0xffffffffu) * (6.283185307179586 * 0x1p-32);
    double const radius = deviation * std::sqrt(-2.0 * std::log(u));
    x[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < V) x[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return x;
}

/// The row of weight(i), divided by its sum.
template <class F>
std::vector<float> normalised(std::size_t V, F weight) {
  std::vector<double> w(V);
  double sum = 0.0;
  for (std::size_t i = 0; i < V; ++i) sum += w[i] = static_cast<double>(weight(i));
  std::vector<float> x(V);
  for (std::size_t i = 0; i < V; ++i) x[i] = static_cast<float>(w[i] / sum);
  return x;
}

inline std::vector<float> normal1(std::size_t V, std::uint32_t seed) {
  return npy::softmax(normal(V, seed, 1.0).data(), V);
}

// "N(0, 4)" of the measurements: standard deviation 4. Peaked, closer to a language model.
inline std::vector<float> normal4(std::size_t V, std::uint32_t seed) {
  return npy::softmax(normal(V, seed, 4.0).data(), V);
}

/// Where the rows of a language model lie: a path that the build defines.
inline char const* data_path() { return CUTOFF_TEST_DATA; }

inline std::vector<float> real(std::size_t V, std::uint32_t seed) {
  static npy::array const data = npy::read(data_path());
  std::size_t const columns = static_cast<std::size_t>(data.columns);
  float const* const row =
      data.values.data() + seed % static_cast<std::size_t>(data.rows) * columns;
  std::vector<float> logits(V);  // cut short or repeated where V is another width
  for (std::size_t i = 0; i < V; ++i) logits[i] = row[i % columns];
  return npy::softmax(logits.data(), V);
}

inline std::vector<float> zipf(std::size_t V, std::uint32_t seed) {
  auto const rank = permutation(V, seed);
  return normalised(V, [&](std::size_t i) { return 1.0 / (1.0 + rank[i]); });
}

inline std::vector<float> uniform(std::size_t V, std::uint32_t seed) {
  return normalised(V, [=](std::size_t i) { return random_unit(seed, i) + 0x1p-54; });
}

inline std::vector<float> one_hot(std::size_t V, std::uint32_t seed) {
  std::vector<float> x(V);
  x[random_word(seed, 0) % V] = 1.0f;
  return x;
}

inline std::vector<float> all_equal(std::size_t V, std::uint32_t) {
  return std::vector<float>(V, static_cast<float>(1.0 / static_cast<double>(V)));
}

inline std::vector<float> two_values(std::size_t V, std::uint32_t seed) {
  return normalised(V, [=](std::size_t i) { return random_word(seed, i) % 2 == 0 ? 1.0 : 3.0; });
}

inline std::vector<float> ascending(std::size_t V, std::uint32_t) {
  return normalised(V, [](std::size_t i) { return i + 1; });
}

inline std::vector<float> descending(std::size_t V, std::uint32_t) {
  return normalised(V, [=](std::size_t i) { return V - i; });
}

// Sign, exponent and eleven of the 23 bits of the significand agree.
inline std::vector<float> same_leading_bits(std::size_t V, std::uint32_t seed) {
  std::vector<float> x = all_equal(V, seed);
  for (std::size_t i = 0; i < V; ++i) {
    std::uint32_t const word = static_cast<std::uint32_t>(random_word(seed, i) >> 52);
    x[i] = std::bit_cast<float>((bits(x[i]) & ~0xfffu) | word);
  }
  return x;
}

// Subnormal in fp32 and bf16 for an even seed, in fp16 (where those are zero) for an odd one.
inline std::vector<float> denormals(std::size_t V, std::uint32_t seed) {
  std::vector<float> x(V);
  for (std::size_t i = 0; i < V; ++i) {
    std::uint32_t const word = static_cast<std::uint32_t>(random_word(seed, i) >> 41);
    x[i] = seed % 2 == 0 ? std::bit_cast<float>(word) : static_cast<float>(word >> 13) * 0x1p-24f;
  }
  return x;
}

// One entry in 64 is left, and at least one of all.
inline std::vector<float> mostly_zeros(std::size_t V, std::uint32_t seed) {
  std::size_t const always = random_word(~seed, 0) % V;
  return normalised(V, [=](std::size_t i) {
    return i == always || random_word(seed, i) % 64 == 0 ? random_unit(~seed, i) + 0x1p-20 : 0.0;
  });
}

// Softmax of N(0, 1) with every eighth entry or so replaced; the softmax itself saw none of them.
inline std::vector<float> with_nan_and_infinities(std::size_t V, std::uint32_t seed) {
  float const infinity = std::numeric_limits<float>::infinity();
  float const nan = std::numeric_limits<float>::quiet_NaN();
  float const odd[] = {nan, -nan, infinity, -infinity, -0.25f, -0.0f, -1e-40f};
  std::vector<float> x = normal1(V, seed);
  for (std::size_t i = 0; i < V; ++i) {
    std::uint64_t const which = random_word(~seed, i) % 56;
    if (which < 7) x[i] = odd[which];
  }
  return x;
}

// One entry of every 16 is large: the worst case for skipping tiles by their maximum.
inline std::vector<float> one_large_per_tile(std::size_t V, std::uint32_t seed) {
  return normalised(V, [=](std::size_t i) {
    std::size_t const first = i / 16 * 16,
                      large = random_word(~seed, first) % std::min<std::size_t>(16, V - first);
    return i - first == large ? 1.0 + random_unit(seed, i) : random_unit(seed, i) * 1e-3;
  });
}

/// One entry in ten has one of `spread` neighbouring values, from the one on that lies `place` keys over a
/// power of two; another one in ten is twice as large and more, the rest are far smaller.
template <class T>
std::vector<T> crowded(std::size_t V, std::uint32_t place, std::uint32_t spread) {
  float const base = std::ldexp(1.0f, -static_cast<int>(std::bit_width(V)) + 1);
  std::vector<T> x(V);
  for (std::size_t i = 0; i < V; ++i) {
    auto const word = random_word(place, i);
    auto at = static_cast<std::uint32_t>(bits(rounded<T>(base))) + place;
    at += static_cast<std::uint32_t>(word % spread);
    float const larger = base * (2.0f + static_cast<float>(word % 4096) / 2048.0f);
    x[i] = i % 10 == 3   ? std::bit_cast<T>(static_cast<decltype(bits(T()))>(at))
           : i % 10 == 7 ? rounded<T>(larger)
                         : rounded<T>(base / 4096.0f);
  }
  return x;
}

/// Rows, most of which stays under top-p, that a sample of every sixteenth tile is wrong about.
enum class lie {
  lower,     // the others' entries are a quarter lower
  higher,    // a quarter higher, so that they add up to more
  crowd,     // all have a value that is not rare in the sample
  outlier,   // one of them is far larger than all others, which are too small to be exact beside it
  no_number  // infinities, NaN, and what is below zero
};
inline constexpr lie lies[] = {lie::lower, lie::higher, lie::crowd, lie::outlier, lie::no_number};

inline std::vector<float> misleading(std::size_t V, lie how, std::uint32_t seed) {
  std::vector<float> x = normal1(V, seed);
  float const each = 1.0f / static_cast<float>(V), huge = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < V; ++i) {
    if (how == lie::outlier) {  // one in ten weighs what all ten should
      auto const word = static_cast<float>(random_word(seed, i) % 4096);
      x[i] = i % 10 == 0 ? 9.8f * each : 0x1p-22f * (1.0f + word / 4096.0f);
    }
    if (i / 16 % 16 == 0) continue;
    if (how == lie::lower) x[i] *= 0.75f;
    if (how == lie::higher) x[i] *= 1.25f;
    if (how == lie::crowd) x[i] = each;
    if (how == lie::outlier && i == V - 70) x[i] = 0.9f;
    if (how == lie::no_number && i % 1000 == 77)
      x[i] = i % 3 == 0 ? huge : i % 3 == 1 ? huge - huge : -x[i];
  }
  return x;
}

struct maker {
  char const* name;
  std::vector<float> (*make)(std::size_t V, std::uint32_t seed);
};

inline constexpr maker makers[] = {
    {"normal1", normal1},
    {"normal4", normal4},
    {"real", real},
    {"zipf", zipf},
    {"uniform", uniform},
    {"one_hot", one_hot},
    {"all_equal", all_equal},
    {"two_values", two_values},
    {"ascending", ascending},
    {"descending", descending},
    {"same_leading_bits", same_leading_bits},
    {"denormals", denormals},
    {"mostly_zeros", mostly_zeros},
    {"with_nan_and_infinities", with_nan_and_infinities},
    {"one_large_per_tile", one_large_per_tile},
};

inline std::vector<float> make_row(std::string_view name, std::size_t V, std::uint32_t seed) {
  for (maker const& m : makers) {
    if (name == m.name) return m.make(V, seed);
  }
  throw std::invalid_argument("no row maker is called " + std::string(name));
}

}  // namespace test
