// Two .cpp and two .cu files include every header of the library and link into this one program
// (D91). `linked` makes the calls that need no GPU, `linked gpu` the others.

#include <cuda_runtime_api.h>

#include <cstdio>

// One per file; false where an answer is wrong.
bool first_host();
bool second_host();
bool first_empty();
bool second_empty();
bool first_device();
bool second_device();

int main(int argc, char**) {
  int gpus = 0;
  if (argc > 1 && (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0)) {
    std::puts("skipped: no GPU");
    return 77;
  }
  bool const right = argc > 1 ? first_device() && second_device()
                              : first_host() && second_host() && first_empty() && second_empty();
  std::puts(right ? "right" : "wrong");
  return right ? 0 : 1;
}
