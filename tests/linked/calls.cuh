#pragma once
// The calls that both .cu files of this program make, so that both hold the same instantiations.

#include <cutoff/cutoff.cuh>

// What needs no GPU: an empty batch is a success.
template <class T>
bool empty_batch() {
  cutoff::rows<T> const none(nullptr, 0, 4);
  return cutoff::top_k_renorm<T>(none, none, 2) == cudaSuccess;
}

template <class T>
T rounded(float x) {
  if constexpr (sizeof(T) == 4)
    return x;
  else if constexpr (std::same_as<T, __half>)
    return __float2half_rn(x);
  else
    return __float2bfloat16_rn(x);
}

// One small row on the device, cut in place to its two largest entries by cut(row).
template <class T, class Cut>
bool small_row_cut(Cut cut) {
  float const probs[4] = {0.125f, 0.5f, 0.125f, 0.25f};
  float const expected[4] = {0, 0.5f / 0.75f, 0, 0.25f / 0.75f};
  T out[4], *row;
  for (int i = 0; i < 4; ++i) out[i] = rounded<T>(probs[i]);
  if (cudaMalloc(&row, sizeof out) != cudaSuccess) return false;
  cudaMemcpy(row, out, sizeof out, cudaMemcpyDefault);
  bool right = cut(cutoff::rows<T>(row, 1, 4)) == cudaSuccess;
  right = cudaMemcpy(out, row, sizeof out, cudaMemcpyDefault) == cudaSuccess && right;
  cudaFree(row);
  for (int i = 0; i < 4; ++i)
    right = right && cutoff::to_bits(out[i]) == cutoff::to_bits(rounded<T>(expected[i]));
  return right;
}

template <class T>
bool cut_on_device() {
  return small_row_cut<T>([](cutoff::rows<T> row) { return cutoff::top_k_renorm<T>(row, row, 2); });
}

// A user's own kernel fills out [n] with n - 1, ..., 0 by way of its shared memory.
template <class Launch>
bool reversed(Launch launch) {
  constexpr int n = 64;
  float out[n], *device;
  if (cudaMalloc(&device, sizeof out) != cudaSuccess) return false;
  launch(device, n);
  bool right = cudaMemcpy(out, device, sizeof out, cudaMemcpyDefault) == cudaSuccess;
  cudaFree(device);
  for (int i = 0; i < n; ++i) right = right && out[i] == static_cast<float>(n - 1 - i);
  return right;
}
