// Rows and the ways through them, with one member and with several; launch shapes and parameters.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <cutoff/rule.hpp>
#include <cutoff/shape.hpp>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "rows.hpp"

namespace {

using cutoff::per_row, cutoff::rows, cutoff::shape;

/// Member r of a group of n that run one after another. Where a collective is met, the members are
/// run twice: the first time each says what it has, the second time all are told.
struct member {
  template <class W>
  struct histogram {
    explicit histogram(member const&) {}
  };

  std::uint32_t r, n;
  std::vector<std::vector<std::uint32_t>>* said = nullptr;  // [n], one list of words a member
  bool told = false;
  std::size_t* words = nullptr;  // how many collectives this member has met

  std::uint32_t rank() const { return r; }
  std::uint32_t size() const { return n; }
  template <class W>
  cutoff::scanned<W> scan(W x) const {
    if (!told) return (*said)[r].push_back(x), cutoff::scanned<W>{0, 0};
    cutoff::scanned<W> result{0, 0};
    for (std::uint32_t m = 0; m < n; ++m) {
      W const word = (*said)[m].at(*words);
      if (m < r) result.before += word;
      result.total += word;
    }
    ++*words;
    return result;
  }
  template <class W>
  W sum(W x) const {
    return scan(x).total;
  }
  std::uint32_t max(std::uint32_t x) const { return x; }
  template <class W>
  void clear(histogram<W>&) const {}
  template <class W>
  void add(histogram<W>&, std::uint32_t, W) const {}
  template <class W>
  cutoff::crossing<W> cross(histogram<W>&, W) const {
    return {};
  }
};
static_assert(cutoff::group<member>);

std::vector<std::uint32_t> const lengths = {0,  1,  2,   3,   4,   5,   6,   7,   8,    9,    11,
                                            15, 16, 17,  23,  24,  25,  31,  32,  33,   63,   64,
                                            65, 97, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025};
std::vector<std::uint32_t> const sizes = {1, 2, 3, 7, 32, 64, 257};

/// V elements that begin `past` elements after a 16-byte boundary and end with their allocation, so
/// that the address sanitizer sees a look beyond. Element i has pattern i + 1 (mod 2^16).
template <class T>
class placed {
 public:
  placed(std::uint32_t V, std::uint32_t past)
      : bytes(new (std::align_val_t{16}) unsigned char[(past + V) * sizeof(T)]),
        data(reinterpret_cast<T*>(bytes.get()) + past) {
    std::memset(bytes.get(), 0xa5, (past + V) * sizeof(T));
    for (std::uint32_t i = 0; i < V; ++i) data[i] = element(i);
  }
  static T element(std::uint32_t i) { return cutoff::from_bits<T>((i + 1) % 0x10000); }

 private:
  struct free {
    void operator()(unsigned char* p) const { ::operator delete[](p, std::align_val_t{16}); }
  };
  std::unique_ptr<unsigned char, free> bytes;

