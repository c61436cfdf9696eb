// Compiled for every generation of GPUs that the library knows, with all warnings as errors.

#include <cutoff/cutoff.cuh>

cudaError_t top_k(cutoff::rows<float const> in, cutoff::rows<float> out) {
  return cutoff::top_k_renorm<float>(in, out, 50);
}

cudaError_t top_p(cutoff::rows<__nv_bfloat16 const> in, cutoff::rows<__nv_bfloat16> out) {
  return cutoff::top_p_renorm<__nv_bfloat16>(in, out, 0.9f);
}
