// A pivot inside a kernel of your own: one warp a row finds where the row's mass reaches p, then
// does something that the library has no sink for, here the entropy of what stays.
#include <thrust/device_vector.h>

#include <cmath>
#include <cstdio>
#include <cutoff/cutoff.cuh>
#include <vector>

using namespace cutoff;

__global__ void nucleus_entropy(float const* probs, int B, int V, float p, float* entropy,
                                float* pivot) {
  __shared__ warp::scratch scratch[4];  // one for each warp of the block
  warp const g(scratch[threadIdx.x / 32]);
  int const b = blockIdx.x * 4 + threadIdx.x / 32;
  if (b >= B) return;  // the whole warp leaves
  row<float> const r{probs + std::int64_t(b) * V, std::uint32_t(V)};
  mass<float, std::uint64_t> const m(largest_key(g, r));
  auto const t = radix_pivot(g, r, m, m.target(p));
  float const sum = m.divide_by(t.above + t.at).value;  // mass of what stays
  float mine = 0;
  sweep(g, r, [&](std::uint32_t, float x) {
    if (r.key(x) >= t.key && x > 0) mine -= x / sum * logf(x / sum);
  });
  for (int lane = 16; lane > 0; lane /= 2) mine += __shfl_xor_sync(~0u, mine, lane);
  if (g.rank() == 0) entropy[b] = mine, pivot[b] = from_key<float>(t.key);
}

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) || devices == 0) return std::puts("no GPU: skipped"), 77;
  int const B = 9, V = 32000;
  float const p = 0.9f;
  std::vector<float> x(B * V), host_pivot(B);
  for (int b = 0; b < B; ++b) {  // Zipf, from nearly flat to steep
    double sum = 0;
    for (int i = 0; i < V; ++i) sum += std::pow(i + 1.0, -0.2 * b);
    for (int i = 0; i < V; ++i) x[b * V + i] = float(std::pow(i + 1.0, -0.2 * b) / sum);
  }
  thrust::device_vector<float> d_x = x, d_entropy(B), d_pivot(B);
  nucleus_entropy<<<(B + 3) / 4, 128>>>(d_x.data().get(), B, V, p, d_entropy.data().get(),
                                        d_pivot.data().get());
  if (cudaDeviceSynchronize()) return std::puts("the kernel failed"), 1;

  bool right = !cut(serial{}, rows(x.data(), B, V), top_p{p}, pivots{host_pivot.data()});
  for (int b = 0; b < B; ++b) {
    double sum = 0, entropy = 0;
    for (int i = 0; i < V; ++i) sum += x[b * V + i] >= host_pivot[b] ? x[b * V + i] : 0;
    for (int i = 0; i < V; ++i)
      if (double const q = x[b * V + i] / sum; x[b * V + i] >= host_pivot[b])
        entropy -= q * std::log(q);
    std::printf("row %d: pivot %.3e, entropy of the nucleus %.4f\n", b, float(d_pivot[b]),
                float(d_entropy[b]));
    right &= d_pivot[b] == host_pivot[b] && std::abs(d_entropy[b] - entropy) < 1e-3 * (1 + entropy);
  }
  return right ? 0 : 1;
}
