// CUB and Thrust after the library (D88), with the operators of the half types switched off (D89,
// by the compiler's command line), a kernel whose shared memory has another alignment (D86), and
// relocatable device code.

#include "every.hpp"

#include "calls.cuh"

#include <thrust/device_vector.h>
#include <thrust/sort.h>

#include <cub/cub.cuh>

__global__ void second_kernel(float* out) {
  extern __shared__ __align__(128) char smem[];
  auto* const value = reinterpret_cast<float*>(smem);
  value[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = value[blockDim.x - 1 - threadIdx.x];
}

// One thread, one small row. Its half type is one that the library's calls below leave out.
__global__ void cut_alone(cutoff::rows<__half> rows) {
  cutoff::row<__half> const row{rows[0], 4};
  cutoff::cut_row<std::uint64_t>(cutoff::serial{}, row, 0, cutoff::top_k{2},
                                 cutoff::renorm<__half>{rows});
}

bool second_empty() { return empty_batch<__nv_bfloat16>(); }
bool second_device() {
  return cut_on_device<__nv_bfloat16>() && small_row_cut<__half>([](cutoff::rows<__half> row) {
           cut_alone<<<1, 1>>>(row);
           return cudaGetLastError();
         }) &&
         reversed([](float* out, int n) { second_kernel<<<1, n, n * sizeof *out>>>(out); });
}
