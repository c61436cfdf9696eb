// Every scope gives serial's bits: one text, all_of, runs on the host and at each scope of the
// device, on each row maker, and everything it writes is compared.

#include <cstdint>
#include <cstring>
#include <cutoff/cutoff.cuh>
#include <string>
#include <vector>

#include "backend.cuh"
#include "catch.hpp"
#include "quick.hpp"
#include "rows.hpp"

namespace {

using cutoff::domain, cutoff::element, cutoff::pivot, cutoff::serial, cutoff::uint128;
using test::check;

/// What is asked of a row.
struct task {
  std::uint32_t count;  // targets, one a measure
  std::uint64_t mass;
  uint128 long_mass;
};

/// What the searches find: by radix descent, then bit by bit.
struct found {
  pivot<std::uint32_t> count[2], logits[2];
  pivot<std::uint64_t> mass[2];
  pivot<uint128> long_mass[2];
  std::uint32_t unlike;  // members that were told something else than member 0
};

bool operator==(found const& a, found const& b) {
  bool same = a.unlike == b.unlike;
  for (int i = 0; i < 2; ++i) {
    same = same && a.count[i] == b.count[i] && a.logits[i] == b.logits[i] &&
           a.mass[i] == b.mass[i] && a.long_mass[i] == b.long_mass[i];
  }
  return same;
}

/// A row swept by the plainest loop: what the searches cost a compiler is mostly their unrolled
/// sweeps, and those are tested by row.cpp, and here within cut_row.
template <element T, domain D>
struct plain : cutoff::row<T, D> {
  __host__ __device__ explicit plain(cutoff::row<T, D> r) : cutoff::row<T, D>(r) {}
};

template <cutoff::group G, element T, domain D, class F>
__host__ __device__ void sweep(G const& g, plain<T, D> r, F f) {
  for (std::uint32_t i = g.rank(); i < r.length; i += g.size()) f(i, r.data[i]);
}

/// Rows, what is asked of them, and where the answers go.
template <class T>
struct work {
  cutoff::rows<T const> in;
  task const* tasks;      // [B]
  std::int32_t const* k;  // [B]
  float const* p;         // [B]
  found* answers;         // [B]
  cutoff::rows<T> by_p;
  T* pivots;               // [B]
  cutoff::rows<T> values;  // [B, width]
  cutoff::rows<std::int32_t> indices;
};

/// Member 0 writes what it found, and the others compare.
template <cutoff::group G, class P>
__host__ __device__ void tell(G const& g, P const& mine, P* all, std::uint32_t& unlike) {
  if (g.rank() == 0) *all = mine;
  auto const alike = [&](auto x) { return g.sum(g.rank() == 0 ? x : decltype(x){0}) == x; };
  bool const key = alike(mine.key), above = alike(mine.above), at = alike(mine.at);
  unlike += g.sum(key && above && at ? 0u : 1u);
}

template <cutoff::group G, class Row, cutoff::measure M>
__host__ __device__ void search(G const& g, Row r, M const& m, typename M::weight target,
                                pivot<typename M::weight>* all, std::uint32_t& unlike) {
  tell(g, cutoff::radix_pivot(g, r, m, target), all, unlike);
  tell(g, cutoff::bitwise_pivot(g, r, m, target), all + 1, unlike);
}

template <cutoff::group G, element T>
__host__ __device__ void all_of(G const& g, work<T> const& w, std::int64_t b) {
  cutoff::row<T> const r{w.in[b], static_cast<std::uint32_t>(w.in.length)};
  cutoff::row<T, domain::logits> const scores{r.data, r.length};
  task const& asked = w.tasks[b];
  found* const to = w.answers + b;
  std::uint32_t unlike = 0;
  std::uint32_t const largest = cutoff::largest_key(g, r);
  search(g, plain(r), cutoff::count{}, asked.count, to->count, unlike);
  search(g, plain(scores), cutoff::count{}, asked.count, to->logits, unlike);
  search(g, plain(r), cutoff::mass<T, std::uint64_t>(largest), asked.mass, to->mass, unlike);
  search(g, plain(r), cutoff::mass<T, uint128>(largest), asked.long_mass, to->long_mass, unlike);
  if (g.rank() == 0) to->unlike = unlike;

  cutoff::top_k const top_k{w.k};
  cutoff::top_p const top_p{w.p, b % 2 == 0 ? cutoff::ties::lowest_index : cutoff::ties::keep};
  using word = std::uint64_t;
  cutoff::cut_row<word>(g, r, b, top_p, cutoff::renorm<T>{w.by_p});
  cutoff::cut_row<word>(g, r, b, top_k, cutoff::pivots<T>{w.pivots});
  cutoff::cut_row<word>(g, scores, b, top_k, cutoff::gather<T>{w.values, w.indices});
}

template <class G, std::uint32_t Rows, class T>
__global__ void __launch_bounds__(G::threads* Rows) at_scope(work<T> const w) {
  __shared__ typename G::scratch scratch[Rows];
  G const g(scratch[G::scope::index_in_block()]);
  for (std::int64_t b = G::scope::index_in_grid(); b < w.in.count; b += G::scope::groups_in_grid())
    all_of(g, w, b);
  g.sync();  // no block leaves whose memory another one reads
}

template <class T>
__global__ void on_one_thread(work<T> const w) {
  for (std::int64_t b = blockIdx.x; b < w.in.count; b += gridDim.x) all_of(serial{}, w, b);
}

/// Half as many groups as rows, so that each takes another one with the scratch it has used; of so
/// many units, each a block.
template <class G, std::uint32_t Rows, class T>
cudaError_t launch(work<T> const& w, unsigned units) {
  auto const groups = static_cast<unsigned>((w.in.count + 1) / 2),
             blocks = (groups + Rows - 1) / Rows;
  if constexpr (std::is_same_v<G, serial>) {
    on_one_thread<<<groups, 1>>>(w);
    return cudaGetLastError();
  } else {
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {units, 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(blocks * units);
    config.blockDim = dim3(G::threads * Rows);
    config.attrs = &cluster;
    config.numAttrs = units > 1;
    return cudaLaunchKernelEx(&config, at_scope<G, Rows, T>, w);
  }
}

/// Rows of every maker, and memory for all that is written about them, on the host or the device:
/// Array is std::vector or test::buffer.
template <class T, template <class...> class Array>
struct place {
  Array<T> x;
  Array<task> tasks;
  Array<std::int32_t> k;
  Array<float> p;
  Array<found> answers;
  Array<T> by_p, pivots, values;
  Array<std::int32_t> indices;

  work<T> about(std::int64_t B, std::int64_t V, std::int64_t stride, std::int64_t width) {
    return {{x.data(), B, V, stride},
            tasks.data(),
            k.data(),
            p.data(),
            answers.data(),
            {by_p.data(), B, V, stride + 1},
            pivots.data(),
            {values.data(), B, width, width + 1},
            {indices.data(), B, width, width + 2}};
  }
};

/// n elements of the bytes that a buffer begins with.
template <class U>
std::vector<U> poisoned(std::int64_t n) {
  std::vector<U> v(static_cast<std::size_t>(n));
  std::memset(static_cast<void*>(v.data()), test::poison, v.size() * sizeof(U));
  return v;
}

template <class U>
bool same(std::vector<U> const& a, std::vector<U> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(U)) == 0;
}

/// The rows of one length, what is asked of them, and serial's answers.
template <class T>
class trial {
 public:
  explicit trial(std::int64_t length)
      : V(length), B(2 * static_cast<std::int64_t>(std::size(test::makers))), stride(V | 1) {
    if (V > 4097) B /= 2;
    if (test::quick()) B = 4;
    host.x = poisoned<T>(B * stride);
    for (std::int64_t b = 0; b < B; ++b) ask(b);
    host.answers = std::vector<found>(static_cast<std::size_t>(B));
    host.by_p = poisoned<T>(B * (stride + 1));
    host.pivots = poisoned<T>(B);
    host.values = poisoned<T>(B * (width() + 1));
    host.indices = poisoned<std::int32_t>(B * (width() + 2));
    work<T> const w = host.about(B, V, stride, width());
    for (std::int64_t b = 0; b < B; ++b) all_of(serial{}, w, b);
  }

