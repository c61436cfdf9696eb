#pragma once
// Values as unsigned integers that sort the same way, and the bits of a floating-point format.
// Everything here reads bits only: no float comparison or arithmetic that a compiler flag such as
// --use_fast_math could change.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <concepts>
#include <cstdint>
#include <cuda/std/bit>
#include <type_traits>

#define CUTOFF_VERSION_MAJOR 0
#define CUTOFF_VERSION_MINOR 1
#define CUTOFF_VERSION_PATCH 0

namespace cutoff {
inline namespace v0 {

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/// The element types of a row.
template <class T>
concept element =
    std::same_as<T, float> || std::same_as<T, __half> || std::same_as<T, __nv_bfloat16>;

/// The IEEE layout of an element type: sign, exponent field, mantissa.
template <element T>
struct format {
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>;
  static constexpr int width = 8 * sizeof(T);
  static constexpr int mantissa = std::same_as<T, float> ? 23 : std::same_as<T, __half> ? 10 : 7;
  static constexpr int bias = (1 << (width - 2 - mantissa)) - 1;
  static constexpr std::uint32_t sign = 1u << (width - 1);
  static constexpr std::uint32_t hidden = 1u << mantissa;
  static constexpr std::uint32_t infinity = sign - hidden;
  static constexpr std::uint32_t nan = infinity | hidden >> 1;  // the canonical quiet NaN
};

template <element T>
__host__ __device__ std::uint32_t to_bits(T x) {
  return cuda::std::bit_cast<typename format<T>::bits>(x);
}

template <element T>
__host__ __device__ T from_bits(std::uint32_t bits) {
  return cuda::std::bit_cast<T>(static_cast<typename format<T>::bits>(bits));
}

/// Exact: every half and bfloat16 is a float.
template <element T>
__host__ __device__ float to_float(T x) {
  if constexpr (std::same_as<T, float>)
    return x;
  else if constexpr (std::same_as<T, __half>)
    return __half2float(x);
  else
    return from_bits<float>(std::uint32_t{to_bits(x)} << 16);
}

/// Order-preserving key of a value: to_key(x) < to_key(y) exactly when x < y.
///
/// Units:   a key fills 32 bits for float, the low 16 for __half and __nv_bfloat16
/// Ties:    -0 and +0 share a key; every NaN has key 0, below -inf
/// Source:  flip all bits of a negative, the sign bit of the rest (Knuth, TAOCP 3, 5.2.5)
template <element T>
__host__ __device__ std::uint32_t to_key(T x) {
  using f = format<T>;
  std::uint32_t const bits = to_bits(x);
  std::uint32_t const magnitude = bits & (f::sign - 1);
  if (magnitude > f::infinity) return 0;
  if (magnitude == 0) return f::sign;
  return bits & f::sign ? f::sign - 1 - magnitude : bits | f::sign;
}

/// The value of a key: inverse of to_key, up to +0 for -0 and the canonical NaN for NaNs.
template <element T>
__host__ __device__ T from_key(std::uint32_t key) {
  using f = format<T>;
  if (key == 0) return from_bits<T>(f::nan);
  return from_bits<T>(key & f::sign ? key ^ f::sign : f::sign | (f::sign - 1 - key));
}

/// Digits of eight bits, the radix of the descent in pivot.hpp.
inline constexpr std::uint32_t radix = 256;
__host__ __device__ constexpr std::uint32_t digit(std::uint32_t key, int shift) {
  return key >> shift & (radix - 1);
}

/// What the entries of a row are, which decides the ones that count.
///
/// probabilities: 0 <= x < inf count; all others get key 0, below every entry that counts.
/// logits: every entry counts, NaN last.
enum class domain { probabilities, logits };

/// Lowest key of an entry that counts.
template <domain D, element T>
inline constexpr std::uint32_t lowest_key = D == domain::logits ? 0 : format<T>::sign;

/// Key of an entry in its domain.
template <domain D, element T>
__host__ __device__ std::uint32_t key_in(T x) {
  using f = format<T>;
  if constexpr (D == domain::logits) {
    return to_key(x);
  } else {
    std::uint32_t const bits = to_bits(x);
    if (bits < f::infinity) return bits | f::sign;
    return bits == f::sign ? f::sign : 0;  // -0 is a zero; negative, infinite and NaN are out
  }
}

}  // namespace v0
}  // namespace cutoff
