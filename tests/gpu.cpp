// Linked into every program whose tests need a GPU: without one the program says so and exits with
// 77, which CTest shows as skipped, before it runs anything.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

namespace {

struct gpu {
  gpu() {
    int count = 0;
    cudaError_t const error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0) return;
    // Any error means no GPU: without a driver it is not cudaErrorNoDevice.
    std::printf("skipped: no GPU (%s)\n", cudaGetErrorString(error));
    std::fflush(stdout);
    std::_Exit(77);
  }
} const needed;

}  // namespace
