#include "cases.inc"

// Cases that need a device, or the memory of one.

namespace {

bool fits(std::size_t bytes) {
  std::size_t available = 0, total = 0;
  check(cudaMemGetInfo(&available, &total));
  if (full && bytes + (std::size_t{1} << 30) < available) return true;
  WARN("left out: a short run, or " << bytes << " bytes of device memory are not free");
  return false;
}

__global__ void fill_shared_memory() {
  __shared__ volatile std::uint32_t word[12 * 1024];  // 48 KiB
  for (unsigned i = threadIdx.x; i < 12 * 1024; i += blockDim.x) word[i] = 0xffffffff;
}

__global__ void choose(std::int32_t* k, float* p) {
  for (long long start = clock64(); clock64() - start < 10'000'000;)
    continue;  // long after the calls are made
  if (k) k[threadIdx.x] = 1 + int(threadIdx.x);
  if (p) p[threadIdx.x] = 0.1f * float(1 + threadIdx.x);
}

}  // namespace

TEST_CASE("D61 row offsets beyond 2^32", "[cases]") {
  using T = __half;
  constexpr std::int64_t B = 32769, V = 131072;
  if (!fits(2 * sizeof(T) * B * V)) return;
  std::vector<T> const one{rounded<T>(1.0f)};
  buffer<T> in(B * V), best(B);
  buffer<T> const out(B * V);
  buffer<std::int32_t> const index(B);
  in.fill(0x10);  // all entries 0x1010
  in.put(one, 1);
  in.put(one, 32768 * V + 99999);
  rows<T const> const from(in.data(), B, V);
  succeed(from, top_k{1}, gather{rows(best.data(), B, 1), rows(index.data(), B, 1)});
  ints expected_index(B);
  expected_index[0] = 1, expected_index[32768] = 99999;
  CHECK(index.get() == expected_index);

  succeed(from, top_k{1}, renorm{rows(out.data(), B, V)});
  std::vector<T> hot(V, rounded<T>(0.0f)), equal(V, rounded<T>(0x1p-17f));
  for (std::int64_t b : {1, 16384, 32767})
    CHECK(difference(out.get(std::size_t(b * V), V), equal) == "");
  hot[1] = one[0];
  CHECK(difference(out.get(0, V), hot) == "");
  hot[1] = rounded<T>(0.0f), hot[99999] = one[0];
  CHECK(difference(out.get(32768 * std::size_t(V), V), hot) == "");
}

TEST_CASE("D62 row offsets beyond 2^31", "[cases]") {
  using T = __half;
  constexpr std::int64_t B = 14200, V = 151936;
  if (!fits(2 * sizeof(T) * B * V)) return;
  std::vector<T> const one{rounded<T>(1.0f)};
  buffer<T> in(B * V), best(B);
  buffer<T> const out(B * V);
  buffer<std::int32_t> const index(B);
  ints place;
  in.fill(0);
  for (std::int64_t b = 0; b < B; ++b) {
    place.push_back(std::int32_t(7919 * b % V));
    in.put(one, std::size_t(b * V + place.back()));
  }
  rows<T const> const from(in.data(), B, V);
  auto const check_hot = [&](auto rule) {
    succeed(from, rule, renorm{rows(out.data(), B, V)});
    std::vector<T> hot(V, rounded<T>(0.0f));
    for (std::int64_t b = B - 1; b >= 0; b -= b > 14000 ? 20 : 971) {
      hot[std::size_t(place[std::size_t(b)])] = one[0];
      CHECK(difference(out.get(std::size_t(b * V), V), hot) == "");
      hot[std::size_t(place[std::size_t(b)])] = rounded<T>(0.0f);
    }
  };
  check_hot(top_k{1});
  check_hot(top_p{0.9f});
  succeed(from, top_k{1}, gather{rows(best.data(), B, 1), rows(index.data(), B, 1)});
  CHECK(index.get() == place);
  CHECK(difference(best.get(), std::vector<T>(B, one[0])) == "");
}

