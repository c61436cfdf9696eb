#pragma once
// Rows of values in memory, and how a group sweeps one: 16 bytes at a time where the alignment
// allows, several loads in flight, each element seen once by one member.

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "group.hpp"
#include "key.hpp"

namespace cutoff {
inline namespace v0 {

/// A batch of rows: row b starts at data + b * stride, in elements. T may be const.
///
/// Shapes:  [count, length]; any element-aligned pointer, any stride >= length
template <class T>
struct rows {
  T* data;
  std::int64_t count, length, stride;

  __host__ __device__ rows(T* first, std::int64_t B, std::int64_t V) : rows(first, B, V, V) {}
  __host__ __device__ rows(T* first, std::int64_t B, std::int64_t V, std::int64_t step)
      : data(first), count(B), length(V), stride(step) {}

  template <class U>
  requires(std::same_as<T, U const> && !std::is_const_v<U>) __host__ __device__
      rows(rows<U> const& other)
      : rows(other.data, other.count, other.length, other.stride) {}

  __host__ __device__ T* operator[](std::int64_t b) const { return data + b * stride; }
};

/// Rows of scores of any sign, in the order -inf < ... < +inf, -0 == +0, NaN below -inf.
template <class T>
struct logits {
  rows<T> in;
};

/// One row of a domain, as algorithms see it: a key for each of its elements.
template <element T, domain D = domain::probabilities>
struct row {
  using value = T;
  static constexpr domain in = D;
  static constexpr bool surveyed = false;  // see tiles.hpp
  static constexpr std::uint32_t lowest = lowest_key<D, T>;

  T const* data;         // [length]
  std::uint32_t length;  // at most 2^31 - 1

  __host__ __device__ static std::uint32_t key(T x) { return key_in<D>(x); }
  /// Whether an entry with this key counts.
  __host__ __device__ static bool counts(std::uint32_t key) {
    return D == domain::logits || key != 0;
  }
};

/// A batch and its domain, as a kernel takes it.
template <element T, domain D>
struct batch {
  rows<T const> in;

  __host__ __device__ row<T, D> operator[](std::int64_t b) const {
    return {in[b], static_cast<std::uint32_t>(in.length)};
  }
};
template <class T>
requires element<std::remove_const_t<T>>
auto as_batch(rows<T> in) { return batch<std::remove_const_t<T>, domain::probabilities>{in}; }
template <class T>
requires element<std::remove_const_t<T>>
auto as_batch(logits<T> scores) { return batch<std::remove_const_t<T>, domain::logits>{scores.in}; }

/// What a call can cut: rows, or logits{rows}, of one of the element types.
template <class In>
concept input = requires(In const in) {
  as_batch(in);
};

/// Sixteen bytes of elements, moved by one instruction.
template <element T>
struct alignas(16) pack {
  static constexpr std::uint32_t size = 16 / sizeof(T);
  T at[size];
};

/// Packs of a member that are looked at together: sixteen elements.
template <element T>
inline constexpr std::uint32_t together = 16 / pack<T>::size;

/// Elements before the first 16-byte boundary: the head that is swept one by one.
template <element T>
__host__ __device__ std::uint32_t misaligned_head(T const* data, std::uint32_t length) {
  auto const past =
      static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(data) % 16 / sizeof(T));
  std::uint32_t const head = (pack<T>::size - past) % pack<T>::size;
  return head < length ? head : length;
}

/// Deals a row out in packs: packed(i, x) for the pack x that begins at element i, single(i) for
/// the elements before the first 16-byte boundary and after the last.
///
/// Group:   every member calls; no barrier
/// Cost:    one read of the row, sixteen elements of a member in flight
template <group G, element T, domain D, class Packed, class Single>
__host__ __device__ void deal(G const& g, row<T, D> r, Packed packed, Single single) {
  constexpr std::uint32_t n = pack<T>::size, deep = together<T>;
  std::uint32_t const rank = g.rank(), size = g.size();
  std::uint32_t const head = misaligned_head(r.data, r.length);
  std::uint32_t const packs = (r.length - head) / n;
  auto const* in = reinterpret_cast<pack<T> const*>(r.data + head);  // [packs]
  // One guarded body: with a main loop and a remainder the compiler sinks each of the four loads to
  // its first use, and every function that a sweep calls is there twice.
  for (std::uint32_t j = rank; j < packs; j += deep * size) {
    pack<T> x[deep];
    // Zeros, not nothing, where there is no pack: else the registers of the last round live on.
    unrolled<deep>(
        [&](std::uint32_t u) { x[u] = j + u * size < packs ? in[j + u * size] : pack<T>{}; });
    unrolled<deep>([&](std::uint32_t u) {
      if (j + u * size < packs) packed(head + (j + u * size) * n, x[u]);
    });
  }
  for (std::uint32_t i = rank; i < r.length - packs * n; i += size)
    single(i < head ? i : packs * n + i);
}

/// Calls f(i, x) for each element x = r.data[i], once, by one member of g, in no given order.
///
/// Group:   every member calls; no barrier
/// Cost:    one read of the row
template <group G, element T, domain D, class F>
__host__ __device__ void sweep(G const& g, row<T, D> r, F f) {
  auto const packed = [&](std::uint32_t i, pack<T> const& x) {
    unrolled<pack<T>::size>([&](std::uint32_t e) { f(i + e, x.at[e]); });
  };
  deal(g, r, packed, [&](std::uint32_t i) { f(i, r.data[i]); });
}

/// Writes out[i] = f(i, r.data[i]) for each element. out may be the row itself.
///
/// Shapes:  out [r.length]
/// Group:   every member calls; no barrier before or after
/// Cost:    one read and one write of the row, in packs where both have the same alignment
template <group G, element T, domain D, class F>
__host__ __device__ void transform(G const& g, row<T, D> r, T* out, F f) {
  auto const single = [&](std::uint32_t i) { out[i] = f(i, r.data[i]); };
  bool const alike = misaligned_head(r.data, r.length) == misaligned_head<T>(out, r.length);
  auto const packed = [&](std::uint32_t i, pack<T> const& x) {
    pack<T> y;
    unrolled<pack<T>::size>([&](std::uint32_t e) { y.at[e] = f(i + e, x.at[e]); });
    if (alike)
      *reinterpret_cast<pack<T>*>(out + i) = y;
    else
      unrolled<pack<T>::size>([&](std::uint32_t e) { out[i + e] = y.at[e]; });
  };
  deal(g, r, packed, single);
}

/// transform, where f gives zero for every key < from: a row that knows where others are need not
/// look elsewhere. Seldom: it may take its time, to be short.
template <bool Seldom, group G, class Row, element T, class F>
__host__ __device__ void transform_from(G const& g, Row const& r, std::uint32_t, T* out, F f) {
  transform(g, r, out, f);
}

/// Calls f(i, x, n) for each element that wanted(i, x) accepts, n being how many accepted ones have
/// a lower index. Returns how many there are.
///
/// Group:   every member calls, all get the result; one scan per 4 * g.size() elements
/// Cost:    one read of the row
template <group G, element T, domain D, class Wanted, class F>
__host__ __device__ std::uint32_t enumerate(G const& g, row<T, D> r, Wanted wanted, F f) {
  constexpr std::uint32_t n = 4;  // neighbours per member, so that ranks are in index order
  std::uint32_t seen = 0;
  for (std::uint32_t base = 0; base < r.length; base += n * g.size()) {
    std::uint32_t const first = base + n * g.rank();
    T x[n];
    bool take[n];
    std::uint32_t taken = 0;
    unrolled<n>([&](std::uint32_t e) {
      take[e] = first + e < r.length;
      if (take[e]) x[e] = r.data[first + e];
      take[e] = take[e] && wanted(first + e, x[e]);
      taken += take[e];
    });
    auto const [before, total] = g.scan(taken);
    std::uint32_t at = seen + before;
    unrolled<n>([&](std::uint32_t e) {
      if (take[e]) f(first + e, x[e], at++);
    });
    seen += total;
  }
  return seen;
}

/// enumerate, where every wanted entry has a key >= from.
template <group G, class Row, class Wanted, class F>
__host__ __device__ std::uint32_t enumerate_from(G const& g, Row const& r, std::uint32_t,
                                                 Wanted wanted, F f) {
  return enumerate(g, r, wanted, f);
}

}  // namespace v0
}  // namespace cutoff