  template <class G, std::uint32_t Rows = 1>
  void check_scope(char const* name, unsigned units = 1) {
    INFO(name << ", V = " << V << ", elements of " << sizeof(T) << " bytes");
    using test::buffer;
    auto const like = [](auto const& v) {
      return buffer<typename std::remove_reference_t<decltype(v)>::value_type>(v.size());
    };
    place<T, buffer> device{
        buffer<T>(host.x),     buffer<task>(host.tasks), buffer<std::int32_t>(host.k),
        buffer<float>(host.p), like(host.answers),       like(host.by_p),
        like(host.pivots),     like(host.values),        like(host.indices)};
    check(launch<G, Rows>(device.about(B, V, stride, width()), units));
    check(cudaDeviceSynchronize());

    auto const answers = device.answers.get();
    for (std::int64_t b = 0; b < B; ++b) {
      INFO("row " << b << ", " << maker(b).name);
      auto const i = static_cast<std::size_t>(b);
      CHECK(answers[i].unlike == 0);
      bool const like_serial = answers[i] == host.answers[i];
      CHECK(like_serial);
    }
    CHECK(same(device.by_p.get(), host.by_p));
    CHECK(same(device.pivots.get(), host.pivots));
    CHECK(same(device.values.get(), host.values));
    CHECK(same(device.indices.get(), host.indices));
    CHECK(same(device.x.get(), host.x));  // the input is only read
  }