 public:
  T* const data;
};

/// Calls f(V, past) for each length and each place of a first element between two boundaries.
template <class T, class F>
void for_each_place(F f) {
  for (std::uint32_t const V : lengths) {
    for (std::uint32_t past = 0; past < 16 / sizeof(T); ++past) f(V, past);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("a sweep shows each element once, to one member", "", float, __half,
                   __nv_bfloat16) {
  using T = TestType;
  for_each_place<T>([](std::uint32_t V, std::uint32_t past) {
    placed<T> const x(V, past);
    for (std::uint32_t const n : sizes) {
      std::vector<int> seen(V);
      std::uint32_t strange = 0;
      for (std::uint32_t r = 0; r < n; ++r) {
        cutoff::sweep(member{r, n}, cutoff::row<T>{x.data, V}, [&](std::uint32_t i, T value) {
          if (i >= V) return void(++strange);
          ++seen[i];
          strange += cutoff::to_bits(value) != cutoff::to_bits(x.element(i));
        });
      }
      CAPTURE(V, past, n);
      REQUIRE(strange == 0);
      REQUIRE(seen == std::vector<int>(V, 1));
    }
  });
}

TEMPLATE_TEST_CASE("a transform writes each element once, and nothing else", "", float, __half,
                   __nv_bfloat16) {
  using T = TestType;
  constexpr std::uint32_t places = 16 / sizeof(T);
  for_each_place<T>([](std::uint32_t V, std::uint32_t past) {
    placed<T> const x(V, past);
    for (std::uint32_t out_past = 0; out_past < places; ++out_past) {
      for (std::uint32_t const n : {1u, 3u, 64u}) {
        // Sixteen bytes and more before and behind, where nothing may be written.
        std::vector<T> out(V + 3 * places, cutoff::from_bits<T>(0x5a5a)), expected = out;
        auto const address = reinterpret_cast<std::uintptr_t>(out.data()) / sizeof(T);
        std::size_t const first = places + (2 * places - address % places + out_past) % places;
        for (std::uint32_t i = 0; i < V; ++i) {
          expected[first + i] = cutoff::from_bits<T>(i % 0x10000 ^ 0x8000);
        }
        std::vector<int> seen(V);
        std::uint32_t strange = 0;
        for (std::uint32_t r = 0; r < n; ++r) {
          cutoff::transform(member{r, n}, cutoff::row<T>{x.data, V}, out.data() + first,
                            [&](std::uint32_t i, T value) {
                              if (i < V) ++seen[i];
                              strange += i >= V || cutoff::to_bits(value) != (i + 1) % 0x10000;
                              return cutoff::from_bits<T>(i % 0x10000 ^ 0x8000);
                            });
        }
        CAPTURE(V, past, out_past, n);
        REQUIRE(strange == 0);
        REQUIRE(seen == std::vector<int>(V, 1));
        REQUIRE(std::memcmp(out.data(), expected.data(), out.size() * sizeof(T)) == 0);
      }
    }
  });
}

TEMPLATE_TEST_CASE("a transform in place sees what was there before", "", float, __half,
                   __nv_bfloat16) {
  using T = TestType;
  for_each_place<T>([](std::uint32_t V, std::uint32_t past) {
    for (std::uint32_t const n : {1u, 5u}) {
      placed<T> const x(V, past);
      for (std::uint32_t r = 0; r < n; ++r) {
        cutoff::transform(member{r, n}, cutoff::row<T>{x.data, V}, x.data,
                          [](std::uint32_t, T value) {
                            return cutoff::from_bits<T>((cutoff::to_bits(value) + 7) % 0x10000);
                          });
      }
      std::uint32_t wrong = 0;
      for (std::uint32_t i = 0; i < V; ++i)
        wrong += cutoff::to_bits(x.data[i]) != (i + 8) % 0x10000;
      CAPTURE(V, past, n);
      REQUIRE(wrong == 0);
    }
  });
}

TEMPLATE_TEST_CASE("enumerate numbers what is wanted in the order of the indices", "", float,
                   __half, __nv_bfloat16) {
  using T = TestType;
  auto const some = [](std::uint32_t i, T) { return test::random_word(5, i) % 3 == 0; };
  auto const all = [](std::uint32_t, T) { return true; };
  auto const none = [](std::uint32_t, T) { return false; };
  auto const check = [](std::uint32_t V, std::uint32_t past, std::uint32_t n, auto const& wanted) {
    placed<T> const x(V, past);
    std::vector<std::uint32_t> expected, got(V + 1, 0xffffffff);
    for (std::uint32_t i = 0; i < V; ++i) {
      if (wanted(i, x.element(i))) expected.push_back(i);
    }
    std::vector<std::vector<std::uint32_t>> said(n);
    std::uint32_t strange = 0;
    for (bool const told : {false, true}) {
      for (std::uint32_t r = 0; r < n; ++r) {
        std::size_t words = 0;
        std::uint32_t const found = cutoff::enumerate(
            member{r, n, &said, told, &words}, cutoff::row<T>{x.data, V},
            [&](std::uint32_t i, T value) {
              strange += i >= V || cutoff::to_bits(value) != (i + 1) % 0x10000;
              return wanted(i, value);
            },
            [&](std::uint32_t i, T value, std::uint32_t before) {
              if (!told) return;
              strange += i >= V || before >= V || cutoff::to_bits(value) != (i + 1) % 0x10000;
              if (before < V) got[before] = i;
            });
        if (told) strange += found != expected.size() || words != said[r].size();
      }
    }
    expected.resize(V + 1, 0xffffffff);
    CAPTURE(V, past, n);
    REQUIRE(strange == 0);
    REQUIRE(got == expected);
  };
  for_each_place<T>([&](std::uint32_t V, std::uint32_t past) {
    for (std::uint32_t const n : {1u, 2u, 3u, 32u, 257u}) {
      check(V, past, n, some);
      check(V, past, n, all);
      check(V, past, n, none);
    }
  });
}

TEST_CASE("rows are views: const is gained, never lost, and no element type becomes another") {
  STATIC_REQUIRE(std::is_convertible_v<rows<float>, rows<float const>>);
  STATIC_REQUIRE(std::is_convertible_v<rows<__half>, rows<__half const>>);
  STATIC_REQUIRE(std::is_convertible_v<rows<std::int32_t>, rows<std::int32_t const>>);
  STATIC_REQUIRE(!std::is_constructible_v<rows<float>, rows<float const>>);
  STATIC_REQUIRE(!std::is_constructible_v<rows<__half const>, rows<__nv_bfloat16>>);
  STATIC_REQUIRE(!std::is_constructible_v<rows<float const>, rows<__half>>);
  STATIC_REQUIRE(!std::is_constructible_v<rows<float>, rows<__half>>);
  STATIC_REQUIRE(!std::is_constructible_v<rows<float>, float*>);
  STATIC_REQUIRE(std::is_trivially_copyable_v<rows<float>>);

  std::vector<float> x(40);
  rows<float const> const view = rows(x.data(), 3, 10, 15);  // deduced, then made const
  STATIC_REQUIRE(std::is_same_v<decltype(view[0]), float const*>);
  CHECK(view.data == x.data());
  CHECK(view.count == 3);
  CHECK(view.length == 10);
  CHECK(view.stride == 15);
  CHECK(view[2] == x.data() + 30);
  CHECK(rows(x.data(), 4, 10).stride == 10);

  auto const batch = cutoff::as_batch(view);
  CHECK(batch[1].data == x.data() + 15);
  CHECK(batch[1].length == 10);
  STATIC_REQUIRE(decltype(batch[0])::in == cutoff::domain::probabilities);
  STATIC_REQUIRE(decltype(cutoff::as_batch(cutoff::logits{view})[0])::in == cutoff::domain::logits);
}

TEST_CASE("a late row of a large batch has a 64-bit offset") {
  auto* const anywhere = reinterpret_cast<__half*>(std::uintptr_t{1} << 40);
  rows<__half> const view(anywhere, 65536, 1 << 17, (1 << 17) + 1);
  auto const offset = reinterpret_cast<std::uintptr_t>(view[65535]) - (std::uintptr_t{1} << 40);
  CHECK(offset == 2 * std::uintptr_t{65535} * ((1 << 17) + 1));
}

TEST_CASE("the launch shape is chosen by numbers alone, and sensibly") {
  static_assert(cutoff::shape_for(151936, 1024, {132}) == cutoff::shape_for(151936, 1024, {132}));
  static_assert(cutoff::shape_for(1, 1, {1}).threads > 0);
  // Rows that do not all go at once: the shortest turns that were measured.
  constexpr cutoff::device h200{132};
  static_assert(cutoff::shape_for(151936, 132, h200).blocks == 2);
  static_assert(cutoff::shape_for(151936, 133, h200).blocks == 3);
  static_assert(cutoff::shape_for(151936, 180, h200).blocks == 1);
  static_assert(cutoff::shape_for(151936, 264, h200).blocks == 1);
  static_assert(cutoff::shape_for(151936, 265, h200).blocks == 2);
  static_assert(cutoff::shape_for(151936, 400, h200).blocks == 1);
  CHECK(cutoff::to_string(shape{1024, 8}) == "1024 threads, 8 blocks a row");

  std::vector<std::int64_t> const V = {
      1,      2,      32,     33,     1024,    1025,          8192,    8193,      32000,
      128256, 151936, 262144, 843776, 1 << 20, (1 << 20) + 1, 1 << 27, 0x7fffffff};
  std::vector<std::int64_t> const B = {1,   2,   7,   8,   16,  33,  64,   66,    132,
                                       133, 146, 265, 300, 396, 529, 1024, 65536, 0x7fffffff};
  for (int const multiprocessors : {1, 10, 68, 108, 132, 148}) {
    for (std::int64_t const v : V) {
      int before = 16;
      for (std::int64_t const b : B) {
        shape const s = cutoff::shape_for(v, b, {multiprocessors});
        CAPTURE(v, b, multiprocessors, cutoff::to_string(s));
        CHECK(s.blocks >= 1);
        CHECK(s.blocks <= 8);
        bool const built = v > 1 << 20 ? s.threads == 1024 : s.threads == 320 || s == shape{256};
        CHECK(built);
        // Nobody waits for members without an element, and more rows never get more blocks each, or
        // at most three, if that makes a last turn shorter.
        CHECK(s.threads * s.blocks <= std::max<std::int64_t>(v, 256));
        CHECK(s.blocks <= std::max(before, v > 1 << 20 ? 1 : 3));
        before = s.blocks;
      }
    }
  }
}

TEST_CASE("k is taken from any integer and saturated") {
  auto const k = [](auto x) { return per_row<std::int32_t>(x)[0]; };
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
  CHECK(k(50) == 50);
  CHECK(k(std::int64_t{most}) == most);
  CHECK(k(std::int64_t{most} + 1) == most);
  CHECK(k(std::int64_t{1} << 32) == most);  // not 0
  CHECK(k(std::numeric_limits<std::int64_t>::max()) == most);
  CHECK(k(std::int64_t{least}) == least);
  CHECK(k(std::int64_t{least} - 1) == least);
  CHECK(k(std::numeric_limits<std::int64_t>::min()) == least);
  CHECK(k(std::numeric_limits<std::uint64_t>::max()) == most);  // not -1
  CHECK(k(std::uint32_t{0x80000000}) == most);
  CHECK(k(std::uint32_t{7}) == 7);
  CHECK(k(std::size_t{40}) == 40);
  CHECK(k('a') == 97);
  CHECK(k(static_cast<signed char>(-1)) == -1);
  CHECK(k(static_cast<unsigned char>(200)) == 200);
  CHECK(k(char16_t{5}) == 5);
  CHECK(k(short{-3}) == -3);
  CHECK(k(0) == 0);
  CHECK(per_row<std::int32_t>(5)[1000000] == 5);

  STATIC_REQUIRE(std::is_convertible_v<int, per_row<std::int32_t>>);
  STATIC_REQUIRE(std::is_convertible_v<std::int32_t*, per_row<std::int32_t>>);
  STATIC_REQUIRE(!std::is_constructible_v<per_row<std::int32_t>, bool>);
  STATIC_REQUIRE(!std::is_constructible_v<per_row<std::int32_t>, float>);
  STATIC_REQUIRE(!std::is_constructible_v<per_row<std::int32_t>, double>);
  STATIC_REQUIRE(!std::is_constructible_v<per_row<std::int32_t>, std::nullptr_t>);
  STATIC_REQUIRE(!std::is_constructible_v<per_row<std::int32_t>, std::int64_t const*>);
  STATIC_REQUIRE(!std::is_constructible_v<per_row<std::int32_t>, float const*>);
}

TEST_CASE("p is taken from any number and rounded to float") {
  auto const p = [](auto x) { return per_row<float>(x)[0]; };
  CHECK(p(0.9f) == 0.9f);
  CHECK(p(0.9) == static_cast<float>(0.9));
  CHECK(p(1.0 - 1e-12) == 1.0f);  // rounded first
  CHECK(p(-1e-60) == 0.0f);
  CHECK(p(0.1L) == static_cast<float>(0.1L));
  CHECK(p(1) == 1.0f);
  CHECK(p(std::int64_t{-3}) == -3.0f);
  CHECK(p(2u) == 2.0f);
  CHECK(std::isnan(p(std::numeric_limits<double>::quiet_NaN())));

  STATIC_REQUIRE(std::is_convertible_v<double, per_row<float>>);
  STATIC_REQUIRE(!std::is_constructible_v<per_row<float>, bool>);
  STATIC_REQUIRE(!std::is_constructible_v<per_row<float>, std::nullptr_t>);
  STATIC_REQUIRE(!std::is_constructible_v<per_row<float>, double const*>);
}

TEST_CASE("an array gives each row its own value, and serves as many rows as it has") {
  std::vector<std::int32_t> const k = {3, 0, -1, 70000};
  per_row<std::int32_t> const unsized(k.data()), sized(k.data(), 4), value(3);
  CHECK_FALSE(unsized.is_scalar());
  CHECK_FALSE(sized.is_scalar());
  CHECK(value.is_scalar());
  for (std::size_t b = 0; b < k.size(); ++b) {
    CHECK(unsized[static_cast<std::int64_t>(b)] == k[b]);
    CHECK(sized[static_cast<std::int64_t>(b)] == k[b]);
  }
  CHECK(unsized.serves(4));
  CHECK(unsized.serves(3));  // its count is unknown
  CHECK(sized.serves(4));
  CHECK_FALSE(sized.serves(3));
  CHECK_FALSE(sized.serves(5));
  CHECK(value.serves(1 << 30));
  std::int32_t const* const null = nullptr;
  CHECK_FALSE(per_row<std::int32_t>(null).serves(4));  // remembered as an array
  CHECK_FALSE(per_row<std::int32_t>(null, 4).serves(4));
  CHECK_FALSE(per_row<std::int32_t>(null).is_scalar());
}
