// A surveyed row is cut like any other: survey, bracket, look, list, and what remains when the list is
// too long or the guess refuted.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <cutoff/cut.hpp>
#include <functional>
#include <vector>

#include "catch.hpp"
#include "rows.hpp"

namespace {

using namespace cutoff;

/// A group that counts how often it visits tiles.
struct counting : serial {
  static inline int visits = 0;

  template <class F>
  void visit(std::uint16_t const* most, std::uint32_t tiles, std::uint32_t mark, F f) const {
    ++visits;
    serial::visit(most, tiles, mark, f);
  }
};

/// A row of one maker, plain and with a record of its tiles.
template <class T>
class twins {
 public:
  explicit twins(std::vector<T> values)
      : x(std::move(values)),
        memory(
            tile_record::bytes(
                tile_record::tiles(tile_record::share(size() / pack<T>::size, 1), 1),
                std::max(tiled<T, domain::probabilities>::words, tiled<T, domain::logits>::words),
                false) /
            4) {}

  /// How often tiles are visited to cut the row: to look, and to write.
  template <class Rule>
  int visits(Rule const& rule) {
    counting::visits = 0;
    std::vector<T> out(x.size());
    row<T> const plain{x.data(), size()};
    cut_row<std::uint64_t>(counting{}, tiled(counting{}, plain, memory.data()), 0, rule,
                           renorm<T>{rows<T>(out.data(), 1, size())});
    return counting::visits;
  }

  /// What the two ways write by a rule differs.
  template <domain D, class Rule, class Out, class Sink>
  bool unlike(Rule const& rule, std::size_t n, Out, Sink const& sink) {
    row<T, D> const plain{x.data(), size()};
    std::vector<Out> a(n, Out(1)), b(n, Out(1));
    cut_row<std::uint64_t>(serial{}, plain, 0, rule, sink(a.data()));
    cut_row<std::uint64_t>(serial{}, tiled(serial{}, plain, memory.data()), 0, rule,
                           sink(b.data()));
    return std::memcmp(a.data(), b.data(), n * sizeof(Out)) != 0;
  }

  /// Whether a renormalised row is another one in place.
  template <class Rule>
  bool unlike_in_place(Rule const& rule) {
    std::vector<T> a(x.size()), b = x;
    row<T> const from{x.data(), size()}, same{b.data(), size()};
    cut_row<std::uint64_t>(serial{}, from, 0, rule, renorm<T>{rows<T>(a.data(), 1, size())});
    cut_row<std::uint64_t>(serial{}, tiled(serial{}, same, memory.data()), 0, rule,
                           renorm<T>{rows<T>(b.data(), 1, size())});
    return std::memcmp(a.data(), b.data(), x.size() * sizeof(T)) != 0;
  }

  template <class Rule>
  int unlike(Rule const& rule) {
    std::int64_t const V = size();
    constexpr domain D = domain::probabilities;
    return unlike<D>(rule, x.size(), T(), [&](T* to) { return renorm<T>{rows<T>(to, 1, V)}; }) +
           unlike<D>(rule, 1, T(), [&](T* to) { return pivots<T>{to}; });
  }

  template <domain D>
  int unlike_gathered(top_k const& rule) {
    std::int64_t const k = rule.k[0];
    std::vector<std::int32_t> indices(static_cast<std::size_t>(k));
    std::vector<T> values(static_cast<std::size_t>(k));
    return unlike<D>(rule, static_cast<std::size_t>(k), T(),
                     [&](T* to) {
                       return gather<T>{rows<T>(to, 1, k), rows(indices.data(), 1, k)};
                     }) +
           unlike<D>(rule, static_cast<std::size_t>(k), std::int32_t(),
                     [&](std::int32_t* to) {
                       return gather<T>{rows<T>(values.data(), 1, k), rows(to, 1, k)};
                     }) +
           unlike<D>(rule, 1, T(), [&](T* to) { return pivots<T>{to}; });
  }

