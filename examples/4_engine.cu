// A decode step as an inference engine runs it: top-k, then top-p, in place, with one k and one p
// per request in device memory, captured once in a CUDA graph and replayed while requests change.
#include <thrust/device_vector.h>

#include <algorithm>
#include <cstdio>
#include <cutoff/cutoff.cuh>
#include <vector>

using namespace cutoff;

cudaError_t step(rows<float> probs, per_row<std::int32_t> k, per_row<float> p,
                 cudaStream_t stream) {
  if (cudaError_t const e = top_k_renorm(probs, probs, k, stream)) return e;
  return top_p_renorm(probs, probs, p, stream);
}

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) || devices == 0) return std::puts("no GPU: skipped"), 77;
  std::int64_t const B = 5, V = 50257;
  thrust::device_vector<float> probs(B * V), p(B);
  thrust::device_vector<std::int32_t> k(B);
  rows const batch(probs.data().get(), B, V);

  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  bool right = !cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) &&
               !cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  right &= !step(batch, {k.data().get(), B}, {p.data().get(), B}, stream);
  right &= !cudaStreamEndCapture(stream, &graph) && !cudaGraphInstantiate(&replay, graph, 0);

  for (int token = 0; right && token < 3; ++token) {
    std::vector<float> x(B * V), row_p(B), expected(B * V), got(B * V);
    std::vector<std::int32_t> row_k(B);
    for (std::int64_t b = 0; b < B; ++b) {  // requests come, go and change what they ask for
      row_k[b] = b == 3 ? 0 : 10 + 40 * token + int(b);  // 0 and -1 mean off
      row_p[b] = b == 4 ? 1.0f : 0.5f + 0.1f * float(token + b % 3);
      for (std::int64_t i = 0; i < V; ++i)
        x[b * V + i] = float((i * 7919 + b + token) % V + 1) * 0x1p-31f;
    }
    thrust::copy(x.begin(), x.end(), probs.begin());
    thrust::copy(row_k.begin(), row_k.end(), k.begin());
    thrust::copy(row_p.begin(), row_p.end(), p.begin());
    right = !cudaGraphLaunch(replay, stream) && !cudaStreamSynchronize(stream);
    thrust::copy(probs.begin(), probs.end(), got.begin());

    rows const out(expected.data(), B, V);
    right &= !cut(serial{}, rows(x.data(), B, V), top_k{row_k.data()}, renorm{out});
    right &= !cut(serial{}, out, top_p{row_p.data()}, renorm{out}) && got == expected;
    for (std::int64_t b = 0; b < B; ++b)
      std::printf("token %d, request %d: k %3d, p %.1f, %5td stay\n", token, int(b), row_k[b],
                  row_p[b], V - std::count(&got[b * V], &got[b * V] + V, 0.0f));
  }
  right &= !cudaGraphExecDestroy(replay) && !cudaGraphDestroy(graph) && !cudaStreamDestroy(stream);
  std::puts(right ? "as on the host, bit for bit" : "wrong");
  return right ? 0 : 1;
}
