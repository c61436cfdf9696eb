// Built into two shared libraries, for different architectures and with different NAMEs.

#include <cutoff/cutoff.cuh>

// Cuts the row [4] to its two largest entries, on the GPU.
extern "C" cudaError_t NAME(float const* probs, float* out) {
  float* row;
  if (cudaError_t const error = cudaMalloc(&row, 4 * sizeof *row)) return error;
  cudaMemcpy(row, probs, 4 * sizeof *row, cudaMemcpyDefault);
  cutoff::rows<float> const rows(row, 1, 4);
  cudaError_t error = cutoff::top_k_renorm<float>(rows, rows, 2);
  if (error == cudaSuccess) error = cudaMemcpy(out, row, 4 * sizeof *row, cudaMemcpyDefault);
  cudaFree(row);
  return error;
}

#define JOIN(a, b) a##b
#define LAUNCHER(name) JOIN(name, _launcher)

// Where this library's launcher is: each must have its own.
extern "C" void const* LAUNCHER(NAME)() {
  cudaError_t (*const launcher)(cutoff::rows<float const>, cutoff::rows<float>,
                                cutoff::per_row<std::int32_t>, cudaStream_t) =
      &cutoff::top_k_renorm<float>;
  return reinterpret_cast<void const*>(launcher);
}
