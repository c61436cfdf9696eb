#pragma once
// The place where the tests of the public calls run, so that their bodies (*.inc) are written once:
// the device in a .cu file, the host in a .cpp file. A place gives
//
//   buffer<T>         its memory: data(), size(), fill(byte), put(values, at), get(at, count)
//   call(in, ...)     the library's call there, finished
//   on_device         which one it is
//
// and below stand, for both, one function a sink: it lays rows out as told, calls, and returns what
// was written, packed, having seen that the input and everything around the rows is as it was.

#ifdef __CUDACC__
#include "backend.cuh"
#else

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <cutoff/cut.hpp>
#include <initializer_list>
#include <stdexcept>
#include <vector>

namespace test {

inline constexpr bool on_device = false;

/// What a byte of an output is before the call: neither a zero nor an index.
inline constexpr int poison = 0x5a;

/// Elements in host memory, an allocation that ends with the last of them (see backend.cuh).
template <class T>
class buffer {
 public:
  explicit buffer(std::size_t count) : all(count) { fill(poison); }
  explicit buffer(std::vector<T> const& values) : all(values) {}
  explicit buffer(std::initializer_list<T> values) : all(values) {}

  T* data() const { return const_cast<T*>(all.data()); }
  std::size_t size() const { return all.size(); }

  void fill(int byte) { std::memset(static_cast<void*>(data()), byte, all.size() * sizeof(T)); }
  void put(std::vector<T> const& values, std::size_t at = 0) {
    std::copy(values.begin(), values.end(), data() + at);
  }
  std::vector<T> get(std::size_t at, std::size_t count) const {
    return std::vector<T>(data() + at, data() + at + count);
  }
  std::vector<T> get() const { return all; }

 private:
  std::vector<T> all;
};

/// The public call.
template <class In, class Rule, class Sink>
cudaError_t call(In in, Rule rule, Sink sink) {
  return cutoff::cut(cutoff::serial{}, in, rule, sink);
}

}  // namespace test
#endif

#include <cstdint>
#include <limits>
#include <sstream>
#include <string>

#include "quick.hpp"
#include "reference.hpp"

namespace test {

using cutoff::domain;

/// Whether there is time for cases of full size, and for many repetitions.
inline bool const full = on_device && !quick();

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float NaN = std::numeric_limits<float>::quiet_NaN();

/// How rows lie: the first one `shift` elements past a 16-byte boundary, `gap` elements in between.
struct layout {
  std::int64_t shift = 0, gap = 0;
};

/// How a call's rows lie. in_place: the input is the output.
struct how {
  layout in, out, indices;
  bool in_place = false;
};

/// What stands around rows: larger than any of their entries, so that it is seen when read.
template <class T>
T canary() {
  if constexpr (std::is_same_v<T, std::int32_t>)
    return 0x7a7a7a7a;
  else
    return rounded<T>(std::is_same_v<T, __half> ? 65504.0f : 1e30f);
}

/// The first element with other bits than expected, in words; empty where there is none. label(row)
/// names a row of V elements.
template <class T, class F>
std::string difference(std::vector<T> const& got, std::vector<T> const& expected, std::int64_t V,
                       F label) {
  std::ostringstream text;
  if (got.size() != expected.size()) {
    text << got.size() << " elements, not " << expected.size();
    return text.str();
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (bits(got[i]) == bits(expected[i])) continue;
    auto const row = static_cast<std::int64_t>(i) / V, column = static_cast<std::int64_t>(i) % V;
    text << label(row) << ", entry " << column << ": 0x" << std::hex << bits(got[i]) << ", not 0x"
         << bits(expected[i]);
    return text.str();
  }
  return {};
}

template <class T>
std::string difference(std::vector<T> const& got, std::vector<T> const& expected,
                       std::int64_t V = 1) {
  return difference(got, expected, V, [](std::int64_t b) { return "row " + std::to_string(b); });
}

/// Rows [B, V] in the place's memory, amid canaries.
template <class T>
class placed {
 public:
  // An input ends with its last entry, so that no read beyond is missed.
  enum kind { input, output };

  placed(kind k, std::int64_t B, std::int64_t V, layout at)
      : length(V),
        view(nullptr, B, V, V + at.gap),
        start(static_cast<std::size_t>(margin + at.shift)),
        image(start +
                  static_cast<std::size_t>((B - 1) * view.stride + V + (k == output ? margin : 0)),
              canary<T>()),
        memory(image.size()) {
    view.data = memory.data() + start;
    T const poisoned = memory.get(0, 1)[0];
    put(std::vector<T>(static_cast<std::size_t>(B * V), poisoned));
  }

  cutoff::rows<T> rows() const { return view; }

  void put(std::vector<T> const& packed) {
    each_row([&](std::size_t from, std::size_t to) {
      std::copy_n(packed.begin() + static_cast<std::ptrdiff_t>(from), length,
                  image.begin() + static_cast<std::ptrdiff_t>(to));
    });
    memory.put(image);
  }

