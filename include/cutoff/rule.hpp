#pragma once
// Rules: where a row is cut. top_k and top_p ask for a pivot, top_k of the count and top_p of the
// mass, and settle what happens to entries tied at it.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cuda/std/limits>
#include <cuda/std/utility>

#include "pivot.hpp"

namespace cutoff {
inline namespace v0 {

/// A parameter of a rule: one value for all rows, or an array with one for each.
///
/// Shapes:  array [count]: device memory, host memory for serial; read when the kernel runs
/// Units:   integers are saturated to T; an integer parameter takes no floating value
/// Errors:  a null array, or a count unlike the batch's, is cudaErrorInvalidValue in the call
template <class T>
class per_row {
 public:
  template <class U>
  requires((std::integral<U> && !std::same_as<U, bool>) ||
           (std::floating_point<U> && std::floating_point<T>)) __host__ __device__ per_row(U x)
      : value(saturated(+x)) {}
  __host__ __device__ per_row(T const* one_a_row) : array(one_a_row), is(kind::array) {}
  __host__ __device__ per_row(T const* one_a_row, std::int64_t array_count)
      : array(one_a_row), count(array_count), is(kind::counted_array) {}
  per_row(bool) = delete;
  per_row(std::nullptr_t) = delete;

  __host__ __device__ T operator[](std::int64_t b) const { return is_scalar() ? value : array[b]; }

  __host__ __device__ bool is_scalar() const { return is == kind::scalar; }
  /// Whether B rows can be served: by a value, always.
  bool serves(std::int64_t B) const {
    return is_scalar() || (array && (is == kind::array || count == B));
  }

 private:
  enum class kind : unsigned char { scalar, array, counted_array };

  template <class U>
  __host__ __device__ static T saturated(U x) {
    if constexpr (std::integral<T>) {
      using limits = cuda::std::numeric_limits<T>;
      if (cuda::std::cmp_greater(x, limits::max())) return limits::max();
      if (cuda::std::cmp_less(x, limits::min())) return limits::min();
    }
    return static_cast<T>(x);
  }

  T value{};
  T const* array = nullptr;
  std::int64_t count = 0;
  kind is = kind::scalar;
};

/// What becomes of entries tied at the pivot: all stay, or only as many as are still wanted, lowest
/// index first. by_sink: keep for renorm and pivots, lowest_index for gather.
enum class ties { by_sink, keep, lowest_index };

/// Where a row is cut: what stays is what lies above key, and on it up to index last.
template <class W>
struct line {
  std::uint32_t key;
  std::uint32_t last;
  bool drawn;  // false: no cut, every entry that counts stays
  W kept;      // measure of what stays

  __host__ __device__ bool keeps(std::uint32_t k, std::uint32_t i) const {
    return k > key || (k == key && i <= last);
  }
};

/// Index of the n-th of a row's entries with a key, n from 1.
template <group G, class Row>
__host__ __device__ std::uint32_t nth_tied(G const& g, Row& r, std::uint32_t key, std::uint32_t n) {
  std::uint32_t index = 0;
  enumerate_from(
      g, r, key, [&](std::uint32_t, typename Row::value x) { return Row::key(x) == key; },
      [&](std::uint32_t i, typename Row::value, std::uint32_t before) {
        if (before == n - 1) index = i;
      });
  return g.max(index);
}

inline constexpr std::uint32_t whole_group = 0xffffffff;

/// The line that drops nothing that counts.
template <group G, class Row, measure M>
__host__ __device__ auto no_line(G const& g, Row const& r, M const& m) {
  return line<typename M::weight>{Row::lowest, whole_group, false,
                                  kept_measure(g, r, m, Row::lowest)};
}

/// Keeps the k largest entries of each row.
///
/// Units:   k a count. Array: k <= 0 or k >= V is no cut. Scalar: k <= 0 is an error
/// Ties:    keep: all that equal the k-th largest stay; lowest_index: exactly k stay
struct top_k {
  per_row<std::int32_t> k;
  ties at_pivot = ties::by_sink;

  static constexpr bool weighs = false;
  bool valid(std::int64_t B) const { return k.serves(B) && !(k.is_scalar() && k[0] <= 0); }

  /// Whether few entries of row b stay, but for ties.
  template <class Row>
  __host__ __device__ bool keeps_few(Row const& r, std::int64_t b) const {
    return k[b] > 0 && static_cast<std::uint32_t>(k[b]) <= r.length / 64;
  }

  /// Draws the line in row b, and weighs what stays by m.
  template <group G, class Row, measure M>
  __host__ __device__ auto draw(G const& g, Row& r, std::int64_t b, M const& m, ties at) const {
    std::int32_t const wanted = k[b];
    auto const target = static_cast<std::uint32_t>(wanted);
    bool const cuts = wanted > 0 && target < r.length;
    found<std::uint32_t, typename M::weight> at_k{};
    if (cuts) at_k = find(g, r, count{}, target, m);
    auto const& [pivot, kept] = at_k;
    if (!pivot.reached()) return no_line(g, r, m);
    line<typename M::weight> cut{pivot.key, whole_group, true, kept};
    std::uint32_t const still = target - pivot.above;  // wanted of those tied
    if (at == ties::lowest_index && still < pivot.at) {
      cut.last = nth_tied(g, r, pivot.key, still);
      cut.kept -= (pivot.at - still) * m.weigh(pivot.key);
    }
    return cut;
  }
};

/// Keeps the largest entries of each row, up to the one at which their mass reaches p.
///
/// Units:   p an absolute mass, not a share of the row's. Array: NaN or p >= 1 is no cut, p <= 0
///          keeps the maximum. Scalar: NaN and values outside [0, 1] are errors; 1 is no cut
/// Ties:    keep: all that equal the last one stay; lowest_index: the shortest prefix in order
///          (value descending, index ascending) stays
struct top_p {
  per_row<float> p;
  ties at_pivot = ties::by_sink;

  static constexpr bool weighs = true;
  bool valid(std::int64_t B) const {
    return p.serves(B) &&
           !(p.is_scalar() && to_bits(p[0]) > one && to_bits(p[0]) != format<float>::sign);
  }

  /// Draws the line in row b, and weighs what stays by m.
  template <group G, class Row, class W>
  __host__ __device__ auto draw(G const& g, Row& r, std::int64_t b,
                                mass<typename Row::value, W> const& m, ties at) const {
    // By bits: from 1 up, and NaN of either sign.
    std::uint32_t const bits = to_bits(p[b]);
    if (bits >= one &&
        (bits < format<float>::sign || bits > (format<float>::sign | format<float>::infinity)))
      return no_line(g, r, m);
    W const target = m.target(p[b]);
    auto const [pivot, kept] = find(g, r, m, target, m);
    line<W> cut{pivot.key, whole_group, pivot.reached(), kept};
    if (at == ties::lowest_index && pivot.reached()) {
      W const each = m.weigh(pivot.key);
      W const still = (target - pivot.above - 1) / each + 1;  // how many of those tied it takes
      if (still * each == pivot.at) return cut;
      cut.last = nth_tied(g, r, pivot.key, static_cast<std::uint32_t>(still));
      cut.kept = static_cast<W>(pivot.above + still * each);
    }
    return cut;
  }

 private:
  static constexpr std::uint32_t one = 0x3f800000;
};

}  // namespace v0
}  // namespace cutoff
