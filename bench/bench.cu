// The cases. Names: who/rule/type/V:length/B:rows/row maker, for --benchmark_filter. See README.md.

#include "bench.cuh"

#include <cub/block/block_scan.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/version.cuh>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <sstream>
#include <utility>

namespace bench {

template <class... X>
std::string joined(X const&... x) {
  std::ostringstream text;
  (text << ... << x);
  return text.str();
}

using cutoff::gather, cutoff::renorm, cutoff::rows, cutoff::top_k, cutoff::top_p;

// --- Who cuts: who(in, rule, sink, stream) -> cudaError_t ----------------------------------------

/// Ours: one launch.
struct ours {
  static constexpr auto same = same_bits;
  static std::string label(point at) {
    return to_string(cutoff::shape_for(at.V, at.B, {device().multiProcessorCount}));
  }
  template <class T, class Rule, class Sink>
  cudaError_t operator()(rows<T const> in, Rule rule, Sink sink, cudaStream_t on) const {
    return cutoff::cut(in, rule, sink, on);
  }
};

/// The plain way, a block a row: one sweep for the largest entry, 31 (15) rounds of binary search,
/// one for the kept mass, one to write. Same bits as ours.
template <class T, class Rule>
__global__ void __launch_bounds__(1024)
    bitwise_kernel(rows<T const> in, Rule rule, renorm<T> sink) {
  using G = cutoff::block<1024>;
  __shared__ typename G::scratch scratch;
  G const g(scratch);
  std::int64_t const b = blockIdx.x;
  cutoff::row<T> const r{in[b], static_cast<std::uint32_t>(in.length)};
  cutoff::mass<T, std::uint64_t> const m(largest_key(g, r));
  std::uint32_t key;
  if constexpr (std::same_as<Rule, top_k>)
    key = bitwise_pivot(g, r, cutoff::count{}, rule.k[b]).key;
  else
    key = bitwise_pivot(g, r, m, m.target(rule.p[b])).key;
  cutoff::line<std::uint64_t> cut{key, cutoff::whole_group, true, 0};
  cut.kept = kept_measure(g, r, m, key);
  sink.write(g, r, b, cut, m);
}

struct bitwise {
  static constexpr auto same = same_bits;
  static std::string label(point) { return "a block of 1024 a row"; }
  template <class T, class Rule>
  cudaError_t operator()(rows<T const> in, Rule rule, renorm<T> sink, cudaStream_t on) const {
    bitwise_kernel<<<in.count, 1024, 0, on>>>(in, rule, sink);
    return cudaGetLastError();
  }
};

/// A block a row: adds up sorted entries until there are k or their sum reaches p, and all that
/// equal the last of them; divides what stays.
template <class T>
__global__ void __launch_bounds__(1024)
    scan_kernel(rows<T const> in, T const* all_sorted, std::int64_t k, double p, rows<T> out) {
  using G = cutoff::block<1024>;
  using scan = cub::BlockScan<double, 1024>;
  __shared__ typename G::scratch scratch;
  __shared__ typename scan::TempStorage storage;
  __shared__ double kept;
  G const g(scratch);
  std::int64_t const b = blockIdx.x, V = in.length;
  T const* const sorted = all_sorted + b * V;  // [V], descending
  float pivot = -1;                            // until it is found
  double before = 0;
  for (std::int64_t base = 0; base < V; base += 1024) {
    std::int64_t const i = base + threadIdx.x;
    float const x = i < V ? cutoff::to_float(sorted[i]) : -2;
    double sum, total;
    scan(storage).InclusiveSum(i < V ? x : 0.0, sum, total);
    sum += before;
    bool const met = i + 1 >= k || sum >= p;
    int const unmet = __syncthreads_count(i < V && !met);
    if (pivot < 0 && base + unmet < V && unmet < 1024)
      pivot = cutoff::to_float(sorted[base + unmet]);
    int const stay = __syncthreads_count(x >= pivot);
    if (threadIdx.x + 1 == stay) kept = sum;
    if (stay < 1024) break;  // also at the row's end
    before += total;
  }
  __syncthreads();
  cutoff::row<T> const r{in[b], static_cast<std::uint32_t>(V)};
  cutoff::transform(g, r, out[b], [&](std::uint32_t, T entry) {
    float const x = cutoff::to_float(entry);
    return cutoff::round_to<T>(x >= pivot && kept > 0 ? x / static_cast<float>(kept) : 0);
  });
}

/// CUB sorts the rows, segment by segment, into a workspace; a kernel does the rest.
template <class T>
struct cub_sort {
  point at;
  std::size_t bytes = 0;
  memory<T> sorted = allocate<T>(at.B * at.V);
  memory<int> offsets = allocate<int>(at.B + 1);
  memory<std::byte> workspace;

