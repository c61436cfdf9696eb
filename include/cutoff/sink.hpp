#pragma once
// Sinks: what is written of a row once its line is drawn.

#include <concepts>
#include <cstdint>
#include <cuda/std/limits>
#include <nv/target>

#include "rule.hpp"

namespace cutoff {
inline namespace v0 {

/// Rounded to nearest even, subnormals included. bfloat16 by hand where there is no instruction: below
/// sm_90 the conversion intrinsic is a float multiplication, which flushes subnormals under --use_fast_math.
template <element T>
__host__ __device__ T round_to(float x) {
  if constexpr (std::same_as<T, float>)
    return x;
  else if constexpr (std::same_as<T, __half>)
    return __float2half_rn(x);
  else {
    NV_IF_TARGET(NV_PROVIDES_SM_90, (return __float2bfloat16_rn(x);))
    std::uint32_t const bits = to_bits(x);
    return from_bits<T>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

/// x / d, correctly rounded: the one float operation of the library. On the device it is spelled in
/// PTX because --use_fast_math turns `/`, and even __fdiv_rn, into forms that flush subnormals.
__host__ __device__ inline float quotient(float x, divisor d) {
  if (d.scaled) {  // 32 off the exponent; what that takes to zero is far below any float / 2^127
    constexpr std::uint32_t by = 32u << format<float>::mantissa;
    std::uint32_t const bits = to_bits(x);
    x = from_bits<float>(bits > by ? bits - by : 0);
  }
  NV_IF_ELSE_TARGET(NV_IS_DEVICE,
                    (float q; asm("div.rn.f32 %0, %1, %2;"
                                  : "=f"(q)
                                  : "f"(x), "f"(d.value));
                     return q;),
                    (return x / d.value;))
}

/// x / d by the reciprocal and two corrections: the same bits as quotient for values from 2^-60 to
/// 2^60, in a third of the instructions.
///
/// Source:  Markstein's theorem, Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed., 4.7
struct fast_quotient {
  float d, reciprocal;

  __host__ __device__ explicit fast_quotient(divisor by)
      : d(by.value), reciprocal(quotient(1.0f, by)) {}
  __host__ __device__ static bool serves(float x) {
    return to_bits(x) >= to_bits(0x1p-60f) && to_bits(x) <= to_bits(0x1p60f);
  }
  __host__ __device__ float operator()(float x) const {
    NV_IF_ELSE_TARGET(
        NV_IS_DEVICE,
        (float q = __fmul_rn(x, reciprocal); q = __fmaf_rn(__fmaf_rn(-d, q, x), reciprocal, q);
         return __fmaf_rn(__fmaf_rn(-d, q, x), reciprocal, q);),
        (return x / d;))
  }
};

/// The quotient of an entry of any size. Not inlined, since what it is needed for is rare, but in
/// relocatable code, where a function of its own would not know how many registers its kernel has.
template <element T>
#ifdef __CUDACC_RDC__
[[gnu::always_inline]] inline
#else
[[gnu::noinline, gnu::visibility("hidden")]]
#endif
    __host__ __device__ T
    renormed(T entry, divisor d, fast_quotient by) {
  float const x = to_float(entry);
  bool const near = !d.scaled && fast_quotient::serves(d.value) && fast_quotient::serves(x);
  return round_to<T>(near ? by(x) : quotient(x, d));
}

/// Divides what stays by its mass and writes zeros for the rest.
///
/// Shapes:  out [count, length] with a stride of its own; may be the input itself
/// Units:   fp32 quotients, correctly rounded; 16-bit types are rounded once more; zeros are +0
/// Cost:    one read and one write of the row
template <class T>
struct renorm {
  rows<T> out;

  static constexpr bool weighs = true;
  static constexpr ties usual = ties::keep;

  template <class U, domain D, class Rule>
  static constexpr void accepts() {
    static_assert(D == domain::probabilities, "renorm needs probabilities: pass rows, not logits");
    static_assert(std::same_as<T, U>, "the output's element type must be the input's");
  }
  template <class U, class Rule>
  bool valid(rows<U const> in, Rule const&) const {
    if (!out.data || out.count != in.count || out.length != in.length) return false;
    return in.count == 1 ||
           (out.stride >= out.length && (out.data != in.data || out.stride == in.stride));
  }

  /// Where zeros may be written before the line is known: elsewhere than the row, and aligned alike.
  template <class Row>
  __host__ __device__ T* blank(Row const& r, std::int64_t b) const {
    T* const to = out[b];
    return to != r.data && misaligned_head<T>(to, r.length) == r.head ? to : nullptr;
  }

  template <group G, class Row, class W>
  __host__ __device__ void write(G const& g, Row const& r, std::int64_t b, line<W> const& cut,
                                 mass<T, W> const& m) const {
    divisor const d = m.divide_by(cut.kept);
    fast_quotient const by(d);
    bool const near = !d.scaled && fast_quotient::serves(d.value);
    // Zeros give zeros, whether they stay or not: they are not looked for.
    std::uint32_t const lowest = cut.key > Row::lowest ? cut.key : Row::lowest + 1;
    std::uint32_t const from = lowest - Row::lowest, span = format<T>::infinity - from;
    if constexpr (Row::surveyed)
      if (near && cut.last == whole_group && fast_quotient::serves(to_float(from_bits<T>(from)))) {
        transform_from<false>(g, r, lowest, out[b], [&](std::uint32_t, T x) {
          return to_bits(x) - from < span ? round_to<T>(by(to_float(x))) : from_bits<T>(0);
        });
        return;
      }
    transform_from<true>(g, r, lowest, out[b], [&](std::uint32_t i, T entry) {
      std::uint32_t const key = Row::key(entry);
      if (key < lowest || !cut.keeps(key, i)) return from_bits<T>(0);
      float const x = to_float(entry);
      if (near && fast_quotient::serves(x)) return round_to<T>(by(x));
      return renormed(entry, d, by);
    });
  }
};

/// Writes the value each row is cut at: what stays is >= it. No cut: +0, for logits -inf.
///
/// Shapes:  out [count]
template <class T>
struct pivots {
  T* out;

  static constexpr bool weighs = false;
  static constexpr ties usual = ties::keep;

  template <class U, domain D, class Rule>
  static constexpr void accepts() {
    static_assert(std::same_as<T, U>, "the output's element type must be the input's");
  }
  template <class U, class Rule>
  bool valid(rows<U const>, Rule const&) const {
    return out != nullptr;
  }

  template <group G, class Row, class W, class M>
  __host__ __device__ void write(G const& g, Row const&, std::int64_t b, line<W> const& cut,
                                 M const&) const {
    using f = format<T>;
    std::uint32_t const none = Row::in == domain::logits ? f::sign | f::infinity : 0;
    if (g.rank() == 0) out[b] = cut.drawn ? from_key<T>(cut.key) : from_bits<T>(none);
  }
};

/// Collects the k largest of each row, in order of index. What is left of the width is filled with
/// the type's lowest finite value and index -1.
///
/// Shapes:  values, indices [count, width], width from 1, each with a stride of its own. Scalar k:
///          width >= min(k, V); array of k: a row gives the first `width` entries of its list
/// Ties:    lowest index first; ties::keep is an error
/// Cost:    one read of the row, one scan per 4 entries of a member; with a record of tiles one scan
template <class T>
struct gather {
  rows<T> values;
  rows<std::int32_t> indices;

  static constexpr bool weighs = false;
  static constexpr ties usual = ties::lowest_index;

  template <class U, domain D, class Rule>
  static constexpr void accepts() {
    static_assert(std::same_as<Rule, top_k>,
                  "gather takes top_k only: top_p has no fixed number of winners");
    static_assert(std::same_as<T, U>, "the output's element type must be the input's");
  }
  template <class U>
  bool valid(rows<U const> in, top_k const& rule) const {
    if (!values.data || !indices.data || values.count != in.count || indices.count != in.count)
      return false;
    if (values.length != indices.length || values.length < 1 || rule.at_pivot == ties::keep)
      return false;
    if (rule.k.is_scalar() && values.length < in.length && values.length < rule.k[0]) return false;
    return in.count == 1 || (values.stride >= values.length && indices.stride >= indices.length);
  }

  template <group G, class Row, class W, class M>
  __host__ __device__ void write(G const& g, Row const& r, std::int64_t b, line<W> const& cut,
                                 M const&) const {
    T* const value = values[b];              // [width]
    std::int32_t* const index = indices[b];  // [width]
    std::int64_t const width = values.length;
    std::uint32_t const kept = enumerate_from(
        g, r, cut.key, [&](std::uint32_t i, T x) { return cut.keeps(Row::key(x), i); },
        [&](std::uint32_t i, T x, std::uint32_t n) {
          if (n >= width) return;
          value[n] = x;
          index[n] = static_cast<std::int32_t>(i);
        });
    for (std::int64_t n = std::int64_t{kept} + g.rank(); n < width; n += g.size()) {
      value[n] = from_key<T>(format<T>::sign - format<T>::infinity);  // the key after -inf's
      index[n] = -1;
    }
  }
};

}  // namespace v0
}  // namespace cutoff