 private:
  std::uint32_t size() const { return static_cast<std::uint32_t>(x.size()); }
  std::vector<T> x;
  std::vector<std::uint32_t> memory;
};

}  // namespace

TEMPLATE_TEST_CASE("a surveyed row is cut like any other", "[tiles]", float, __half,
                   __nv_bfloat16) {
  for (std::size_t const V : {1, 7, 33, 1000, 4097, 32000})
    for (auto const& maker : test::makers) {
      INFO(maker.name << ", V = " << V);
      twins<TestType> row(test::to<TestType>(maker.make(V, 1)));
      int unlike = 0;
      for (ties const at : {ties::keep, ties::lowest_index}) {
        for (int const k : {1, 5, 50, 1000, 9000}) unlike += row.unlike(top_k{k, at});
        for (float const p : {0.0f, 0.1f, 0.5f, 0.95f, 0.999f, 1.0f})
          unlike += row.unlike(top_p{p, at});
      }
      for (int const k : {1, 50, 1000}) {
        unlike += row.template unlike_gathered<domain::probabilities>(top_k{k});
        unlike += row.template unlike_gathered<domain::logits>(top_k{k});
      }
      CHECK(unlike == 0);
    }
}

TEMPLATE_TEST_CASE("zeros of both signs count in a surveyed row, and nothing below them", "[tiles]",
                   float, __half, __nv_bfloat16) {
  for (std::size_t const V : {40, 333, 5000}) {
    std::vector<float> x(V);
    for (std::size_t i = 0; i < V; ++i)
      x[i] = i % 31 == 7 ? 0.25f : i % 3 == 0 ? -0.0f : i % 3 == 1 ? 0.0f : -1e-30f;
    twins<TestType> row(test::to<TestType>(x));
    int unlike = 0;
    for (int const k : {1, 20, 39}) {
      unlike += row.template unlike_gathered<domain::probabilities>(top_k{k});
      unlike += row.template unlike_gathered<domain::logits>(top_k{k});
      unlike += row.unlike(top_k{k}) + row.unlike(top_k{k, ties::lowest_index});
    }
    CAPTURE(V);
    CHECK(unlike == 0);
  }
}

// Tiles of nothing but +0 are not written again. What only looks like it: zeros of the other sign, what does
// not count, and values so small that the upper bits are those of zero.
TEMPLATE_TEST_CASE("in place all that goes becomes +0", "[tiles]", float, __half, __nv_bfloat16) {
  using T = TestType;
  using f = format<T>;
  std::uint32_t const rare[] = {0,           f::sign,    f::sign + 1, f::infinity,
                                f::nan,      1,          f::hidden,   f::sign | f::infinity,
                                f::sign - 1, 0xffffffff, 0xff};
  constexpr std::size_t tile = 64;  // elements: one tile and more
  std::vector<T> x(std::size(rare) * 3 * tile);
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::size_t const of = i / tile % std::size(rare), place = i % tile;
    // A stretch of each: one alone among zeros, all of them, one beside a larger entry.
    std::size_t const how = i / tile / std::size(rare);
    x[i] = from_bits<T>(how == 1 || place == 5 ? rare[of] : 0);
    if (how == 2 && place == 9) x[i] = test::rounded<T>(0.01f * static_cast<float>(of + 1));
  }
  twins<T> row(x);
  int unlike = 0;
  for (ties const at : {ties::keep, ties::lowest_index}) {
    for (int const k : {1, 5, 11, 12, 70, 500}) unlike += row.unlike_in_place(top_k{k, at});
    for (float const p : {0.0f, 0.1f, 0.5f, 0.66f, 1.0f})
      unlike += row.unlike_in_place(top_p{p, at});
  }
  CHECK(unlike == 0);
  for (auto const& maker : test::makers) {
    twins<T> made(test::to<T>(maker.make(3000, 5)));
    INFO(maker.name);
    CHECK(made.unlike_in_place(top_k{20}) + made.unlike_in_place(top_p{0.9f}) == 0);
  }
}