  /// The rows, packed. Throws where something around them has changed.
  std::vector<T> get() {
    std::vector<T> const now = memory.get();
    std::vector<T> packed(static_cast<std::size_t>(view.count * length));
    each_row([&](std::size_t to, std::size_t from) {
      auto const first = static_cast<std::ptrdiff_t>(from);
      std::copy_n(now.begin() + first, length, packed.begin() + static_cast<std::ptrdiff_t>(to));
      std::copy_n(now.begin() + first, length, image.begin() + first);
    });
    unchanged(now, "a canary was overwritten: ");
    return packed;
  }

  /// Throws where anything has changed.
  void unchanged() const { unchanged(memory.get(), "the input was overwritten: "); }

 private:
  static constexpr std::int64_t margin = 64;  // elements

  template <class F>
  void each_row(F f) const {  // f(first of packed rows, first in memory)
    for (std::int64_t b = 0; b < view.count; ++b)
      f(static_cast<std::size_t>(b * length), start + static_cast<std::size_t>(b * view.stride));
  }

  void unchanged(std::vector<T> const& now, char const* otherwise) const {
    if (std::string const found = difference(now, image); !found.empty())
      throw std::runtime_error(otherwise + found);
  }

  std::int64_t length;
  cutoff::rows<T> view;
  std::size_t start;     // of the first row
  std::vector<T> image;  // what memory holds, as far as the host knows
  buffer<T> memory;
};

/// Rows as the call takes them in a domain.
template <domain D, class T>
auto as(cutoff::rows<T const> in) {
  if constexpr (D == domain::logits)
    return cutoff::logits<T const>{in};
  else
    return in;
}

template <class In, class Rule, class Sink>
void succeed(In in, Rule rule, Sink sink) {
  if (cudaError_t const e = call(in, rule, sink); e != cudaSuccess)
    throw std::runtime_error("the call returned error " + std::to_string(e));
}

/// What `renorm` writes for the packed rows x [B, V].
template <class T, class Rule>
std::vector<T> renormed(std::vector<T> const& x, std::int64_t B, Rule rule, how h = {}) {
  std::int64_t const V = static_cast<std::int64_t>(x.size()) / B;
  placed<T> in(h.in_place ? placed<T>::output : placed<T>::input, B, V, h.in);
  in.put(x);
  if (h.in_place) {
    succeed(cutoff::rows<T const>(in.rows()), rule, cutoff::renorm<T>{in.rows()});
    return in.get();
  }
  placed<T> out(placed<T>::output, B, V, h.out);
  succeed(cutoff::rows<T const>(in.rows()), rule, cutoff::renorm<T>{out.rows()});
  in.unchanged();
  return out.get();
}

/// What `pivots` writes.
template <domain D = domain::probabilities, class T, class Rule>
std::vector<T> pivots_of(std::vector<T> const& x, std::int64_t B, Rule rule, how h = {}) {
  placed<T> in(placed<T>::input, B, static_cast<std::int64_t>(x.size()) / B, h.in);
  placed<T> out(placed<T>::output, 1, B, h.out);
  in.put(x);
  succeed(as<D, T>(in.rows()), rule, cutoff::pivots<T>{out.rows().data});
  in.unchanged();
  return out.get();
}

template <class T>
struct winners {
  std::vector<T> values;              // [B, width]
  std::vector<std::int32_t> indices;  // [B, width]
};

/// What `gather` writes.
template <domain D = domain::probabilities, class T>
winners<T> gathered(std::vector<T> const& x, std::int64_t B, cutoff::top_k rule, std::int64_t width,
                    how h = {}) {
  placed<T> in(placed<T>::input, B, static_cast<std::int64_t>(x.size()) / B, h.in);
  placed<T> values(placed<T>::output, B, width, h.out);
  placed<std::int32_t> indices(placed<std::int32_t>::output, B, width, h.indices);
  in.put(x);
  succeed(as<D, T>(in.rows()), rule, cutoff::gather<T>{values.rows(), indices.rows()});
  in.unchanged();
  return {values.get(), indices.get()};
}

/// All that the sinks write for a batch, collected from the references' answers, row by row.
template <class T>
struct expected {
  std::int64_t width;
  std::vector<T> renormed{}, pivots{};
  winners<T> gathered{};

  void add(std::span<T const> x, answer<T> const& a) {
    renormed.insert(renormed.end(), a.renormed.begin(), a.renormed.end());
    pivots.push_back(a.pivot);
    for (std::size_t n = 0; n < std::size_t(width); ++n) {
      bool const filled = n < a.kept.size();
      gathered.values.push_back(filled ? x[a.kept[n]] : lowest());
      gathered.indices.push_back(filled ? std::int32_t(a.kept[n]) : -1);
    }
  }
  static T lowest() {
    if constexpr (std::is_same_v<T, __half>)
      return std::bit_cast<T>(std::uint16_t{0xfbff});
    else if constexpr (std::is_same_v<T, __nv_bfloat16>)
      return std::bit_cast<T>(std::uint16_t{0xff7f});
    else
      return std::numeric_limits<float>::lowest();
  }
};

}  // namespace test
