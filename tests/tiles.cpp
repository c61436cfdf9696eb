// A surveyed row is cut like any other: survey, bracket, look, list, and what remains when the list is
// too long or the guess refuted.

#include <cstdint>
#include <cutoff/cut.hpp>
#include <vector>

#include "catch.hpp"
#include "rows.hpp"

namespace {

using namespace cutoff;

/// A row of one maker, plain and with a record of its tiles.
template <class T>
class twins {
 public:
  explicit twins(std::vector<T> values)
      : x(std::move(values)), most(x.size() + 64), hit(x.size() + 64), list(tile_record::room) {}

  /// Entries, and pivots, that the two ways disagree about.
  template <class Rule>
  int unlike(Rule const& rule) {
    auto const V = static_cast<std::int64_t>(x.size());
    row<T> const plain{x.data(), static_cast<std::uint32_t>(V)};
    tiled<T, domain::probabilities> const surveyed(plain, {most.data(), hit.data(), list.data()});
    std::vector<T> a(x.size()), b(x.size()), c(2);
    cut_row<std::uint64_t>(serial{}, plain, 0, rule, renorm<T>{rows<T>(a.data(), 1, V)});
    cut_row<std::uint64_t>(serial{}, surveyed, 0, rule, renorm<T>{rows<T>(b.data(), 1, V)});
    cut_row<std::uint64_t>(serial{}, plain, 0, rule, pivots<T>{c.data()});
    cut_row<std::uint64_t>(serial{}, surveyed, 0, rule, pivots<T>{c.data() + 1});
    int n = to_bits(c[0]) != to_bits(c[1]);
    for (std::size_t i = 0; i < x.size(); ++i) n += to_bits(a[i]) != to_bits(b[i]);
    return n;
  }

 private:
  std::vector<T> x;
  std::vector<std::uint16_t> most, hit;
  std::vector<std::uint32_t> list;
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
      CHECK(unlike == 0);
    }
}