// What lies above the first guess is the target to the unit, and the guess has more keys than the list.
TEST_CASE("a mass that is met exactly above a wrong guess", "[tiles]") {
  auto const unlike = [](auto values, float p) {
    using T = typename decltype(values)::value_type;
    twins<T> row(std::move(values));
    return row.unlike(top_p{p}) + row.unlike(top_p{p, ties::lowest_index});
  };
  std::vector<__half> halves(16384);
  for (std::uint32_t i = 0; i < halves.size(); ++i)
    halves[i] = from_bits<__half>(i % 100 == 0 && i < 15000 ? 847 : 512 + i % 16);
  CHECK(unlike(halves, 127050.0f / 16777216.0f) == 0);
  for (float const p : {0.28f, 0.6f, 0.8f}) {
    std::vector<float> floats(16384);
    floats[5000] = p;
    floats[9000] = 1e-40f;
    CHECK(unlike(floats, p) == 0);
  }
}

// Nothing crosses the target, and the lowest bin has more keys than the list.
TEMPLATE_TEST_CASE("a mass out of reach, and more zeros than can be listed", "[tiles]", float,
                   __half, __nv_bfloat16) {
  using T = TestType;
  std::vector<T> x(16384, from_bits<T>(0));
  x[3] = x[700] = from_bits<T>(1);  // the smallest value there is
  twins<T> row(x);
  CHECK(row.unlike(top_p{0.5f}) == 0);
  CHECK(row.unlike(top_p{0.5f, ties::lowest_index}) == 0);
}

// As engines do: top-k, then top-p. So few are left that a guess by bins may miss the pivot by one of
// them, and of zeros there are more than can be listed.
TEMPLATE_TEST_CASE("a row of which k are left is cut like any other", "[tiles]", float, __half,
                   __nv_bfloat16) {
  using T = TestType;
  constexpr std::int64_t V = 8000;
  for (auto const& maker : test::makers)
    for (int const k : {1, 20, 200}) {
      auto const x = test::to<T>(maker.make(V, 2));
      std::vector<T> left(x.size());
      CHECK(cut(serial{}, rows<T const>(x.data(), 1, V), top_k{k},
                renorm<T>{rows<T>(left.data(), 1, V)}) == cudaSuccess);
      twins<T> row(left);
      int unlike = 0;
      for (float const p : {0.5f, 0.8f, 0.95f, 0.99f})
        unlike += row.unlike(top_p{p}) + row.unlike(top_p{p, ties::lowest_index});
      INFO(maker.name << ", k = " << k);
      CHECK(unlike == 0);
    }
}

// The guess takes the bin's keys to lie evenly, and sees that they do not: they lie higher, or lower, or
// where the guess is there are more of them than can be listed.
TEMPLATE_TEST_CASE("a row whose entries crowd in a part of a bin is cut like any other", "[tiles]",
                   float, __half, __nv_bfloat16) {
  using T = TestType;
  constexpr std::uint32_t bin = format<T>::hidden / 8;  // keys
  struct {
    std::size_t V;
    std::uint32_t spread;
  } const shapes[] = {{32000, bin / 64 + 1}, {200000, 1}};
  for (auto const& [V, spread] : shapes)
    for (std::uint32_t const place : {0u, bin / 2, bin - bin / 16 - 1}) {
      auto const x = test::crowded<T>(V, place, spread);
      double above = 0, in = 0;
      for (std::size_t i = 0; i < V; ++i) {
        if (i % 10 == 7) above += static_cast<double>(test::from(x[i]));
        if (i % 10 == 3) in += static_cast<double>(test::from(x[i]));
      }
      twins<T> row(x);
      int unlike = 0;
      for (double const part : {0.02, 0.3, 0.5, 0.9}) {
        auto const p = static_cast<float>(above + part * in);
        unlike += row.unlike(top_p{p}) + row.unlike(top_p{p, ties::lowest_index});
      }
      INFO("V = " << V << ", " << place << " keys over the power of two");
      CHECK(unlike == 0);
    }
}