  static std::string label(point) { return "a segment a row"; }
  static bool same(T a, T b) {  // up to roundings
    double const x = test::from(a), y = test::from(b);
    double const ulp = std::ldexp(1.0, -cutoff::format<T>::mantissa);
    return std::abs(x - y) <= 4 * ulp * y + test::from(cutoff::from_bits<T>(1));
  }

  explicit cub_sort(point p) : at(p) {
    std::vector<int> host(at.B + 1);
    for (std::int64_t b = 0; b <= at.B; ++b) host[b] = static_cast<int>(b * at.V);
    copy(offsets.get(), host.data(), at.B + 1);
    check(cudaStreamSynchronize(stream));
    check(sort(nullptr, stream));  // asks for the size
    workspace = allocate<std::byte>(bytes);
  }
  cudaError_t sort(T const* in, cudaStream_t on) {
    int const B = static_cast<int>(at.B), *const from = offsets.get();
    return cub::DeviceSegmentedRadixSort::SortKeysDescending(
        workspace.get(), bytes, in, sorted.get(), static_cast<int>(B * at.V), B, from, from + 1, 0,
        8 * static_cast<int>(sizeof(T)), on);
  }
  cudaError_t operator()(rows<T const> in, top_k rule, renorm<T> sink, cudaStream_t on) {
    return sort_and_scan(in, rule.k[0], std::numeric_limits<double>::infinity(), sink, on);
  }
  cudaError_t operator()(rows<T const> in, top_p rule, renorm<T> sink, cudaStream_t on) {
    return sort_and_scan(in, in.length + 1, rule.p[0], sink, on);
  }
  cudaError_t sort_and_scan(rows<T const> in, std::int64_t k, double p, renorm<T> sink,
                            cudaStream_t on) {
    if (cudaError_t const e = sort(in.data, on)) return e;
    scan_kernel<<<in.count, 1024, 0, on>>>(in, sorted.get(), k, p, sink.out);
    return cudaGetLastError();
  }
};

// --- Into what, and what must come out -----------------------------------------------------------

inline constexpr auto into_renorm = []<class T>(T* out, std::int64_t B, std::int64_t V) {
  return renorm<T>{rows<T>(out, B, V)};
};
auto into_gather(std::int64_t k) {  // k even: the indices lie behind the values, aligned
  return [k]<class T>(T* out, std::int64_t B, std::int64_t) {
    return gather<T>{rows<T>(out, B, k), rows(reinterpret_cast<std::int32_t*>(out + B * k), B, k)};
  };
}

/// Calls f with each output of one sink beside that of another.
template <class T>
void each_output(renorm<T> a, renorm<T> b, auto f) {
  f(a.out, b.out);
}
template <class T>
void each_output(gather<T> a, gather<T> b, auto f) {
  f(a.values, b.values);
  f(a.indices, b.indices);
}

/// Times a way to cut rows, if its first calls give what the host gives. In_place: the output's rows are
/// copies of the input's, and cut there.
template <bool In_place, class T>
void time_cut(benchmark::State& state, sets<T> const& s, auto who, auto rule, auto into) {
  std::int64_t const B = s.at.B, V = s.at.V;
  auto const sink = [&](std::int64_t set) { return into(s.output(set), B, V); };
  constexpr bool copies = std::same_as<decltype(sink(0)), renorm<T>>;  // else it mostly reads
  double const roof = roof_of<copies>(s).time.seconds;
  std::int64_t bytes = s.bytes;
  each_output(sink(0), sink(0), [&](auto out, auto) {
    bytes += out.count * out.length * static_cast<std::int64_t>(sizeof(*out.data));
  });
  std::int64_t const last = s.turning(bytes) - 1;
  auto const call = [&](std::int64_t set, cudaStream_t on) {
    return who(In_place ? rows<T const>(s.output(set), B, V) : s.input(set), rule, sink(set), on);
  };
  auto const verify = [&] {  // the first row of the first set and the last row of the last
    std::vector<T> in = download(s.input(0)[0], V), out(2 * V);
    std::vector<T> const end = download(s.input(last)[B - 1], V);
    in.insert(in.end(), end.begin(), end.end());
    auto const host = into(out.data(), 2, V);
    check(cutoff::cut(cutoff::serial{}, rows<T>(in.data(), 2, V), rule, host));
    auto const compare = [&](std::int64_t host_row, std::int64_t row) {
      return [=](auto expected, auto outputs) {
        auto const got = download(outputs[row], outputs.length);
        if (!std::equal(got.begin(), got.end(), expected[host_row], decltype(who)::same))
          throw std::runtime_error("not what the host gives");
      };
    };
    each_output(host, sink(0), compare(0, 0));
    each_output(host, sink(last), compare(1, B - 1));
  };
  s.poison();
  timing t;
  if constexpr (In_place)
    t = timed(last + 1, call, verify, [&] { copy(s.out.get(), s.in.get(), s.count * s.step); });
  else
    t = timed(last + 1, call, verify);
  report(state, t, bytes, who.label(s.at));
  state.counters[copies ? "of_copy" : "of_read"] = roof / t.seconds;
}

// --- The axes ------------------------------------------------------------------------------------

inline constexpr std::int64_t batches[] = {1,   2,   4,   8,   16,  32,  64,  132,
                                           133, 256, 264, 265, 512, 528, 529, 1024};
inline constexpr std::int64_t lengths[] = {32'000, 128'256, 151'936, 151'937, 262'144, 1'000'003};
inline constexpr std::int32_t ks[] = {50, 1000};  // baselines: the first of each
inline constexpr float ps[] = {0.95f, 0.5f, 0.999f};
inline constexpr point centre{64, 151'936, "normal1"};
inline constexpr point proof{1024, 151'936, "normal1"};  // where a copy shows whether a run counts

template <class T>
void add_cases(std::string const& type, point at) {
  std::string const size = joined("/", type, "/V:", at.V, "/B:", at.B);
  auto const add_cut = [&]<bool In_place = false>(std::string const& name, auto who, auto rule,
                                                  auto into) {
    add(joined(name, In_place ? ":in_place" : "", size, "/", at.input),
        [=](benchmark::State& state) {
          time_cut<In_place>(state, sets_at<T>(at), who(at), rule, into);
        });
  };
  auto const add_roof = [&](std::string const& name, auto write) {
    add(joined(name, size), [=](benchmark::State& state) {
      auto const& s = sets_at<T>(at);
      roof const& r = roof_of<write>(s);
      report(state, r.time, (1 + write) * s.bytes, r.by);
    });
  };
  if (at.input == centre.input) {
    add_roof("copy", std::true_type{});
    add_roof("read", std::false_type{});
  }
  auto const we = [](point) { return ours{}; };
  auto const plain = [](point) { return bitwise{}; };
  auto const cub = [](point p) { return cub_sort<T>(p); };
  bool const sortable = at.input != "with_nan_and_infinities";  // CUB would put NaN first
  for (std::int32_t const k : ks) {
    std::string const name = joined("/top_k:", k);
    add_cut("cutoff" + name, we, top_k{k}, into_renorm);
    if constexpr (std::same_as<T, float>)  // spares a minute of compilation
      add_cut(joined("cutoff/gather:", k), we, top_k{k}, into_gather(k));
    if (k != ks[0]) continue;
    add_cut.template operator()<true>("cutoff" + name, we, top_k{k}, into_renorm);
    add_cut("bitwise" + name, plain, top_k{k}, into_renorm);
    if (sortable) add_cut("cub_sort" + name, cub, top_k{k}, into_renorm);
  }
  for (float const p : ps) {
    std::string const name = joined("/top_p:", p);
    add_cut("cutoff" + name, we, top_p{p}, into_renorm);
    if (p != ps[0]) continue;
    add_cut.template operator()<true>("cutoff" + name, we, top_p{p}, into_renorm);
    add_cut("bitwise" + name, plain, top_p{p}, into_renorm);
    if (sortable) add_cut("cub_sort" + name, cub, top_p{p}, into_renorm);
  }
}

/// By default the points that lie off the centre along one axis at most; in full, all.
template <class T>
void add_points(std::string const& type, bool full) {
  for (test::maker const& maker : test::makers)
    for (std::int64_t const V : lengths)
      for (std::int64_t const B : batches) {
        point const at{B, V, maker.name};
        int const off = (at.B != centre.B) + (at.V != centre.V) + (at.input != centre.input) +
                        !std::same_as<T, float>;
        if (full || off <= 1) add_cases<T>(type, at);
      }
}

/// Says what is measured on, and whether the run counts: only if a copy is as fast as it can be.
bool describe() {
  constexpr double least = 3.9;  // TB/s, of an H200
  cudaDeviceProp const d = device();
  int driver = 0;
  check(cudaDriverGetVersion(&driver));
  auto const& s = sets_at<float>(proof);
  roof_of<false>(s);  // warms the device up
  double const rate = 2e-12 * s.bytes / roof_of<true>(s).time.seconds;
  bool const counts = rate >= least || std::string_view(d.name).find("H200") == std::string::npos;
  std::pair<char const*, std::string> const context[] = {
      {"device", joined(d.name, ", ", d.multiProcessorCount, " multiprocessors")},
      {"toolkit", joined(CUDART_VERSION / 1000, ".", CUDART_VERSION % 1000 / 10)},
      {"driver", joined("for CUDA ", driver / 1000, ".", driver % 1000 / 10)},
      {"cutoff",
       joined(CUTOFF_VERSION_MAJOR, ".", CUTOFF_VERSION_MINOR, ".", CUTOFF_VERSION_PATCH)},
      {"cub", joined(CUB_MAJOR_VERSION, ".", CUB_MINOR_VERSION, ".", CUB_SUBMINOR_VERSION)},
      {"copy", joined(rate, " TB/s at B = ", proof.B, ", V = ", proof.V, ", float")},
      {"run", counts ? "valid" : joined("VOID: a copy reaches less than ", least, " TB/s")}};
  for (auto const& [key, value] : context) benchmark::AddCustomContext(key, value);
  return counts;
}

int run(int argc, char** argv) {
  auto const is = [](std::string_view flag) {
    return [flag](std::string_view a) { return a == flag || a == joined(flag, "=true"); };
  };
  char** const end = std::remove_if(argv + 1, argv + argc, is("--full"));
  bool const full = end != argv + argc,
             listing = std::any_of(argv + 1, end, is("--benchmark_list_tests"));
  argc = static_cast<int>(end - argv);
  add_points<float>("float", full);
  add_points<__half>("half", full);
  add_points<__nv_bfloat16>("bfloat16", full);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  int devices = 0;
  cudaError_t const e = listing ? cudaSuccess : cudaGetDeviceCount(&devices);
  if (!listing && (e != cudaSuccess || devices == 0)) {
    std::printf("skipped: no GPU (%s)\n", cudaGetErrorString(e));
    return 77;
  }
  bool const counts = listing || describe();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  held_sets.reset();
  if (!counts)
    std::fprintf(stderr, "This run is VOID: the copy was too slow (see \"run\" above).\n");
  return counts && failures == 0 ? 0 : 1;
}

}  // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run(argc, argv);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
