// The two searches against the definition and against each other; the sweeps they take; weights,
// targets, divisors and quotients against arithmetic that the library does not use.

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cutoff/sink.hpp>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "rows.hpp"

namespace {

using cutoff::domain, cutoff::uint128;
template <class T>
constexpr int point = 0;  // bit to which the largest entry's exponent goes
template <>
constexpr int point<std::uint64_t> = 43;
template <>
constexpr int point<uint128> = 75;

/// A row that counts how often it is swept.
template <cutoff::element T, domain D>
struct counted : cutoff::row<T, D> {
  int* sweeps;
};

template <cutoff::group G, class T, domain D, class F>
void sweep(G const& g, counted<T, D> r, F f) {
  ++*r.sweeps;
  cutoff::sweep(g, static_cast<cutoff::row<T, D> const&>(r), f);
}

/// Lowest exponent of a normal number, which subnormals share.
template <class T>
constexpr int lowest_exponent = std::is_same_v<T, __half> ? -14 : -126;

/// s of the weights in W of a row with this largest entry.
template <class T, class W>
int scale(double largest) {
  return point<W> -
         (largest > 0.0 ? std::max(std::ilogb(largest), lowest_exponent<T>) : lowest_exponent<T>);
}

/// floor(x * 2^s). A long double holds x * 2^s as it is: 24 bits and any exponent.
template <class W>
W weight(double x, int s) {
  return static_cast<W>(std::floor(std::ldexp(static_cast<long double>(x), s)));
}

/// ceil(p * 2^s), 1 and more, and all ones where W cannot hold it.
template <class W>
W target(float p, int s) {
  long double const exact = std::ceil(std::ldexp(static_cast<long double>(p), s));
  if (!(exact >= 1.0L)) return 1;
  if (exact >= std::ldexp(1.0L, 8 * static_cast<int>(sizeof(W)))) return static_cast<W>(~W{0});
  return static_cast<W>(exact);
}

/// Entries of one value.
template <class W>
struct tied {
  std::uint32_t key;
  W each, all;  // weight of one, and of all together
};

/// What there is of a row, the largest value first, each value once.
template <class W>
using groups = std::vector<tied<W>>;

template <domain D, class T, class F>
auto grouped(std::vector<T> const& x, F each) {
  using W = decltype(each(x[0]));
  std::vector<tied<W>> all;
  for (T const value : x) {
    float const v = test::from(value);
    bool const counts =
        D == domain::logits || (v >= 0.0f && v < std::numeric_limits<float>::infinity());
    if (counts) all.push_back({cutoff::to_key(value), each(value), W{0}});
  }
  std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.key > b.key; });
  groups<W> g;
  for (auto const& one : all) {
    if (g.empty() || g.back().key != one.key) g.push_back(one);
    g.back().all += one.each;
  }
  return g;
}

/// The definition: the first value from the top at which the running sum reaches the target.
template <class W>
cutoff::pivot<W> defined(groups<W> const& g, W goal, std::uint32_t lowest) {
  W above = 0;
  for (auto const& t : g) {
    if (above + t.all >= goal) return {t.key, above, t.all};
    above += t.all;
  }
  return {lowest, above, 0};
}