// A sample says where the pivot of a row is likely to be of which much stays.
TEST_CASE("much of a row stays: it is looked at while it is read", "[tiles]") {
  int rows = 0, more = 0;
  for (char const* name : {"normal1", "uniform", "ascending", "descending"})
    for (std::size_t const V : {65536, 151936})
      for (std::uint32_t seed = 0; seed < 3; ++seed) {
        twins<float> row(test::make_row(name, V, seed));
        for (float const p : {0.5f, 0.9f, 0.95f, 0.99f}) ++rows, more += row.visits(top_p{p}) > 1;
      }
  INFO(more << " of " << rows << " rows are looked at again");
  CHECK(more <= 1);
}

TEST_CASE("a long row is cut like any other", "[tiles]") {
  for (auto const& maker : test::makers) {
    twins<float> row(maker.make(70001, 3));
    int unlike = 0;
    for (ties const at : {ties::keep, ties::lowest_index})
      for (float const p : {0.0f, 0.1f, 0.5f, 0.8f, 0.95f, 0.999f, 0.999999f})
        unlike += row.unlike(top_p{p, at});
    INFO(maker.name);
    CHECK(unlike == 0);
  }
}

TEST_CASE("a row that a sample is wrong about is cut like any other", "[tiles]") {
  for (std::size_t const V : {65539, 300000})
    for (test::lie const how : test::lies) {
      twins<float> row(test::misleading(V, how, 1));
      int unlike = 0;
      for (float const p : {0.2f, 0.6915f, 0.9f, 0.99f, 0.993f, 0.999f})
        unlike += row.unlike(top_p{p}) + row.unlike(top_p{p, ties::lowest_index});
      INFO("V = " << V << ", lie " << static_cast<int>(how));
      CHECK(unlike == 0);
    }
}

// The target is what the largest entries add up to, rounded once, for a hundred numbers of them.
TEST_CASE("a mass that is nearly met at an entry of a long row", "[tiles]") {
  for (std::uint32_t seed = 0; seed < 2; ++seed) {
    std::vector<float> x = test::normal1(65536, seed);
    std::vector<float> sorted = x;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    twins<float> row(x);
    int unlike = 0;
    double sum = 0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      sum += static_cast<double>(sorted[i]);
      if (i % 640 == 0 && sum < 0.999) unlike += row.unlike(top_p{static_cast<float>(sum)});
    }
    CAPTURE(seed);
    CHECK(unlike == 0);
  }
}

// Keys of 16-bit probabilities have a counter each only where such values are likely: what shares one is
// over 1, or next to nothing.
TEMPLATE_TEST_CASE("a row whose keys share counters is cut like any other", "[tiles]", __half,
                   __nv_bfloat16) {
  using T = TestType;
  using keys = tally<T>;
  constexpr std::uint32_t most = format<T>::infinity - 1, begin = keys::begin;
  struct {
    std::uint32_t low, high;                              // bits of values
  } const shapes[] = {{keys::end - 40, keys::end + 100},  // around what is over 1
                      {keys::end, most},
                      {0, most},
                      {most - 3, most},
                      {begin > 40 ? begin - 40 : 0, begin + 40},
                      {0, begin + 3},
                      {0, 2},
                      {1, 300}};
  for (auto const& [low, high] : shapes)
    for (int const zeros : {0, 1, 2}) {  // none; half of all; of both signs
      std::vector<T> x(9000);
      double sum = 0;
      for (std::uint32_t i = 0; i < x.size(); ++i) {
        std::uint64_t const word = test::random_word(low + 3, i);
        bool const zero = zeros != 0 && word >> 40 & 1;
        x[i] = from_bits<T>(zero ? (zeros == 2 && word >> 41 & 1 ? format<T>::sign : 0)
                                 : low + static_cast<std::uint32_t>(word % (high - low + 1)));
        sum += static_cast<double>(test::from(x[i]));
      }
      twins<T> row(x);
      int unlike = 0;
      for (ties const at : {ties::keep, ties::lowest_index}) {
        for (int const k : {1, 3, 60, 1000, 4400, 5000, 8999}) unlike += row.unlike(top_k{k, at});
        for (double const p : {0.0, 1e-40, 0.3 * sum, 0.9 * sum, 0.9999 * sum, 0.5})
          unlike += row.unlike(top_p{static_cast<float>(std::min(p, 1.0)), at});
      }
      for (int const k : {1, 60, 5000})
        unlike += row.template unlike_gathered<domain::probabilities>(top_k{k});
      INFO("values from bits " << low << " to " << high << ", zeros " << zeros);
      CHECK(unlike == 0);
    }
}

