// What a call promises its host: streams, errors, memory, graphs, launch shapes; and what goes
// wrong elsewhere only now and then: races, hangs, state left over. Answers are compared with
// serial's on the device itself, so that thousands of launches can be. D-numbers: README.md.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cutoff/cutoff.cuh>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backend.cuh"
#include "catch.hpp"
#include "quick.hpp"
#include "rows.hpp"

namespace test {

/// The public call, started and not waited for. Built in calls.cu.
template <class In, class Rule, class Sink>
cudaError_t start(In in, Rule rule, Sink sink, cutoff::options how);

/// A sink of its own type, hence a kernel that nobody has called before it is captured here.
struct untouched : cutoff::pivots<float> {};

}  // namespace test

namespace {

using cutoff::gather, cutoff::options, cutoff::renorm, cutoff::rows, cutoff::serial, cutoff::shape,
    cutoff::top_k, cutoff::top_p;
using test::buffer, test::check, test::quick, test::repeated, test::start;

/// Ends the program where a test has not ended in time: a device that hangs cannot be cleaned up.
class watchdog {
 public:
  explicit watchdog(int seconds, char const* what)
      : thread([this, limit = std::chrono::seconds(quick() ? 20 * seconds : seconds), what] {
          std::unique_lock lock(mutex);
          if (over.wait_for(lock, limit, [this] { return done; })) return;
          std::fprintf(stderr, "%s: not done in time, given up\n", what);
          std::_Exit(EXIT_FAILURE);
        }) {}
  ~watchdog() {
    {
      std::lock_guard const lock(mutex);
      done = true;
    }
    over.notify_one();
    thread.join();
  }

 private:
  std::mutex mutex;
  std::condition_variable over;
  bool done = false;
  std::thread thread;
};

class stream {
 public:
  explicit stream(unsigned flags = cudaStreamNonBlocking) {
    check(cudaStreamCreateWithFlags(&s, flags));
  }
  stream(stream const&) = delete;
  ~stream() { cudaStreamDestroy(s); }
  operator cudaStream_t() const { return s; }
  void finish() const { check(cudaStreamSynchronize(s)); }

 private:
  cudaStream_t s = nullptr;
};

/// Memory that host and device both see while kernels run.
template <class T>
class shared {
 public:
  explicit shared(std::size_t n) {
    check(cudaHostAlloc(&first, n * sizeof(T), cudaHostAllocDefault));
    for (std::size_t i = 0; i < n; ++i) first[i] = T{};
  }
  shared(shared const&) = delete;
  ~shared() { cudaFreeHost(first); }
  T volatile* data() const { return first; }

 private:
  T* first = nullptr;
};

int multiprocessors() {
  int id = 0, n = 0;
  check(cudaGetDevice(&id));
  check(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, id));
  return n;
}

int largest_shared_memory() {
  int id = 0, n = 0;
  check(cudaGetDevice(&id));
  check(cudaDeviceGetAttribute(&n, cudaDevAttrMaxSharedMemoryPerBlockOptin, id));
  return n;
}

bool has_clusters() {
  int id = 0, yes = 0;
  check(cudaGetDevice(&id));
  check(cudaDeviceGetAttribute(&yes, cudaDevAttrClusterLaunch, id));
  return yes != 0;
}

// --- Kernels of the tests -----------------------------------------------------------------------

__device__ unsigned long long now() {  // nanoseconds
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

__device__ void wait(unsigned long long nanoseconds) {
  for (unsigned long long const begin = now(); now() - begin < nanoseconds;) __nanosleep(1000);
}

/// Row b becomes the base [V], begun at entry b * step, after a pause. A dependent call may be launched
/// before that.
template <class T>
__global__ void spread(rows<T> to, T const* base, std::int64_t step, unsigned long long pause = 0) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  if (pause > 0) wait(pause);
  std::int64_t const n = to.count * to.length, size = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t j = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; j < n; j += size) {
    std::int64_t const b = j / to.length, i = j % to.length;
    to[b][i] = base[(i + b * step) % to.length];
  }
}

template <class T>
void fill_rows(rows<T> to, T const* base, std::int64_t step, cudaStream_t s,
               unsigned long long pause = 0) {
  spread<<<512, 256, 0, s>>>(to, base, step, pause);
  check(cudaGetLastError());
}

/// Counts the entries of row b that have other bits than those of expected's row b mod its count.
template <class T>
__global__ void compare(rows<T const> got, rows<T const> expected, unsigned long long* differing) {
  std::int64_t const n = got.count * got.length, size = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t j = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; j < n; j += size) {
    std::int64_t const b = j / got.length, i = j % got.length;
    using word = std::conditional_t<sizeof(T) == 4, unsigned, unsigned short>;
    auto const* const x = reinterpret_cast<word const*>(got[b]);
    auto const* const y = reinterpret_cast<word const*>(expected[b % expected.count]);
    if (x[i] != y[i]) atomicAdd(differing, 1ull);
  }
}

/// Fills the shared memory of the multiprocessor with ones.
__global__ void spoil_shared_memory(unsigned bytes) {
  extern __shared__ unsigned all[];
  unsigned volatile* const memory = all;
  for (unsigned i = threadIdx.x; i < bytes / 4; i += blockDim.x) memory[i] = 0xffffffff;
}

__global__ void occupy(int volatile const* released, int volatile* started, int volatile* timed_out,
                       unsigned long long limit) {
  unsigned long long const begin = now();
  started[blockIdx.x] = 1;
  __threadfence_system();
  while (!*released) {
    if (now() - begin > limit) {
      *timed_out = 1;
      return;
    }
    __nanosleep(1000);
  }
}

/// The parameters of row b in a round: all kinds of them, by numbers that are exact.
__host__ __device__ std::int32_t k_of(int b, int round) {
  return (b * 37 + round * 111) % 1203 - 2;
}
__host__ __device__ float p_of(int b, int round) {
  return static_cast<float>((b * 7 + round * 5) % 19 - 1) * 0.0625f;
}
__global__ void set_parameters(std::int32_t* k, float* p, int round) {
  auto const b = static_cast<int>(threadIdx.x);
  k[b] = k_of(b, round);
  p[b] = p_of(b, round);
}

// --- What tests are made of ---------------------------------------------------------------------

/// The number of differences seen so far, counted on the device.
class differences {
 public:
  differences() { n.fill(0); }
  template <class T>
  void look(rows<T> got, rows<T> expected, cudaStream_t s = nullptr) {
    compare<T><<<512, 256, 0, s>>>(got, expected, n.data());
    check(cudaGetLastError());
  }
  unsigned long long total() const {
    check(cudaDeviceSynchronize());
    return n.get()[0];
  }

 private:
  buffer<unsigned long long> n{1};
};

