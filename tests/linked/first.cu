// CUB and Thrust before the library (D88), and a kernel with shared memory of its own (D86).

#include <thrust/device_vector.h>
#include <thrust/sort.h>

#include <cub/cub.cuh>

#include "every.hpp"

#include "calls.cuh"

__global__ void first_kernel(float* out) {
  extern __shared__ float smem[];
  smem[threadIdx.x] = static_cast<__nv_bfloat16>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = smem[blockDim.x - 1 - threadIdx.x];
}

bool first_empty() { return empty_batch<__nv_bfloat16>(); }
bool first_device() {
  return cut_on_device<__nv_bfloat16>() &&
         reversed([](float* out, int n) { first_kernel<<<1, n, n * sizeof *out>>>(out); });
}