// The k-th largest is far below the largest: behind 2^32 of them, or on the other side of zero.
TEMPLATE_TEST_CASE("a row of which few are near the largest is cut like any other", "[tiles]",
                   float, __half, __nv_bfloat16) {
  using T = TestType;
  for (float const rest : {0.0f, 1e-30f, 3e-6f, -0.0f}) {
    auto x = test::to<T>(test::normal(9000, 1, 1.0));
    for (std::uint32_t i = 0; i < x.size(); ++i) {
      float const of = test::from(x[i]);
      x[i] = test::rounded<T>(i % 700 == 3 ? 0.05f : rest * (of < 0 ? -of : of));
    }
    twins<T> row(x);
    int unlike = 0;
    for (int const k : {1, 13, 14, 60, 1000, 8999}) {
      unlike += row.unlike(top_k{k}) + row.unlike(top_k{k, ties::lowest_index});
      unlike += row.template unlike_gathered<domain::probabilities>(top_k{k});
    }
    INFO("the rest is about " << rest);
    CHECK(unlike == 0);
  }
  for (float const shift : {-3.0f, -2.0f, -9.0f, 0.0f}) {  // logits
    auto const deviates = test::normal(9000, 2, 1.0);
    std::vector<T> x(deviates.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = i % 1000 == 1 ? test::rounded<T>(-std::numeric_limits<float>::infinity())
                           : test::rounded<T>(deviates[i] + shift);
    twins<T> row(x);
    int unlike = 0;
    for (int const k : {1, 50, 1000, 8995, 8999})
      unlike += row.template unlike_gathered<domain::logits>(top_k{k});
    INFO("logits around " << shift);
    CHECK(unlike == 0);
  }
}

// The masses that counts give are good enough: tiles are looked at once, and visited once to write. Of
// 16-bit types the counts are the answer, and nothing is looked at.
TEMPLATE_TEST_CASE("few guesses are wrong", "[tiles]", float, __half, __nv_bfloat16) {
  using T = TestType;
  constexpr int enough = sizeof(T) == 4 ? 2 : 1;
  int rows = 0, more = 0;
  for (char const* name : {"normal1", "normal4", "real", "uniform", "ascending", "mostly_zeros"})
    for (std::uint32_t seed = 0; seed < 4; ++seed) {
      twins<T> row(test::to<T>(test::make_row(name, 32000, seed)));
      for (float const p : {0.5f, 0.9f, 0.95f, 0.99f})
        ++rows, more += row.visits(top_p{p}) > enough;
    }
  for (std::uint32_t seed = 0; seed < 3; ++seed) {
    twins<T> row(test::to<T>(test::make_row("normal1", 1000003, seed)));
    for (float const p : {0.5f, 0.9f, 0.95f}) ++rows, more += row.visits(top_p{p}) > enough;
  }
  INFO(more << " of " << rows << " rows are visited more than " << enough << " times");
  CHECK(more <= (sizeof(T) == 4 ? 1 : 0));
}
