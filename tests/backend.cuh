#pragma once
// The device as the place where tests run (backend.hpp says what a place is).

#include <cuda_runtime.h>

#include <cstddef>
#include <cutoff/cut.hpp>
#include <initializer_list>
#include <stdexcept>
#include <utility>
#include <vector>

namespace test {

inline constexpr bool on_device = true;

inline void check(cudaError_t e) {
  if (e != cudaSuccess) throw std::runtime_error(cudaGetErrorString(e));
}

/// What a byte of an output is before the call: neither a zero nor an index.
inline constexpr int poison = 0x5a;

/// Elements in device memory, an allocation that ends with the last of them, so that memcheck sees
/// a read beyond. Filled and copied before the constructor, put and get return, for any stream.
template <class T>
class buffer {
 public:
  explicit buffer(std::size_t count) : n(count) {
    check(cudaMalloc(&first, n * sizeof(T)));
    fill(poison);
  }
  explicit buffer(std::vector<T> const& values) : n(values.size()) {
    check(cudaMalloc(&first, n * sizeof(T)));
    put(values);
  }
  explicit buffer(std::initializer_list<T> values) : buffer(std::vector<T>(values)) {}
  buffer(buffer&& other) noexcept : first(std::exchange(other.first, nullptr)), n(other.n) {}
  ~buffer() { cudaFree(first); }

  T* data() const { return first; }
  std::size_t size() const { return n; }

  void fill(int byte) {
    check(cudaMemset(first, byte, n * sizeof(T)));
    check(cudaStreamSynchronize(nullptr));
  }
  void put(std::vector<T> const& values, std::size_t at = 0) {
    check(cudaMemcpy(first + at, values.data(), values.size() * sizeof(T), cudaMemcpyDefault));
    check(cudaStreamSynchronize(nullptr));
  }
  std::vector<T> get(std::size_t at, std::size_t count) const {
    std::vector<T> values(count);
    check(cudaMemcpy(values.data(), first + at, count * sizeof(T), cudaMemcpyDefault));
    return values;
  }
  std::vector<T> get() const { return get(0, n); }

 private:
  T* first = nullptr;
  std::size_t n;
};

/// The public call, finished. Instantiated in calls.cu alone: its kernels are what nvcc needs
/// minutes for.
template <class In, class Rule, class Sink>
cudaError_t call(In in, Rule rule, Sink sink);

}  // namespace test