TEST_CASE("D63 a call takes no memory", "[cases]") {
  constexpr std::int64_t B = 1024, V = 262144;
  if (!fits(sizeof(float) * B * V)) return;
  buffer<float> const x(B * V);
  rows<float> const all(x.data(), B, V);
  std::size_t before = 0, after = 0, total = 0;
  rows<float> const few(x.data(), 1, V);
  succeed(rows<float const>(few), top_k{50}, renorm{few});  // loads the kernels, both shapes
  succeed(rows<float const>(all), top_k{50}, renorm{all});
  check(cudaMemGetInfo(&before, &total));
  succeed(rows<float const>(all), top_k{1000}, renorm{all});
  check(cudaMemGetInfo(&after, &total));
  CHECK(before == after);
}

TEST_CASE("D66 tiny slices, after a kernel that fills shared memory", "[cases]") {
  for (std::int64_t V : {1, 2, 3, 5, 25, 31, 33}) {
    auto const place = permutation(std::size_t(V), 66);
    auto const x = row_of(V, [&](std::int64_t i) { return place[std::size_t(i)]; });
    std::int64_t const k = std::min<std::int64_t>(3, V), B = 1000;
    ints const best = repeated(where(x, [&](float y) { return y >= float(V - k); }), B);
    int wrong = 0;
    for (int i = 0; i < sized(150, 2); ++i) {
      fill_shared_memory<<<1024, 256>>>();
      wrong += gathered(repeated(x, B), B, top_k{std::int32_t(k)}, k).indices != best;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("D82 every device gives the same bytes", "[cases]") {
  constexpr std::int64_t B = 64, V = 151936;
  int devices = 0, home = 0;
  check(cudaGetDeviceCount(&devices));
  check(cudaGetDevice(&home));
  if (devices < 2) WARN("one device only");
  std::vector<float> x;
  for (std::uint32_t b = 0; b < 4; ++b) {
    auto const row = normal4(V, b);
    x.insert(x.end(), row.begin(), row.end());
  }
  x = repeated(x, B / 4);
  auto const narrow = to<__nv_bfloat16>(x);
  auto const k = renormed(x, B, top_k{50}), p = renormed(x, B, top_p{0.9f});
  auto const narrow_k = renormed(narrow, B, top_k{50}), narrow_p = renormed(narrow, B, top_p{0.9f});
  for (int id = 0; id < devices; ++id) {
    check(cudaSetDevice(id));
    CHECK(difference(renormed(x, B, top_k{50}), k, V) == "");
    CHECK(difference(renormed(x, B, top_p{0.9f}), p, V) == "");
    CHECK(difference(renormed(narrow, B, top_k{50}), narrow_k, V) == "");
    CHECK(difference(renormed(narrow, B, top_p{0.9f}), narrow_p, V) == "");
  }
  check(cudaSetDevice(home));
}

TEST_CASE("D104 k and p may be written just before, on the device", "[cases]") {
  constexpr std::int64_t B = 8, V = 5000;
  floats x;
  for (std::uint32_t b = 0; b < B; ++b) {
    auto const row = normal1(V, b);
    x.insert(x.end(), row.begin(), row.end());
  }
  ints host_k;
  floats host_p;
  for (int b = 0; b < B; ++b) host_k.push_back(1 + b), host_p.push_back(0.1f * float(1 + b));
  buffer<std::int32_t> const k(ints(B, 99)), same_k(host_k);
  buffer<float> const p(floats(B, 0.5f)), same_p(host_p);
  auto const by_k = renormed(x, B, top_k{same_k.data()}),
             by_p = renormed(x, B, top_p{same_p.data()});

  placed<float> in(placed<float>::input, B, V, {}), out(placed<float>::output, B, V, {});
  in.put(x);
  choose<<<1, B>>>(k.data(), nullptr);
  succeed(rows<float const>(in.rows()), top_k{k.data()}, renorm{out.rows()});
  CHECK(difference(out.get(), by_k, V) == "");
  choose<<<1, B>>>(nullptr, p.data());
  succeed(rows<float const>(in.rows()), top_p{p.data()}, renorm{out.rows()});
  CHECK(difference(out.get(), by_p, V) == "");
}
