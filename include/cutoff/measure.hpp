#pragma once
// What an element weighs. `count` weighs 1. `mass` weighs the value itself as an integer, so that
// sums are exact, never overflow and do not depend on the order of addition: with e the exponent of
// the row's largest entry, x weighs floor(x * 2^s), s = 43 - e in one 64-bit word for rows of up to
// 2^20 entries and s = 75 - e in 128 bits beyond.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cuda/std/bit>
#include <cuda/std/limits>
#include <nv/target>
#include <type_traits>

#include "key.hpp"

namespace cutoff {
inline namespace v0 {

/// A measure weighs the key of an entry that counts in its row; nothing, without a branch, where
/// the entry is not `there`.
template <class M>
concept measure = requires(M const m, std::uint32_t key, bool there) {
  { m.weigh(key) } -> std::same_as<typename M::weight>;
  { m.weigh(key, there) } -> std::same_as<typename M::weight>;
};

/// Every entry weighs 1.
struct count {
  using weight = std::uint32_t;
  __host__ __device__ weight weigh(std::uint32_t, bool there = true) const { return there; }
  template <element T>
  __host__ __device__ weight weigh_value(T, bool there) const {
    return there;
  }
};

/// For what needs no total: no entry weighs anything, and no sweep is spent on it.
struct nothing {
  using weight = std::uint32_t;
  __host__ __device__ weight weigh(std::uint32_t, bool = true) const { return 0; }
  template <element T>
  __host__ __device__ weight weigh_value(T, bool) const {
    return 0;
  }
  template <class T, std::size_t N>
  __host__ __device__ weight weigh_values(T const (&)[N]) const {
    return 0;
  }
};

/// A kept mass as a float with 24 significant bits: value, or value * 2^32 where scaled.
struct divisor {
  float value;
  bool scaled;
};

/// Number of bits of x without leading zeros.
template <class W>
__host__ __device__ int bit_length(W x) {
  if constexpr (sizeof(W) > 8) {
    auto const high = static_cast<std::uint64_t>(x >> 64);
    return high ? 64 + bit_length(high) : bit_length(static_cast<std::uint64_t>(x));
  } else {
    return 64 - cuda::std::countl_zero(std::uint64_t{x});
  }
}

/// Every probability weighs itself, in units of 2^-s.
///
/// Units:   W is std::uint64_t for rows of at most 2^20 entries, uint128 for longer ones
/// Source:  integer mass histograms are in FlashInfer's air_top_p.cuh; the scale by the row's own
///          largest entry, and with it exactness for any row, is ours
template <element T, class W>
class mass {
 public:
  using weight = W;

  /// Longest row whose masses fit one 64-bit word: 2^20 entries below 2^44 each.
  static constexpr std::uint32_t longest = sizeof(W) > 8 ? 0x7fffffff : 1u << 20;

  __host__ __device__ explicit mass(std::uint32_t largest_key) : top(exponent(largest_key)) {}

  /// floor(x * 2^s): the significand, moved right by what x's exponent is below the largest one.
  /// The hidden bit goes on after the move to the left, signed, because that is one instruction:
  /// integer ones are what limits a sweep that weighs.
  __host__ __device__ W weigh(std::uint32_t key, bool there = true) const {
    using signed_word = std::conditional_t<(sizeof(W) > 8), int128, std::int64_t>;
    if (!there) key = f::sign;  // the key of 0
    std::uint32_t const e = exponent(key);
    auto const fraction =
        static_cast<std::int32_t>(key - (e << f::mantissa));  // less the hidden bit
    auto const high =
        fraction * (signed_word{1} << (point - f::mantissa)) + (signed_word{1} << point);
    std::uint32_t const drop = top - e;
    return static_cast<W>(high) >> (drop < limit ? drop : limit);
  }

  /// The weight of a finite value >= 0, given as 0 where it is not there.
  __host__ __device__ W weigh_value(T x, bool = true) const {
    T const alone[1] = {x};
    return weigh_values(alone);
  }
  /// The sum of their weights. Where doubles are as fast as integers, in two instructions each: in
  /// [2^52, 2^53) a double's bits count units, and rounding down is floor.
  template <std::size_t N>
  __host__ __device__ W weigh_values(T const (&x)[N]) const {
    if constexpr (sizeof(W) == 8) {
      static_assert(N <= 256, "so many of 44 bits are below 2^52");
      NV_DISPATCH_TARGET(NV_IS_EXACTLY_SM_80, (return by_doubles(x);), NV_IS_EXACTLY_SM_90,
                         (return by_doubles(x);), NV_IS_EXACTLY_SM_100, (return by_doubles(x);),
                         NV_ANY_TARGET, (return one_by_one(x);))
    } else {
      return one_by_one(x);
    }
  }

  /// ceil(p * 2^s), at least 1 and saturated to a weight that no row reaches.
  __host__ __device__ W target(float p) const {
    using single = format<float>;
    std::uint32_t const bits = to_bits(p);
    if (bits & single::sign) return 1;
    W const significand =
        bits < single::hidden ? bits : (bits & (single::hidden - 1)) | single::hidden;
    int const field = static_cast<int>(bits >> single::mantissa);
    int const shift = (field ? field : 1) - single::bias - single::mantissa + scale();
    constexpr int width = 8 * sizeof(W);
    if (shift >= 0) {
      bool const fits = shift < width && (significand << shift >> shift) == significand;
      W const whole = fits ? significand << shift : cuda::std::numeric_limits<W>::max();
      return significand == 0 ? 1 : whole;
    }
    if (shift <= -width) return 1;
    W const floor = significand >> -shift;
    W const whole = floor + (floor << -shift != significand);
    return whole ? whole : 1;
  }

  /// A sum of weights as the float that entries are divided by: rounded once, to nearest even.
  __host__ __device__ divisor divide_by(W sum) const {
    using single = format<float>;
    if (sum == 0) return {0.0f, false};
    int const drop = bit_length(sum) - (single::mantissa + 1);
    std::uint32_t significand;
    if (drop <= 0) {
      significand = static_cast<std::uint32_t>(sum) << -drop;
    } else {
      significand = static_cast<std::uint32_t>(sum >> drop);
      W const rest = sum - (W{significand} << drop);
      W const half = W{1} << (drop - 1);
      significand += rest > half || (rest == half && (significand & 1));
    }
    // significand in [2^23, 2^24]: at 2^24 the carry into the exponent field below is just right.
    int field = drop - scale() + single::mantissa + single::bias;  // of the float's top bit
    bool const scaled = field >= 2 * single::bias;                 // 2^127 and more
    if (scaled) field -= 32;
    // Below the normal range the sum is a multiple of the smallest float: the shift drops zeros.
    if (field < 1) return {from_bits<float>(significand >> (1 - field)), scaled};
    auto const exponent_bits = static_cast<std::uint32_t>(field - 1) << single::mantissa;
    return {from_bits<float>(exponent_bits + significand), scaled};
  }

 private:
  using f = format<T>;
  static constexpr int point = sizeof(W) > 8 ? 75 : 43;
  static constexpr std::uint32_t limit = 8 * sizeof(W) - 1;

  /// Exponent field of a key's value under the sign bit that such keys have; subnormals have 1.
  __host__ __device__ static std::uint32_t exponent(std::uint32_t key) {
    constexpr std::uint32_t least = (f::sign >> f::mantissa) + 1;
    std::uint32_t const e = key >> f::mantissa;
    return e > least ? e : least;
  }

  /// s, as x * 2^s: the exponent of the largest entry goes to bit `point`.
  __host__ __device__ int scale() const {
    return point + f::bias - static_cast<int>(top - (f::sign >> f::mantissa));
  }

  template <std::size_t N>
  __host__ __device__ W one_by_one(T const (&x)[N]) const {
    W sum = 0;
    for (T const each : x) sum += weigh(to_bits(each) | f::sign);
    return sum;
  }

#ifdef __CUDACC__
  template <std::size_t N>
  __device__ W by_doubles(T const (&x)[N]) const {
    double const unit = __hiloint2double((1023 + scale()) << 20, 0);
    double sum = 0x1p52;
#pragma unroll
    for (std::size_t i = 0; i < N; ++i) {
      double wide;  // in PTX, since --use_fast_math flushes subnormals in conversions
      asm("cvt.f64.f32 %0, %1;" : "=d"(wide) : "f"(to_float(x[i])));
      sum = __fma_rd(wide, unit, sum);
    }
    return static_cast<W>(__double_as_longlong(sum) - (std::int64_t{1023 + 52} << 52));
  }
#endif

  std::uint32_t top;  // exponent of the row's largest entry
};

}  // namespace v0
}  // namespace cutoff
