// An engine's translation unit. Without a GPU it is enough that it compiles and links.

#include <cstdio>
#include <cutoff/cutoff.cuh>

bool device_call(float const (&probs)[4], float const (&expected)[4]) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
    std::puts("device: no GPU, only built");
    return true;
  }
  float *row, out[4];  // cut in place
  if (cudaMalloc(&row, sizeof out) != cudaSuccess) return false;
  cudaMemcpy(row, probs, sizeof out, cudaMemcpyDefault);
  cutoff::rows<float> const rows(row, 1, 4);
  cudaError_t const error = cutoff::top_k_renorm<float>(rows, rows, 2);
  cudaMemcpy(out, row, sizeof out, cudaMemcpyDefault);
  cudaFree(row);
  if (error != cudaSuccess) return false;
  for (int i = 0; i < 4; ++i)
    if (out[i] != expected[i]) return false;
  std::puts("device: right");
  return true;
}