/// Targets that decide something: sums that are met exactly, missed by one, and out of reach.
template <class W>
std::vector<W> targets(groups<W> const& g) {
  std::vector<W> all = {1, 2, 3, static_cast<W>(~W{0}), static_cast<W>(~W{0} >> 1)};
  W sum = 0;
  std::size_t const step = g.size() / 3 + 1;
  for (std::size_t i = 0; i < g.size(); ++i) {
    sum += g[i].all;
    if (i % step == 0 || i + 1 == g.size() || i < 2) {
      all.insert(all.end(), {static_cast<W>(sum - 1), sum, static_cast<W>(sum + 1)});
    }
  }
  all.insert(all.end(), {static_cast<W>(sum / 2), static_cast<W>(sum / 10 * 9)});
  all.erase(std::remove(all.begin(), all.end(), W{0}), all.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Both searches for each target, and how often they swept.
template <domain D, class T, class M, class W>
void check_searches(std::vector<T> const& x, M const& m, groups<W> const& g,
                    std::vector<W> const& goals) {
  int sweeps = 0;
  counted<T, D> r;
  r.data = x.data();
  r.length = static_cast<std::uint32_t>(x.size());
  r.sweeps = &sweeps;
  constexpr int bits = 8 * sizeof(T), rounds = D == domain::logits ? bits : bits - 1;
  int wrong = 0, reached_sweeps = 0, missed_sweeps = 0;
  for (W const goal : goals) {
    auto const expected = defined(g, goal, r.lowest);
    sweeps = 0;
    auto const by_radix = cutoff::radix_pivot(cutoff::serial{}, r, m, goal);
    (expected.reached() ? reached_sweeps : missed_sweeps) = sweeps;
    sweeps = 0;
    auto const by_bits = cutoff::bitwise_pivot(cutoff::serial{}, r, m, goal);
    wrong += !(by_radix == expected) + !(by_bits == expected) + !(by_radix == by_bits);
    CAPTURE(static_cast<std::uint64_t>(goal), by_radix.key, by_bits.key, expected.key);
    REQUIRE(wrong == 0);
    REQUIRE(sweeps == rounds);
    if (expected.reached())
      REQUIRE(reached_sweeps == bits / 8);
    else
      REQUIRE(missed_sweeps == 1);
  }
}

/// Signs for a row of logits, and nothing changed for one of probabilities.
template <domain D>
std::vector<float> in_domain(std::vector<float> x) {
  for (std::size_t i = 0; D == domain::logits && i < x.size(); i += 2) x[i] = -x[i];
  return x;
}

double largest(auto const& x) {
  double most = 0.0;
  for (auto const v : x) {
    float const value = test::from(v);
    if (value < std::numeric_limits<float>::infinity() && value > most) most = value;
  }
  return most;
}

template <class W, class T>
void check_mass(std::vector<T> const& x) {
  using row = cutoff::row<T, domain::probabilities>;
  auto const r = row{x.data(), static_cast<std::uint32_t>(x.size())};
  cutoff::mass<T, W> const m(cutoff::largest_key(cutoff::serial{}, r));
  int const s = scale<T, W>(largest(x));
  auto const g =
      grouped<domain::probabilities>(x, [=](T v) { return weight<W>(test::from(v), s); });
  auto goals = targets(g);
  for (float const p : {0.5f, 0.9f, 0.999f}) goals.push_back(target<W>(p, s));
  check_searches<domain::probabilities>(x, m, g, goals);
}

template <domain D, class T>
void check_count(std::vector<T> const& x) {
  auto const g = grouped<D>(x, [](T) { return std::uint32_t{1}; });
  check_searches<D>(x, cutoff::count{}, g, targets(g));
}

}  // namespace

TEMPLATE_TEST_CASE("both searches find the pivot by definition, on every row", "", float, __half,
                   __nv_bfloat16) {
  using T = TestType;
  for (auto const& maker : test::makers) {
    for (std::size_t const V : {1, 2, 33, 1000}) {
      INFO(maker.name << ", V = " << V);
      auto const row = maker.make(V, 7);
      check_count<domain::probabilities>(test::to<T>(row));
      check_count<domain::logits>(test::to<T>(in_domain<domain::logits>(row)));
      check_mass<std::uint64_t>(test::to<T>(row));
      check_mass<uint128>(test::to<T>(row));
    }
  }
}

TEST_CASE("both searches find the pivot in a long row") {
  auto const row = test::make_row("normal4", 20011, 3);
  check_count<domain::probabilities>(row);
  check_mass<std::uint64_t>(row);
  check_mass<uint128>(test::to<__nv_bfloat16>(row));
}

TEST_CASE("both searches find the pivot in rows where nothing, or everything odd, counts") {
  float const infinity = std::numeric_limits<float>::infinity();
  float const nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::vector<float>> const rows = {{},
                                                {0.0f},
                                                {-0.0f, 0.0f, -0.0f},
                                                {nan, nan, -nan},
                                                {-infinity, -infinity},
                                                {infinity, infinity, infinity},
                                                {-1.0f, -2.0f, -0.0f, 0.0f, nan, infinity},
                                                {-infinity, nan, -infinity, -3.4e38f},
                                                {3.4e38f, 3.4e38f, 1e-45f},
                                                {1e-45f, 1e-45f, 0.0f}};
  for (auto const& row : rows) {
    CAPTURE(row);
    check_count<domain::probabilities>(row);
    check_count<domain::logits>(row);
    check_count<domain::logits>(test::to<__half>(row));
    check_mass<std::uint64_t>(row);
    check_mass<uint128>(row);
    check_mass<std::uint64_t>(test::to<__half>(row));
  }
}

TEST_CASE("the largest key is that of the largest entry that counts, in one sweep") {
  auto row = test::make_row("with_nan_and_infinities", 1000, 2);
  int sweeps = 0;
  counted<float, domain::probabilities> r;
  r.data = row.data();
  r.length = 1000;
  r.sweeps = &sweeps;
  CHECK(cutoff::largest_key(cutoff::serial{}, r) ==
        cutoff::to_key(static_cast<float>(largest(row))));
  CHECK(sweeps == 1);
  row.assign(1000, -1.0f);
  CHECK(cutoff::largest_key(cutoff::serial{}, r) == 0);
}

namespace {

/// Some values of a type, at every exponent, the largest and least significands among them.
template <class T>
std::vector<T> values_at_all_exponents() {
  constexpr std::uint32_t one_exponent = 1u << cutoff::format<T>::mantissa;
  std::vector<T> all;
  for (std::uint32_t field = 0; field < cutoff::format<T>::infinity; field += one_exponent) {
    auto const random = static_cast<std::uint32_t>(test::random_word(9, field));
    for (std::uint32_t const fraction : {0u, 1u, one_exponent / 2, random, random >> 9, ~0u}) {
      all.push_back(cutoff::from_bits<T>(field + fraction % one_exponent));
    }
  }
  return all;
}

template <class T, class W>
int wrong_weights() {
  int wrong = 0;
  auto const values = values_at_all_exponents<T>();
  for (std::size_t i = 0; i < values.size(); i += sizeof(T) == 4 ? 5 : 1) {
    float const top = test::from(values[i]);
    cutoff::mass<T, W> const m(cutoff::to_key(values[i]));
    int const s = scale<T, W>(top);
    for (T const value : values) {
      float const x = test::from(value);
      if (x > top) continue;
      wrong += m.weigh(cutoff::key_in<domain::probabilities>(value)) != weight<W>(x, s);
    }
    for (float p : values_at_all_exponents<float>()) wrong += m.target(p) != target<W>(p, s);
    for (float const p : {0.5f, 0.9f, std::nextafter(0.9f, 0.0f), 0.95f, 0x1.fffffep-1f, 1.0f}) {
      wrong += m.target(p) != target<W>(p, s);
    }
    for (float const p : {0.0f, -0.0f, -1e-45f, -1.0f, -std::numeric_limits<float>::infinity()}) {
      wrong += m.target(p) != 1;
    }
  }
  return wrong;
}

/// sum * 2^-s with the sum rounded to 24 bits, to nearest, ties to even.
template <class W>
long double rounded_sum(W sum, int s) {
  int exponent = 0;
  for (W left = sum; left >> 1 != 0; left >>= 1) ++exponent;
  int const drop = exponent - 23;
  if (drop <= 0) return std::ldexp(static_cast<long double>(sum), -s);
  W const unit = W{1} << drop, quotient = sum / unit, twice = sum % unit * 2;
  bool const up = twice > unit || (twice == unit && quotient % 2 == 1);
  return std::ldexp(static_cast<long double>(quotient + up), drop - s);
}

template <class T, class W>
int wrong_divisors() {
  int wrong = 0;
  auto const values = values_at_all_exponents<T>();
  constexpr int width = 8 * static_cast<int>(sizeof(W));
  constexpr int sums_below = width == 64 ? 64 : 31 + 76;  // 2^31 weights below 2^76
  for (std::size_t v = 0; v < values.size(); v += sizeof(T) == 4 ? 3 : 1) {
    cutoff::mass<T, W> const m(cutoff::to_key(values[v]));
    int const s = scale<T, W>(test::from(values[v]));
    // Below the normal floats every sum of weights is a multiple of the smallest float.
    int const low = std::max(0, s - 149);
    for (int top = low; top < sums_below; ++top) {
      std::vector<W> sums;
      W const high = W{1} << top, tie = top >= 24 ? W{1} << (top - 24) : 0;
      W const random =
          (W{test::random_word(3, v)} << (width / 2) | test::random_word(4, v)) & (high - 1);
      for (W const rest : {W{0}, tie, static_cast<W>(tie - 1), static_cast<W>(tie + 1),
                           static_cast<W>(3 * tie), static_cast<W>(high - 1),
                           static_cast<W>(high - tie), static_cast<W>(high - tie - 1), random}) {
        sums.push_back((high | (rest & (high - 1))) >> low << low);
      }
      for (W const sum : sums) {
        cutoff::divisor const d = m.divide_by(sum);
        long double const expected = rounded_sum(sum, s);
        long double const got = std::ldexp(static_cast<long double>(d.value), d.scaled ? 32 : 0);
        wrong += got != expected;
        wrong += d.scaled ? expected < 0x1p127L : expected > 0x1p127L;
      }
    }
    wrong += m.divide_by(0).scaled || m.divide_by(0).value != 0.0f;
  }
  return wrong;
}

}  // namespace

TEST_CASE("weights are floor(x * 2^s), targets ceil(p * 2^s)") {
  CHECK(wrong_weights<float, std::uint64_t>() == 0);
  CHECK(wrong_weights<float, uint128>() == 0);
  CHECK(wrong_weights<__half, std::uint64_t>() == 0);
  CHECK(wrong_weights<__half, uint128>() == 0);
  CHECK(wrong_weights<__nv_bfloat16, std::uint64_t>() == 0);
  CHECK(wrong_weights<__nv_bfloat16, uint128>() == 0);
}

TEST_CASE("the longest row's mass fits its word") {
  auto const fits = [](auto m, long double entries, int bits) {
    long double const most = static_cast<long double>(m.weigh(cutoff::to_key(0x1.fffffep3f)));
    return most * entries < std::ldexp(1.0L, bits);
  };
  std::uint32_t const key = cutoff::to_key(0x1.fffffep3f);
  CHECK(fits(cutoff::mass<float, std::uint64_t>(key), 0x1p20L, 64));
  CHECK(fits(cutoff::mass<float, uint128>(key), 0x1p31L, 128));
  CHECK(cutoff::mass<float, std::uint64_t>::longest == 1u << 20);
  CHECK(cutoff::mass<float, uint128>::longest == 0x7fffffffu);
}

TEST_CASE("a mass becomes a divisor by one rounding, to nearest even") {
  CHECK(wrong_divisors<float, std::uint64_t>() == 0);
  CHECK(wrong_divisors<float, uint128>() == 0);
  CHECK(wrong_divisors<__half, std::uint64_t>() == 0);
  CHECK(wrong_divisors<__half, uint128>() == 0);
  CHECK(wrong_divisors<__nv_bfloat16, std::uint64_t>() == 0);
  CHECK(wrong_divisors<__nv_bfloat16, uint128>() == 0);
}

TEST_CASE("a sum that rounds up to the next power of two is that power") {
  cutoff::mass<float, std::uint64_t> const m(cutoff::to_key(1.0f));  // s = 43
  CHECK(m.divide_by((std::uint64_t{1} << 44) - 1).value == 2.0f);
  CHECK(m.divide_by(std::uint64_t{1} << 43).value == 1.0f);
  CHECK(m.divide_by(1).value == 0x1p-43f);
}

namespace {

/// x / d, rounded to float once. The long double quotient of two 24-bit numbers is no closer than
/// 2^-49 of itself to a midpoint between floats (subnormal ones included) unless it is one, so that
/// rounding it again is right.
float exact_quotient(float x, cutoff::divisor d) {
  long double const by = std::ldexp(static_cast<long double>(d.value), d.scaled ? 32 : 0);
  return static_cast<float>(static_cast<long double>(x) / by);
}

/// x rounded to a 16-bit format by the rounding of the host's rint.
template <class T>
std::uint32_t rounded_bits(float x) {
  int const F = cutoff::format<T>::mantissa;
  int const exponent = x == 0.0f ? lowest_exponent<T> : std::max(std::ilogb(x), lowest_exponent<T>);
  double const units = std::rint(std::ldexp(static_cast<double>(std::fabs(x)), F - exponent));
  // units in [0, 2^(F + 1)]; a field is one above the exponent's distance from the lowest.
  auto const bits = static_cast<std::uint32_t>(units) +
                    (static_cast<std::uint32_t>(exponent - lowest_exponent<T>) << F);
  bool const too_large = bits > cutoff::format<T>::infinity;
  return (too_large ? cutoff::format<T>::infinity : bits) |
         (std::signbit(x) ? cutoff::format<T>::sign : 0);
}

}  // namespace

TEST_CASE("quotients are correctly rounded, at every exponent and with a scaled divisor") {
  REQUIRE(std::fegetround() == FE_TONEAREST);
  std::uint32_t wrong = 0;
  auto const values = values_at_all_exponents<float>();
  for (float const d : values) {
    if (d == 0.0f) continue;
    for (float const x : values) {
      // What stays is at most its mass: no quotient above 1.
      if (x <= d) {
        wrong += cutoff::to_bits(cutoff::quotient(x, {d, false})) !=
                 cutoff::to_bits(exact_quotient(x, {d, false}));
      }
      if (d >= 0x1p95f && d <= 0x1p127f) {
        wrong += cutoff::to_bits(cutoff::quotient(x, {d, true})) !=
                 cutoff::to_bits(exact_quotient(x, {d, true}));
      }
    }
  }
  for (std::uint64_t i = 0; i < 1000000; ++i) {  // where probabilities are
    float const d = static_cast<float>(0.25 + test::random_unit(1, i));
    float const x =
        static_cast<float>(std::ldexp(test::random_unit(2, i), -static_cast<int>(i % 160)));
    if (x > d) continue;
    wrong += cutoff::to_bits(cutoff::quotient(x, {d, false})) !=
             cutoff::to_bits(exact_quotient(x, {d, false}));
  }
  CHECK(wrong == 0);
}

TEST_CASE("a float is rounded to 16 bits to nearest even, subnormal results included") {
  std::uint32_t wrong = 0;
  auto const check = [&](std::uint32_t pattern) {
    float const x = cutoff::from_bits<float>(pattern);
    if (!std::isfinite(x)) return;
    wrong += cutoff::to_bits(cutoff::round_to<__half>(x)) != rounded_bits<__half>(x);
    wrong += cutoff::to_bits(cutoff::round_to<__nv_bfloat16>(x)) != rounded_bits<__nv_bfloat16>(x);
    wrong += cutoff::to_bits(cutoff::round_to<float>(x)) != pattern;
  };
  for (std::uint64_t pattern = 0; pattern <= 0xffffffff; pattern += 1021) {
    check(static_cast<std::uint32_t>(pattern));
  }
  // Around what lies between two neighbours of a 16-bit type.
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    for (std::uint32_t const near : {0xffffffffu, 0u, 1u}) {
      check((i << 16 | 0x8000) + near);
      float const x = test::from(cutoff::from_bits<__half>(i));
      float const next = test::from(cutoff::from_bits<__half>(i + 1));
      check(cutoff::to_bits((x + next) * 0.5f) + near);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("every half and bfloat16 becomes the float of its value") {
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    __half const h = cutoff::from_bits<__half>(i);
    __nv_bfloat16 const b = cutoff::from_bits<__nv_bfloat16>(i);
    if (float const x = cutoff::to_float(h); !std::isnan(x)) {
      wrong += cutoff::to_bits(x) != cutoff::to_bits(test::from(h));
      if (std::isfinite(x)) wrong += rounded_bits<__half>(x) != i;
    }
    wrong += cutoff::to_bits(cutoff::to_float(b)) != i << 16;
  }
  CHECK(wrong == 0);
}