 private:
  std::int64_t width() const { return V < 40 ? V : 40; }
  static test::maker const& maker(std::int64_t b) {
    return test::makers[static_cast<std::size_t>(b) % std::size(test::makers)];
  }

  /// Writes row b, and asks something else of every row: sums that are met exactly, missed by one,
  /// or out of reach; no cut; everything between.
  void ask(std::int64_t b) {
    auto const row =
        test::to<T>(maker(b).make(static_cast<std::size_t>(V), static_cast<std::uint32_t>(b)));
    std::copy(row.begin(), row.end(), host.x.begin() + b * stride);
    cutoff::row<T> const r{row.data(), static_cast<std::uint32_t>(V)};
    std::uint32_t const largest = cutoff::largest_key(serial{}, r);
    cutoff::mass<T, std::uint64_t> const m(largest);
    cutoff::mass<T, uint128> const long_m(largest);
    std::uint64_t const total = cutoff::no_line(serial{}, r, m).kept;
    uint128 const long_total = cutoff::no_line(serial{}, r, long_m).kept;
    auto const n = static_cast<std::uint32_t>(V);
    std::int64_t const turn = b + static_cast<std::int64_t>(V % 7);
    switch (turn % 5) {
      case 0:
        host.tasks.push_back({1 + n / 2, total + (total == 0), long_total + 1});
        break;
      case 1:
        host.tasks.push_back({n, total + 1, long_total + (long_total == 0)});
        break;
      case 2:
        host.tasks.push_back({n + 1, total / 2 + 1, 1});
        break;
      default:
        host.tasks.push_back({1 + n / 20, m.target(0.9f), long_m.target(0.99f)});
        break;
    }
    std::int32_t const k[] = {1, 50, static_cast<std::int32_t>(V / 2), static_cast<std::int32_t>(V),
                              0};
    float const p[] = {0.9f, 0.5f, 0.999f, 0.1f, 0.0f, 1.0f};
    host.k.push_back(k[turn % 5]);
    host.p.push_back(p[turn % 6]);
  }

  std::int64_t V, B, stride;
  place<T, std::vector> host{};
};

}  // namespace

// A kernel a scope and type: not every scope with every type, but each scope, and each type at two.
TEST_CASE("every scope gives the bits of serial", "[scopes]") {
  using small_cluster = cutoff::cluster<256, 8>;
  using large_cluster = cutoff::cluster<1024, 8>;
  for (std::int64_t const V : {1, 33, 1000, 4097, 32000, 151936}) {
    if (test::quick() && V != 33 && V != 1000) continue;
    trial<float> floats(V);
    if (V <= 4097) floats.check_scope<serial>("serial");
    if (V <= 32000) floats.check_scope<cutoff::warp, 4>("warp");
    if (V <= 32000) floats.check_scope<cutoff::block<96>>("block of 96");  // no share of 256 bins
    bool const large = !test::quick() || V == 33;  // a race checker takes minutes over these
    if (large) floats.check_scope<large_cluster>("cluster of 1 x 1024");
    if (!test::quick()) floats.check_scope<large_cluster>("cluster of 8 x 1024", 8);
    trial<__half> halves(V);
    if (V <= 32000) halves.check_scope<cutoff::warp, 4>("warp");
    halves.check_scope<cutoff::block<256>>("block of 256");
    trial<__nv_bfloat16> bfloats(V);
    if (V <= 4097) bfloats.check_scope<serial>("serial");
    bfloats.check_scope<small_cluster>("cluster of 1 x 256");
    bfloats.check_scope<small_cluster>("cluster of 2 x 256", 2);
    if (large) bfloats.check_scope<small_cluster>("cluster of 7 x 256", 7);
  }
}