/// Holds multiprocessors, each whole, until it is released or has waited for half a minute.
class spinner {
 public:
  explicit spinner(int blocks) : started(static_cast<std::size_t>(blocks)) {
    int const bytes = largest_shared_memory();
    check(cudaFuncSetAttribute(occupy, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    occupy<<<static_cast<unsigned>(blocks), 32, static_cast<unsigned>(bytes), s>>>(
        released.data(), started.data(), timed_out.data(), 30'000'000'000ull);
    check(cudaGetLastError());
    for (int b = 0; b < blocks; ++b) {
      while (!started.data()[b]) std::this_thread::yield();
    }
  }
  ~spinner() {
    *released.data() = 1;
    cudaStreamSynchronize(s);
  }
  cudaStream_t where() const { return s; }
  bool gave_up() const { return *timed_out.data() != 0; }

 private:
  shared<int> released{1}, started, timed_out{1};
  stream s;
};

/// Calls that were captured, without anything that capturing forbids.
class graph {
 public:
  template <class F>
  explicit graph(F record) {
    stream const s;
    cudaGraph_t g = nullptr;
    check(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    cudaError_t const recorded = record(static_cast<cudaStream_t>(s));
    cudaError_t const ended = cudaStreamEndCapture(s, &g);
    check(recorded);
    check(ended);
    check(cudaGraphGetNodes(g, nullptr, &nodes));
    check(cudaGraphInstantiate(&exec, g, 0));
    check(cudaGraphDestroy(g));
  }
  graph(graph const&) = delete;
  ~graph() { cudaGraphExecDestroy(exec); }
  void replay(cudaStream_t s) { check(cudaGraphLaunch(exec, s)); }

  std::size_t nodes = 0;

 private:
  cudaGraphExec_t exec = nullptr;
};

/// Serial's answers, in the device's memory. x [B, V]
template <class T, class Rule>
buffer<T> renormed(std::vector<T> const& x, std::int64_t B, Rule rule) {
  std::int64_t const V = static_cast<std::int64_t>(x.size()) / B;
  std::vector<T> out(x.size());
  check(cutoff::cut(serial{}, rows<T const>(x.data(), B, V), rule, renorm<T>{{out.data(), B, V}}));
  return buffer<T>(out);
}

struct winners {
  buffer<float> values;
  buffer<std::int32_t> indices;
};

winners gathered(std::vector<float> const& x, std::int64_t B, top_k rule, std::int64_t width) {
  std::vector<float> values(static_cast<std::size_t>(B * width));
  std::vector<std::int32_t> indices(values.size());
  check(cutoff::cut(serial{},
                    rows<float const>(x.data(), B, static_cast<std::int64_t>(x.size()) / B), rule,
                    gather<float>{{values.data(), B, width}, {indices.data(), B, width}}));
  return {buffer<float>(values), buffer<std::int32_t>(indices)};
}

/// Rows of all kinds, one after the other. [B, V]
template <class T>
std::vector<T> some_rows(std::int64_t B, std::int64_t V) {
  std::vector<T> x;
  for (std::int64_t b = 0; b < B; ++b) {
    auto const& maker = test::makers[static_cast<std::size_t>(b) % std::size(test::makers)];
    auto const row =
        test::to<T>(maker.make(static_cast<std::size_t>(V), static_cast<std::uint32_t>(b)));
    x.insert(x.end(), row.begin(), row.end());
  }
  return x;
}

/// Rows of distinct values 1 .. V, scaled to sum to less than 1, each in another order.
std::vector<float> permutations(std::int64_t B, std::int64_t V, std::uint32_t seed) {
  std::vector<float> x;
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::uint32_t const i :
         test::permutation(static_cast<std::size_t>(V), seed + static_cast<std::uint32_t>(b))) {
      x.push_back(static_cast<float>(i + 1) * 0x1p-40f);
    }
  }
  return x;
}

/// Whether two vectors are the same, NaNs too.
template <class T>
bool same_bytes(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

std::size_t elements(std::int64_t B, std::int64_t V) { return static_cast<std::size_t>(B * V); }

shape const shapes[] = {{256}, {320}, {320, 2}, {320, 3}, {320, 8}};

void left_out(char const* why) { WARN("left out: " << why); }

}  // namespace

// --- Graphs -------------------------------------------------------------------------------------

namespace {

/// An entry point captured, without a direct call before: two replays equal it.
template <class T, class Call>
void check_capture(rows<T const> in, std::int64_t width, Call call, std::size_t launches = 1) {
  std::int64_t const B = in.count;
  std::size_t const n = elements(B, width);
  buffer<T> direct(n), replayed(n);
  buffer<std::int32_t> direct_indices(n), replayed_indices(n);
  rows<T> const a(direct.data(), B, width), b(replayed.data(), B, width);
  rows<std::int32_t> const i(direct_indices.data(), B, width), j(replayed_indices.data(), B, width);
  stream const s;
  differences found;
  graph g([&](cudaStream_t capturing) { return call(b, j, options{capturing}); });
  CHECK(g.nodes == launches);  // and nothing else
  for (int replay = 0; replay < 2; ++replay) {
    replayed.fill(test::poison);
    replayed_indices.fill(test::poison);
    g.replay(s);
    if (replay == 0) CHECK(call(a, i, options{s}) == cudaSuccess);
    found.look(b, a, s);
    found.look(j, i, s);
    s.finish();
  }
  CHECK(found.total() == 0);
}

/// Calls f(in) for all lengths and counts of D79 that memory is spent on, with rows of many kinds.
template <class T, class F>
void for_each_batch(F f) {
  std::int64_t const most = quick() ? 1 << 18 : 1 << 27;  // elements
  for (std::int64_t const V : {1, 100, 1024, 1025, 2048, 8193, 57345, 151936, 1048579}) {
    if (V > most) continue;
    auto const base = test::to<T>(test::normal1(static_cast<std::size_t>(V), 79));
    buffer<T> const row(base);
    std::int64_t before = 0;
    for (std::int64_t const wanted : {1, 2, quick() ? 33 : 501, 4096}) {
      if (quick() && wanted > 33) continue;
      std::int64_t const B = std::min(wanted, most / V);
      if (B == before) continue;
      before = B;
      INFO("V = " << V << ", B = " << B << ", elements of " << sizeof(T) << " bytes");
      buffer<T> memory(elements(B, V));
      rows<T> const in(memory.data(), B, V);
      fill_rows(in, row.data(), 17, nullptr);
      check(cudaDeviceSynchronize());
      f(rows<T const>(in));
    }
  }
}

template <class T>
void check_captures() {
  for_each_batch<T>([](rows<T const> in) {
    std::int64_t const V = in.length, width = std::min<std::int64_t>(V, 8);
    check_capture(in, V, [=](rows<T> out, auto, options how) {
      return start(in, top_k{50}, renorm<T>{out}, how);
    });
    check_capture(in, V, [=](rows<T> out, auto, options how) {
      return start(in, top_p{0.9f}, renorm<T>{out}, how);
    });
    auto const step = [=](rows<T> out, auto, options how) {
      how.dependent = true;
      if (cudaError_t const e = start(in, top_k{50}, renorm<T>{out}, how)) return e;
      return start(rows<T const>(out), top_p{0.9f}, renorm<T>{out}, how);
    };
    check_capture(in, V, step, 2);
    check_capture(in, width, [=](rows<T> out, rows<std::int32_t> indices, options how) {
      return start(in, top_k{8}, gather<T>{out, indices}, how);
    });
  });
}

}  // namespace

TEST_CASE("D79 a kernel that was never called is captured", "[contract]") {
  watchdog const limit(120, "D79");
  for_each_batch<float>([](rows<float const> in) {
    check_capture(in, 1, [=](rows<float> out, auto, options how) {
      return cutoff::cut(in, top_k{20}, test::untouched{{out.data}}, how);
    });
  });
}

TEMPLATE_TEST_CASE("D79 every call is captured, for every shape", "[contract]", float, __half,
                   __nv_bfloat16) {
  watchdog const limit(300, "D79");
  check_captures<TestType>();
}

TEST_CASE("D104 arrays of k and p are read when the kernel runs", "[contract]") {
  watchdog const limit(60, "D104");
  constexpr std::int64_t B = 64;
  for (std::int64_t const V : {1000, 9001}) {
    CAPTURE(V);
    auto const x = some_rows<float>(B, V);
    buffer<float> const memory(x);
    buffer<float> once(x.size()), twice(x.size());
    rows<float const> const in(memory.data(), B, V);
    rows<float> const out(once.data(), B, V), again(twice.data(), B, V);
    buffer<std::int32_t> k(B);
    buffer<float> p(B);
    top_k const by_k{{k.data(), B}};
    top_p const by_p{{p.data(), B}};
    // As an engine calls: one after the other, the second in place.
    auto const chain = [&](rows<float> to, cudaStream_t s) {
      cudaError_t const e = start(in, by_k, renorm<float>{to}, options{s});
      return e ? e : start(rows<float const>(to), by_p, renorm<float>{to}, options{s});
    };
    stream const s;
    graph g([&](cudaStream_t capturing) { return chain(again, capturing); });
    CHECK(g.nodes == 2);
    for (int round = 0; round < repeated(8); ++round) {
      std::vector<std::int32_t> host_k;
      std::vector<float> host_p, kept(x.size());
      for (int b = 0; b < B; ++b)
        host_k.push_back(k_of(b, round)), host_p.push_back(p_of(b, round));
      check(cutoff::cut(serial{}, rows<float const>(x.data(), B, V), top_k{host_k.data()},
                        renorm<float>{{kept.data(), B, V}}));
      buffer<float> const expected = renormed(kept, B, top_p{host_p.data()});
      set_parameters<<<1, B, 0, s>>>(k.data(), p.data(), round);
      check(cudaGetLastError());
      CHECK(chain(out, s) == cudaSuccess);
      g.replay(s);
      differences found;
      found.look(out, rows(expected.data(), B, V), s);
      found.look(again, rows(expected.data(), B, V), s);
      CHECK(found.total() == 0);
      bool const input_unchanged = same_bytes(memory.get(), x);
      CHECK(input_unchanged);
    }
  }
}

// --- Streams, errors, memory
// ----------------------------------------------------------------------

TEST_CASE("a call runs in the stream that it is given", "[contract]") {
  watchdog const limit(60, "streams");
  constexpr std::int64_t B = 3;
  stream const blocking(cudaStreamDefault), non_blocking(cudaStreamNonBlocking);
  cudaStream_t const streams[] = {nullptr, cudaStreamLegacy, cudaStreamPerThread, blocking,
                                  non_blocking};
  for (std::int64_t const V : {500, 5000, 151936}) {  // a warp, a block, a cluster a row
    auto const x = some_rows<float>(1, V);
    std::vector<float> all;
    for (std::int64_t b = 0; b < B; ++b) all.insert(all.end(), x.begin(), x.end());
    buffer<float> const base(x), by_k = renormed(all, B, top_k{7}),
                                 by_p = renormed(all, B, top_p{0.75f});
    winners const best = gathered(all, B, top_k{7}, 7);
    for (std::size_t i = 0; i < std::size(streams); ++i) {
      INFO("stream " << i << ", V = " << V);
      cudaStream_t const s = streams[i];
      // Only what waits for the late rows, and is waited for, gets the answers right.
      buffer<float> memory(all.size()), out_k(all.size()), out_p(all.size()), values(7 * B);
      buffer<std::int32_t> indices(7 * B);
      rows<float> const in(memory.data(), B, V), k(out_k.data(), B, V), p(out_p.data(), B, V),
          v(values.data(), B, 7);
      rows<std::int32_t> const j(indices.data(), B, 7);
      differences found;
      fill_rows(in, base.data(), 0, s, 3'000'000);
      CHECK(start(rows<float const>(in), top_k{7}, renorm<float>{k}, options{s}) == cudaSuccess);
      CHECK(start(rows<float const>(in), top_p{0.75f}, renorm<float>{p}, options{s}) ==
            cudaSuccess);
      CHECK(start(rows<float const>(in), top_k{7}, gather<float>{v, j}, options{s}) == cudaSuccess);
      found.look(k, rows(by_k.data(), B, V), s);
      found.look(p, rows(by_p.data(), B, V), s);
      found.look(v, rows(best.values.data(), B, 7), s);
      found.look(j, rows(best.indices.data(), B, 7), s);
      check(cudaStreamSynchronize(s));
      CHECK(found.total() == 0);
    }
  }
}

TEST_CASE("a call returns while its stream is busy", "[contract]") {
  if (quick()) return left_out("two kernels at a time");
  watchdog const limit(60, "asynchrony");
  for (std::int64_t const V : {500, 5000, 151936}) {
    CAPTURE(V);
    auto const x = some_rows<float>(1, V);
    buffer<float> const memory(x), expected = renormed(x, 1, top_k{7});
    buffer<float> out(x.size());
    rows<float> const to(out.data(), 1, V);
    rows<float const> const in(memory.data(), 1, V);
    // The first call loads its kernel, for which CUDA may wait.
    CHECK(start(in, top_k{7}, renorm<float>{to}, options{}) == cudaSuccess);
    check(cudaDeviceSynchronize());
    out.fill(test::poison);
    differences found;
    bool waited;
    {
      spinner busy(1);
      CHECK(start(in, top_k{7}, renorm<float>{to}, options{busy.where()}) == cudaSuccess);
      CHECK(cudaStreamQuery(busy.where()) == cudaErrorNotReady);
      (void)cudaGetLastError();
      waited = busy.gave_up();
    }
    CHECK_FALSE(waited);
    found.look(to, rows(expected.data(), 1, V));
    CHECK(found.total() == 0);
  }
}

TEST_CASE("errors of earlier work are neither cleared nor reported", "[contract]") {
  if (quick()) return left_out("it provokes an error of CUDA's");
  for (std::int64_t const V : {500, 5000, 151936}) {
    CAPTURE(V);
    auto const x = some_rows<float>(1, V);
    buffer<float> const memory(x), expected = renormed(x, 1, top_p{0.5f});
    buffer<float> out(x.size());
    rows<float> const to(out.data(), 1, V);
    rows<float const> const in(memory.data(), 1, V);
    check(cudaDeviceSynchronize());
    check(cudaGetLastError());

    void* nothing = nullptr;
    CHECK(cudaMalloc(&nothing, std::size_t{1} << 60) == cudaErrorMemoryAllocation);
    CHECK(start(in, top_p{0.5f}, renorm<float>{to}, options{}) == cudaSuccess);
    CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
    CHECK(start(in, top_p{2.0f}, renorm<float>{to}, options{}) == cudaErrorInvalidValue);
    shape const impossible{96};
    CHECK(start(in, top_p{0.5f}, renorm<float>{to}, options{nullptr, &impossible}) ==
          cudaErrorInvalidConfiguration);
    CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
    CHECK(start(rows<float const>(in.data, 0, V), top_p{0.5f}, renorm<float>{to}, options{}) ==
          cudaSuccess);
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
    CHECK(cudaGetLastError() == cudaSuccess);

    // Nor do its own errors stay behind.
    CHECK(start(in, top_p{2.0f}, renorm<float>{to}, options{}) == cudaErrorInvalidValue);
    CHECK(start(in, top_p{0.5f}, renorm<float>{to}, options{nullptr, &impossible}) ==
          cudaErrorInvalidConfiguration);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    differences found;
    found.look(to, rows(expected.data(), 1, V));
    CHECK(found.total() == 0);
  }
}

TEST_CASE("D63 no call takes or keeps memory", "[contract]") {
  watchdog const limit(120, "D63");
  struct size {
    std::int64_t B, V;
  };
  for (size const n : {size{8192, 843776}, size{1024, 262144}, size{1, 1 << 27}, size{7, 151936},
                       size{300, 1000}}) {
    std::size_t before = 0, after = 0, total = 0;
    check(cudaMemGetInfo(&before, &total));
    INFO("B = " << n.B << ", V = " << n.V);
    if (elements(n.B, n.V) * sizeof(__half) + (std::size_t{1} << 30) > before ||
        (quick() && n.V > 151936)) {
      left_out("a short run, or too little memory");
      continue;
    }
    std::vector<float> row = test::normal4(1 << 17, 63);  // repeated: a long one takes long to make
    for (std::size_t i = 0; i + (1 << 17) < static_cast<std::size_t>(n.V); ++i)
      row.push_back(row[i]);
    row.resize(static_cast<std::size_t>(n.V));
    auto const x = test::to<__half>(row);
    buffer<__half> const base(x), by_p = renormed(x, 1, top_p{0.9f}),
                                  by_k = renormed(x, 1, top_k{100});
    buffer<__half> memory(elements(n.B, n.V));
    rows<__half> const all(memory.data(), n.B, n.V);
    rows<__half const> const in(all);
    differences found;
    // The first calls load their kernels; and another program may take or free some of its own.
    for (int attempt = 0; attempt < 4 && (attempt < 2 || before != after); ++attempt) {
      fill_rows(all, base.data(), 0, nullptr);
      check(cudaDeviceSynchronize());
      check(cudaMemGetInfo(&before, &total));
      CHECK(start(in, top_p{0.9f}, renorm<__half>{all}, options{}) == cudaSuccess);
      check(cudaDeviceSynchronize());
      found.look(all, rows(by_p.data(), 1, n.V));
      fill_rows(all, base.data(), 0, nullptr);
      CHECK(start(in, top_k{100}, renorm<__half>{all}, options{}) == cudaSuccess);
      check(cudaDeviceSynchronize());
      check(cudaMemGetInfo(&after, &total));
      found.look(all, rows(by_k.data(), 1, n.V));
    }
    CHECK(before == after);
    CHECK(found.total() == 0);
  }
}

TEST_CASE("D100 no call changes its input", "[contract]") {
  constexpr std::int64_t B = 8, V = 1000;
  auto const x = some_rows<float>(B, V);
  buffer<float> const memory(x);
  buffer<float> out(x.size()), values(elements(B, 40));
  buffer<std::int32_t> indices(elements(B, 40));
  rows<float> const to(out.data(), B, V), best(values.data(), B, 40);
  rows<float const> const in(memory.data(), B, V);
  for (shape const& s : shapes) {
    if (s.blocks > 1 && !has_clusters()) continue;
    INFO(cutoff::to_string(s));
    options const how{nullptr, &s};
    CHECK(start(in, top_k{3}, renorm<float>{to}, how) == cudaSuccess);
    CHECK(start(in, top_p{0.9f}, renorm<float>{to}, how) == cudaSuccess);
    CHECK(start(in, top_k{40}, gather<float>{best, {indices.data(), B, 40}}, how) == cudaSuccess);
    check(cudaDeviceSynchronize());
    bool const input_unchanged = same_bytes(memory.get(), x);
    CHECK(input_unchanged);
  }
}

TEST_CASE("calls in many streams do not disturb each other", "[contract]") {
  watchdog const limit(60, "many streams");
  constexpr std::size_t n = 8;
  struct lane {
    std::int64_t B, V;
    buffer<float> memory, out, expected;
    stream s;
    lane(std::int64_t count, std::int64_t length, std::vector<float> const& x)
        : B(count),
          V(length),
          memory(x),
          out(x.size()),
          expected(renormed(x, count, top_p{0.8f})) {}
  };
  std::vector<std::unique_ptr<lane>> lanes;
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t const B = i % 2 == 0 ? 3 : 40, V = i < 4 ? 40000 : 800;
    lanes.push_back(std::make_unique<lane>(B, V, some_rows<float>(B, V)));
  }
  differences found;
  for (int round = 0; round < repeated(200); ++round) {
    for (auto const& l : lanes) {
      rows<float> const to(l->out.data(), l->B, l->V);
      fill_rows(to, l->memory.data(), 1, l->s);  // something else
      CHECK(start(rows<float const>(l->memory.data(), l->B, l->V), top_p{0.8f}, renorm<float>{to},
                  options{l->s}) == cudaSuccess);
      found.look(to, rows(l->expected.data(), l->B, l->V), l->s);
    }
  }
  CHECK(found.total() == 0);
}

// --- Races and hangs
// ------------------------------------------------------------------------------

TEST_CASE("D69 peers read complete counts, many times over", "[contract]") {
  watchdog const limit(120, "D69");
  constexpr std::int64_t k = 128;
  std::int64_t const B = quick() ? 2 : 20;
  for (std::int64_t const V : {131072, 256000}) {
    CAPTURE(V);
    // Two batches by turns: what an earlier call wrote is wrong.
    std::vector<float> const x[2] = {permutations(B, V, 1), permutations(B, V, 1000)};
    buffer<float> const memory[2] = {buffer<float>(x[0]), buffer<float>(x[1])};
    winners const best[2] = {gathered(x[0], B, top_k{k}, k), gathered(x[1], B, top_k{k}, k)};
    buffer<float> values(elements(B, k));
    buffer<std::int32_t> indices(elements(B, k));
    rows<float> const v(values.data(), B, k);
    rows<std::int32_t> const i(indices.data(), B, k);
    stream const s;
    differences found;
    for (int trial = 0; trial < repeated(5000); ++trial) {
      int const turn = trial % 2;
      check(start(rows<float const>(memory[turn].data(), B, V), top_k{k}, gather<float>{v, i},
                  options{s}));
      found.look(v, rows(best[turn].values.data(), B, k), s);
      found.look(i, rows(best[turn].indices.data(), B, k), s);
    }
    CHECK(found.total() == 0);
  }
}

TEST_CASE("D72 a call waits for what its stream did before", "[contract]") {
  watchdog const limit(120, "D72");
  constexpr std::int64_t B = 4;
  for (std::int64_t const V : {3000, 20000}) {
    CAPTURE(V);
    auto const x = some_rows<float>(1, V), y = test::make_row("normal4", V, 72);
    buffer<float> const base[2] = {buffer<float>(x), buffer<float>(y)};
    std::vector<float> kept(x.size());
    auto const chained = [&](std::vector<float> const& row) {
      check(cutoff::cut(serial{}, rows<float const>(row.data(), 1, V), top_k{50},
                        renorm<float>{{kept.data(), 1, V}}));
      return renormed(kept, 1, top_p{0.8f});
    };
    buffer<float> const expected[2] = {chained(x), chained(y)};
    buffer<float> memory(elements(B, V)), out(elements(B, V)), traffic(elements(800, V));
    rows<float> const in(memory.data(), B, V), to(out.data(), B, V);
    stream const s, other;
    differences found;
    for (int round = 0; round < repeated(10000); ++round) {
      if (round % 50 == 0) fill_rows(rows<float>(traffic.data(), 800, V), base[0].data(), 0, other);
      fill_rows(in, base[round % 2].data(), 0, s, round % 16 == 0 ? 20'000 : 0);
      options const how{s, nullptr, (round / 2 + round / 16) % 2 == 1};  // paused rounds by turns
      check(start(rows<float const>(in), top_k{50}, renorm<float>{to}, how));
      check(start(rows<float const>(to), top_p{0.8f}, renorm<float>{to}, how));
      found.look(to, rows(expected[round % 2].data(), 1, V), s);
    }
    CHECK(found.total() == 0);
  }
}

TEST_CASE("D74 launches may follow each other at once", "[contract]") {
  std::int64_t const V = quick() ? 9001 : 151936, most = quick() ? 2 : 8;
  auto const x = some_rows<float>(most, V);
  buffer<float> const memory(x), expected = renormed(x, most, top_k{50});
  buffer<float> out(x.size()), traffic(100 * V);
  stream const s, other;
  for (bool const busy : {false, true}) {
    CAPTURE(busy);
    watchdog const limit(60, "D74");
    for (std::int64_t B = 1; B <= most; ++B) {
      rows<float> const to(out.data(), B, V);
      out.fill(test::poison);
      for (int launch = 0; launch < (quick() ? 3 : 50000 / most); ++launch) {
        if (busy && launch % 50 == 0)
          fill_rows(rows<float>(traffic.data(), 100, V), memory.data(), 0, other);
        check(start(rows<float const>(memory.data(), B, V), top_k{50}, renorm<float>{to},
                    options{s}));
      }
      s.finish();
      differences found;
      found.look(to, rows(expected.data(), B, V));
      CHECK(found.total() == 0);
    }
  }
}

TEST_CASE("D75 a call ends though others hold half of the device", "[contract]") {
  if (quick()) return left_out("two kernels at a time");
  constexpr std::int32_t k = 1024;
  shape const one_block{1024};
  for (std::int64_t const V : {1048579, 8388608}) {
    auto const x = test::normal1(static_cast<std::size_t>(V), 75);
    buffer<float> const base(x), expected = renormed(x, 1, top_k{k});
    winners const best = gathered(x, 1, top_k{k}, k);
    for (std::int64_t const B : {1, 64}) {
      INFO("V = " << V << ", B = " << B);
      buffer<float> memory(elements(B, V)), out(elements(B, V)), values(elements(B, k));
      buffer<std::int32_t> indices(elements(B, k));
      rows<float> const all(memory.data(), B, V), to(out.data(), B, V), v(values.data(), B, k);
      rows<std::int32_t> const i(indices.data(), B, k);
      rows<float const> const in(all);
      stream const s;
      options const how{s, &one_block};
      auto const call = [&] {
        CHECK(start(in, top_k{k}, renorm<float>{to}, how) == cudaSuccess);
        CHECK(start(in, top_k{k}, gather<float>{v, i}, how) == cudaSuccess);
      };
      differences found;
      fill_rows(all, base.data(), 0, nullptr);
      check(cudaDeviceSynchronize());
      call();  // loads the kernels, for which CUDA may wait
      check(cudaDeviceSynchronize());
      out.fill(test::poison);
      values.fill(test::poison);
      indices.fill(test::poison);
      bool too_late;
      {
        watchdog const limit(10, "D75");
        spinner const half(multiprocessors() / 2);
        call();
        s.finish();
        too_late = half.gave_up();
      }
      CHECK_FALSE(too_late);
      found.look(to, rows(expected.data(), 1, V));
      found.look(v, rows(best.values.data(), 1, k));
      found.look(i, rows(best.indices.data(), 1, k));
      CHECK(found.total() == 0);
    }
  }
}

TEST_CASE("shared memory may hold anything before a call", "[contract]") {
  watchdog const limit(120, "D66");
  int const bytes = quick() ? 1 << 14 : largest_shared_memory();
  check(cudaFuncSetAttribute(spoil_shared_memory, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             bytes));
  auto const spoil = [&](cudaStream_t s) {
    auto const blocks = static_cast<unsigned>(quick() ? 4 : 2 * multiprocessors()),
               n = static_cast<unsigned>(bytes);
    spoil_shared_memory<<<blocks, 1024, n, s>>>(n);
    check(cudaGetLastError());
  };
  constexpr std::int64_t most = 64;
  for (std::int64_t const V : {1, 2, 3, 5, 25, 31, 33, 5000, 20000}) {
    auto const x = permutations(most, V, 66);
    buffer<float> const memory(x);
    for (std::int64_t const k : {std::int64_t{1}, std::int64_t{3}, V}) {
      if (k > V) continue;
      INFO("V = " << V << ", k = " << k);
      buffer<float> const kept = renormed(x, most, top_k{k});
      winners const best = gathered(x, most, top_k{k}, k);
      buffer<float> out(x.size()), values(elements(most, k));
      buffer<std::int32_t> indices(elements(most, k));
      stream const s;
      differences found;
      int const trials = repeated(V <= 33 ? 1000 : 100);
      for (int trial = 0; trial < trials; ++trial) {
        std::int64_t const B = 1 + trial % most;
        rows<float const> const in(memory.data(), B, V);
        rows<float> const to(out.data(), B, V), v(values.data(), B, k);
        rows<std::int32_t> const i(indices.data(), B, k);
        spoil(s);
        check(start(in, top_k{k}, renorm<float>{to}, options{s}));
        spoil(s);
        check(start(in, top_k{k}, gather<float>{v, i}, options{s}));
        found.look(to, rows(kept.data(), B, V), s);
        found.look(v, rows(best.values.data(), B, k), s);
        found.look(i, rows(best.indices.data(), B, k), s);
      }
      CHECK(found.total() == 0);
    }
  }
}

TEST_CASE("D81 two host threads call with unlike shapes", "[contract]") {
  watchdog const limit(120, "D81");
  struct size {
    std::int64_t B, V;
  };
  size const sizes[2] = {{4, 1000}, {1, 151936}};
  std::vector<float> const x[2] = {some_rows<float>(4, 1000), some_rows<float>(1, 151936)};
  buffer<float> const memory[2] = {buffer<float>(x[0]), buffer<float>(x[1])};
  buffer<float> const expected[2] = {renormed(x[0], 4, top_k{50}), renormed(x[1], 1, top_k{50})};
  differences found;
  std::atomic<int> failures = 0;
  auto const alternate = [&](int first) {  // no assertions here: they are not thread-safe
    try {
      buffer<float> const out[2] = {buffer<float>(x[0].size()), buffer<float>(x[1].size())};
      stream const s;
      for (int round = 0; round < repeated(10000); ++round) {
        int const which = (first + round) % 2;
        auto const [B, V] = sizes[which];
        rows<float> const to(out[which].data(), B, V);
        failures += start(rows<float const>(memory[which].data(), B, V), top_k{50},
                          renorm<float>{to}, options{s}) != cudaSuccess;
        if (round % 100 < 2) found.look(to, rows(expected[which].data(), B, V), s);
      }
      s.finish();
    } catch (...) {
      ++failures;
    }
  };
  std::thread other(alternate, 1);
  alternate(0);
  other.join();
  CHECK(failures == 0);
  CHECK(found.total() == 0);
}

TEST_CASE("D80, D81 two devices", "[contract]") {
  int devices = 0, home = 0;
  check(cudaGetDeviceCount(&devices));
  if (devices < 2) return left_out("it needs two GPUs");
  check(cudaGetDevice(&home));
  constexpr std::int64_t B = 2, V = 151936;
  auto const x = some_rows<float>(B, V);
  auto const there = (home + 1) % devices;
  auto const on = [&](int id) {  // the large shape there
    check(cudaSetDevice(id));
    buffer<float> const memory(x), expected = renormed(x, B, top_k{50});
    buffer<float> out(x.size());
    rows<float> const to(out.data(), B, V);
    stream const s;
    differences found;
    CHECK(start(rows<float const>(memory.data(), B, V), top_k{50}, renorm<float>{to}, options{s}) ==
          cudaSuccess);
    found.look(to, rows(expected.data(), B, V), s);
    CHECK(found.total() == 0);
    int current = -1;
    check(cudaGetDevice(&current));
    CHECK(current == id);
  };
  on(home);
  on(there);

  // Data and stream of another device than the current one: right, or an error; never moved.
  buffer<float> const memory(x), expected = renormed(x, B, top_k{50});
  buffer<float> out(x.size());
  rows<float> const to(out.data(), B, V);
  {
    stream const s;
    check(cudaSetDevice(home));
    cudaError_t const e =
        start(rows<float const>(memory.data(), B, V), top_k{50}, renorm<float>{to}, options{s});
    int current = -1;
    check(cudaGetDevice(&current));
    CHECK(current == home);
    (void)cudaGetLastError();
    check(cudaSetDevice(there));
    s.finish();
    differences found;
    found.look(to, rows(expected.data(), B, V), s);
    bool const right = found.total() == 0;
    CHECK((e != cudaSuccess || right));
  }
  check(cudaSetDevice(home));
}

// --- Launch shapes
// --------------------------------------------------------------------------------

namespace {

/// One row at every position of a batch, by the shape that is chosen and by each that is forced.
template <class T, class Rule>
void check_shapes(Rule rule, std::int64_t B, std::int64_t V) {
  for (char const* const name : {"normal4", "with_nan_and_infinities", "two_values"}) {
    INFO(name << ", B = " << B << ", V = " << V << ", elements of " << sizeof(T) << " bytes");
    auto const x = test::to<T>(test::make_row(name, static_cast<std::size_t>(V), 1));
    buffer<T> const base(x), expected = renormed(x, 1, rule);
    buffer<T> memory(elements(B, V)), out(elements(B, V));
    rows<T> const all(memory.data(), B, V), to(out.data(), B, V);
    fill_rows(all, base.data(), 0, nullptr);
    auto const check_shape = [&](shape const* s) {
      INFO("shape: " << (s ? cutoff::to_string(*s) : "chosen"));
      out.fill(test::poison);
      differences found;
      CHECK(start(rows<T const>(all), rule, renorm<T>{to}, options{nullptr, s}) == cudaSuccess);
      found.look(to, rows(expected.data(), 1, V));
      CHECK(found.total() == 0);
    };
    check_shape(nullptr);
    for (shape const& s : shapes) {
      if (s.blocks == 1 || has_clusters()) check_shape(&s);
    }
  }
}

template <class T>
void check_shapes() {
  std::int64_t const V =
      quick() ? 4099 : 151937;  // odd, so that no two neighbours are aligned alike
  for (std::int64_t const B : {1, 2, 7, 132, 133}) {
    if (quick() && B > 7) continue;
    check_shapes<T>(top_k{50}, B, V);
    check_shapes<T>(top_p{0.95f}, B, V);
  }
  if (quick()) return;
  check_shapes<T>(top_k{50}, 1024, 4099);
  check_shapes<T>(top_p{0.95f, cutoff::ties::lowest_index}, 1024, 4099);
}

}  // namespace

TEST_CASE("the same row gives the same bytes in any batch, at any place, by any shape",
          "[contract]") {
  watchdog const limit(300, "shapes");
  check_shapes<float>();
  check_shapes<__half>();
  check_shapes<__nv_bfloat16>();
}

TEST_CASE("winners are gathered alike by every shape", "[contract]") {
  std::int64_t const k = GENERATE(50, 1000);  // few enough to be held, or more
  std::int64_t const V = quick() ? 4099 : 151937, B = std::size(test::makers);
  auto const x = some_rows<float>(B, V);
  buffer<float> const memory(x);
  buffer<float> values(elements(B, k));
  buffer<std::int32_t> indices(elements(B, k));
  winners const best = gathered(x, B, top_k{k}, k);
  rows<float> const v(values.data(), B, k);
  rows<std::int32_t> const i(indices.data(), B, k);
  for (shape const& s : shapes) {
    if (s.blocks > 1 && !has_clusters()) continue;
    INFO(cutoff::to_string(s));
    values.fill(test::poison);
    indices.fill(test::poison);
    differences found;
    CHECK(start(rows<float const>(memory.data(), B, V), top_k{k}, gather<float>{v, i},
                options{nullptr, &s}) == cudaSuccess);
    found.look(v, rows(best.values.data(), B, k));
    found.look(i, rows(best.indices.data(), B, k));
    CHECK(found.total() == 0);
  }
  // What needs no masses has the kernel of the longest rows for any length.
  for (shape const& s : {shape{1024}, shape{1024, 8}}) {
    if (s.blocks > 1 && !has_clusters()) continue;
    INFO(cutoff::to_string(s));
    values.fill(test::poison);
    differences found;
    CHECK(start(rows<float const>(memory.data(), B, V), top_k{k}, gather<float>{v, i},
                options{nullptr, &s}) == cudaSuccess);
    found.look(v, rows(best.values.data(), B, k));
    CHECK(found.total() == 0);
  }
}

namespace {

/// Rows of every maker, once with and once without a shift of the output that leaves it aligned
/// otherwise than the input, and in place; by every shape that keeps a record of tiles.
template <class T, class Rule>
void check_tiles(std::vector<T> const& x, std::int64_t V, Rule rule,
                 std::vector<shape> const& shapes = {{320}, {320, 2}, {320, 7}, {320, 8}}) {
  std::int64_t const B = static_cast<std::int64_t>(x.size()) / V;
  std::vector<T> expected(x.size());
  check(cutoff::cut(cutoff::serial{}, rows<T const>(x.data(), B, V), rule,
                    renorm<T>{rows<T>(expected.data(), B, V)}));
  for (shape const& s : shapes) {
    if (s.blocks > 1 && !has_clusters()) continue;
    if (quick() && s.blocks % 2 == 0) continue;
    for (int const shift : {0, 1, -1}) {  // -1: in place
      if (quick() && shift == 1) continue;
      INFO(cutoff::to_string(s) << ", V = " << V << ", output shifted by " << shift);
      buffer<T> memory(x), other(x.size() + 1);
      T* const to = shift < 0 ? memory.data() : other.data() + shift;
      CHECK(start(rows<T const>(memory.data(), B, V), rule, renorm<T>{rows<T>(to, B, V)},
                  options{nullptr, &s}) == cudaSuccess);
      check(cudaDeviceSynchronize());
      auto const got =
          shift < 0 ? memory.get() : other.get(static_cast<std::size_t>(shift), x.size());
      for (std::int64_t b = 0; b < B; ++b) {
        auto const first = static_cast<std::size_t>(b * V), n = static_cast<std::size_t>(V);
        bool const alike = std::memcmp(&got[first], &expected[first], n * sizeof(T)) == 0;
        INFO("row " << b);
        CHECK(alike);
      }
    }
  }
}

}  // namespace

// Lengths around a tile of 64 bytes, around what a block and a cluster read at a time, and odd ones,
// so that rows begin at every alignment.
TEMPLATE_TEST_CASE("rows with a record of tiles are cut like others", "[contract]", float, __half,
                   __nv_bfloat16) {
  watchdog const limit(200, "tiles");
  using T = TestType;
  constexpr std::int64_t tile = 64 / sizeof(T);
  for (std::int64_t const V : {std::int64_t{1}, tile - 1, tile, tile + 1, 8 * tile + 3, 4099l,
                               128 * tile + 1, 32000l, 151937l}) {
    if (quick() && V != 1 && V != tile + 1 && V != 4099) continue;
    auto const x = some_rows<T>(std::size(test::makers), V);
    for (int const k : {1, 50, 3000}) {
      check_tiles(x, V, top_k{k});
      if (k == 50) check_tiles(x, V, top_k{k, cutoff::ties::lowest_index});
    }
    for (float const p : {0.1f, 0.5f, 0.95f, 0.999f}) check_tiles(x, V, top_p{p});
    check_tiles(x, V, top_p{0.9f, cutoff::ties::lowest_index});
  }
}

// What lies above the first guess is the target to the unit, and the guess has more keys than the list.
TEST_CASE("a mass that is met exactly above a wrong guess, by every shape", "[contract]") {
  constexpr std::int64_t V = 16384, B = std::size(test::makers);
  std::vector<__half> halves(V * B);
  std::vector<float> floats(V * B);
  for (std::uint32_t i = 0; i < V * B; ++i) {
    std::uint32_t const at = i % V;
    halves[i] = cutoff::from_bits<__half>(at % 100 == 0 && at < 15000 ? 847 : 512 + at % 16);
    floats[i] = at == 5000 ? 0.28f : at == 9000 ? 1e-40f : 0.0f;
  }
  check_tiles(halves, V, top_p{127050.0f / 16777216.0f});
  check_tiles(floats, V, top_p{0.28f});
}

// The guess takes a bin's keys to lie evenly. Here they lie lower, or higher, or are more than the list
// has room for where the guess is.
TEMPLATE_TEST_CASE("rows whose entries crowd in a part of a bin, by every shape", "[contract]",
                   float, __half, __nv_bfloat16) {
  watchdog const limit(120, "crowded");
  constexpr std::uint32_t bin = cutoff::format<TestType>::hidden / 8;  // keys
  for (std::int64_t const V : {32000, 200000}) {
    if (quick() && V != 32000) continue;
    std::uint32_t const spread = V == 32000 ? bin / 64 + 1 : 1;
    std::vector<TestType> x;
    double above = 0, in = 0;
    for (std::uint32_t const place : {0u, bin / 2, bin - bin / 16 - 1}) {
      auto const row = test::crowded<TestType>(static_cast<std::size_t>(V), place, spread);
      x.insert(x.end(), row.begin(), row.end());
      for (std::size_t i = 0; place == bin / 2 && i < row.size(); ++i) {
        if (i % 10 == 7) above += static_cast<double>(test::from(row[i]));
        if (i % 10 == 3) in += static_cast<double>(test::from(row[i]));
      }
    }
    for (double const part : {0.02, 0.3, 0.5, 0.9}) {
      if (quick() && part != 0.5) continue;
      check_tiles(x, V, top_p{static_cast<float>(above + part * in)});
    }
    check_tiles(x, V, top_k{static_cast<std::int32_t>(V / 7), cutoff::ties::lowest_index});
  }
}

// Much stays of these, as a sample tells too, but not where.
TEST_CASE("rows that a sample is wrong about, by every shape", "[contract]") {
  watchdog const limit(120, "misleading");
  for (std::int64_t const V : {65536, 151937}) {
    if (quick() && V != 65536) continue;
    std::vector<float> x;
    for (test::lie const how : test::lies) {
      auto const row = test::misleading(static_cast<std::size_t>(V), how, 2);
      x.insert(x.end(), row.begin(), row.end());
    }
    auto const right = test::normal1(static_cast<std::size_t>(V), 2);
    x.insert(x.end(), right.begin(), right.end());
    for (float const p : {0.6915f, 0.9f, 0.993f})
      check_tiles(x, V, top_p{p}, {{320}, {320, 2}, {320, 3}});
  }
}

TEST_CASE("D83 a shape that cannot be launched is an error, and nothing is written", "[contract]") {
  auto const check_refused = [](std::int64_t B, std::int64_t V, std::vector<shape> const& refused) {
    buffer<float> memory(elements(B, V)), out(elements(B, V));
    memory.fill(0x3c);
    rows<float const> const in(memory.data(), B, V);
    auto const before = out.get();
    for (shape const& s : refused) {
      INFO(cutoff::to_string(s) << ", V = " << V);
      CHECK(start(in, top_p{0.5f}, renorm<float>{{out.data(), B, V}}, options{nullptr, &s}) ==
            cudaErrorInvalidConfiguration);
      check(cudaDeviceSynchronize());
      CHECK(cudaPeekAtLastError() == cudaSuccess);
    }
    bool const untouched_output = same_bytes(out.get(), before);
    CHECK(untouched_output);
  };
  std::vector<shape> refused = {{},       {512},    {320, 9}, {320, 0}, {320, -1}, {2048},   {-320},
                                {256, 0}, {256, 2}, {0, 1},   {128},    {1024},    {1024, 8}};
  if (!has_clusters()) refused.insert(refused.end(), {{320, 2}, {320, 8}});
  check_refused(3, 1000, refused);
  // Masses of longer rows have no kernel of these shapes.
  check_refused(1, (1 << 20) + 1, {{256}, {320}, {320, 2}, {1024, 9}});
}

namespace {

/// Counts the quotients that the fast way rounds otherwise: of random values it serves, and of those
/// whose significands are near a power of two on either side.
__global__ void compare_quotients(std::uint32_t* unlike) {
  auto const value = [](std::uint64_t word) {
    auto const random = static_cast<std::uint32_t>(word >> 41), edge = random % 16;
    std::uint32_t const significand = word % 3 == 0   ? random
                                      : word % 3 == 1 ? edge
                                                      : (1u << 23) - 1 - edge;
    return cutoff::from_bits<float>((67 + static_cast<std::uint32_t>(word >> 8) % 120) << 23 |
                                    significand);
  };
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < 1u << 26;
       i += gridDim.x * blockDim.x) {
    std::uint64_t a = (i + 1) * 0x9e3779b97f4a7c15u, b = (a ^ a >> 29) * 0xbf58476d1ce4e5b9u;
    float const x = value(a ^ a >> 32), d = value(b ^ b >> 31);
    cutoff::divisor const by{d, false};
    if (cutoff::to_bits(cutoff::fast_quotient(by)(x)) != cutoff::to_bits(cutoff::quotient(x, by)))
      atomicAdd(unlike, 1u);
  }
}

}  // namespace

TEST_CASE("the fast quotient has the bits of the division", "[contract]") {
  buffer<std::uint32_t> unlike(std::vector<std::uint32_t>{0});
  compare_quotients<<<quick() ? 4 : 1024, 256>>>(unlike.data());
  check(cudaGetLastError());
  CHECK(unlike.get()[0] == 0);
}

TEST_CASE("D84 every kernel of a call fits a block of any device", "[contract]") {
  auto const check_kernel = [](auto kernel, int threads) {
    cudaFuncAttributes built;
    check(cudaFuncGetAttributes(&built, kernel));
    INFO(threads << " threads");
    CHECK(built.numRegs * threads <= 65536);
    CHECK(built.sharedSizeBytes <= 48 * 1024);
    CHECK(built.maxThreadsPerBlock >= threads);
  };
  using job =
      cutoff::job<std::uint64_t, float, cutoff::domain::probabilities, top_k, test::untouched>;
  namespace forms = cutoff::forms;
  check_kernel(cutoff::kernel<forms::small, job>, forms::small::threads);
  check_kernel(cutoff::kernel<forms::tiles, job>, forms::tiles::threads);
  check_kernel(cutoff::kernel<forms::large, job>, forms::large::threads);
}

TEST_CASE("rows of more than 2^20 entries give serial's bytes by the shapes they have",
          "[contract]") {
  watchdog const limit(60, "long rows");
  constexpr std::int64_t B = 3, V = (1 << 20) + 3;
  if (quick()) return left_out("long rows");
  auto const x = some_rows<float>(B, V);
  buffer<float> const memory(x), by_k = renormed(x, B, top_k{1000}),
                                 by_p = renormed(x, B, top_p{0.9f});
  buffer<float> out(x.size());
  rows<float> const to(out.data(), B, V);
  rows<float const> const in(memory.data(), B, V);
  for (shape const& s : {shape{1024}, shape{1024, 3}, shape{1024, 8}}) {
    if (s.blocks > 1 && !has_clusters()) continue;
    INFO(cutoff::to_string(s));
    differences found;
    CHECK(start(in, top_k{1000}, renorm<float>{to}, options{nullptr, &s}) == cudaSuccess);
    found.look(to, rows(by_k.data(), B, V));
    CHECK(start(in, top_p{0.9f}, renorm<float>{to}, options{nullptr, &s}) == cudaSuccess);
    found.look(to, rows(by_p.data(), B, V));
    CHECK(found.total() == 0);
  }
}
