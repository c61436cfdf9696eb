#pragma once
// Scopes: which threads form a group, and how they meet.

#include <cooperative_groups.h>
#include <nv/target>

#include <cstdint>

namespace cutoff {
inline namespace v0 {

/// Scope of a warp: 32 threads.
struct warp_scope {
  static constexpr std::uint32_t threads = 32, units = 1;
  using one_unit = warp_scope;

  __device__ static std::uint32_t rank() { return threadIdx.x % threads; }
  __device__ static void sync() { __syncwarp(); }
  __device__ static std::uint32_t index_in_block() { return threadIdx.x / threads; }
  __device__ static std::int64_t index_in_grid() {
    return std::int64_t{blockIdx.x} * (blockDim.x / threads) + index_in_block();
  }
  __device__ static std::int64_t groups_in_grid() {
    return std::int64_t{gridDim.x} * (blockDim.x / threads);
  }
};

/// Scope of a block in one dimension.
template <std::uint32_t Threads>
struct block_scope {
  static_assert(Threads % 32 == 0 && Threads <= 1024,
                "a block has 32 to 1024 threads, in whole warps");
  static constexpr std::uint32_t threads = Threads, units = 1;
  using one_unit = block_scope;

  __device__ static std::uint32_t rank() { return threadIdx.x; }
  __device__ static void sync() { __syncthreads(); }
  __device__ static std::uint32_t index_in_block() { return 0; }
  __device__ static std::int64_t index_in_grid() { return blockIdx.x; }
  __device__ static std::int64_t groups_in_grid() { return gridDim.x; }
};

/// Scope of a cluster in one dimension: Blocks blocks that share memory across multiprocessors.
template <std::uint32_t Threads, std::uint32_t Blocks>
struct cluster_scope : block_scope<Threads> {
  static_assert(Blocks >= 2 && Blocks <= 16, "a cluster has 2 to 16 blocks");
  static constexpr std::uint32_t units = Blocks;
  using one_unit = block_scope<Threads>;

  __device__ static std::uint32_t unit() {
    NV_IF_ELSE_TARGET(NV_PROVIDES_SM_90, (return cooperative_groups::cluster_group::block_rank();),
                      (__trap(); return 0;))
  }
  __device__ static void sync_units() {
    NV_IF_TARGET(NV_PROVIDES_SM_90, (cooperative_groups::cluster_group::sync();))
  }
  /// The same shared object in another block of the cluster.
  template <class S>
  __device__ static S& in_unit(S& own, std::uint32_t unit) {
    NV_IF_ELSE_TARGET(NV_PROVIDES_SM_90,
                      (return *cooperative_groups::cluster_group::map_shared_rank(&own, unit);),
                      (return own;))
  }
  __device__ static std::int64_t index_in_grid() { return blockIdx.x / Blocks; }
  __device__ static std::int64_t groups_in_grid() { return gridDim.x / Blocks; }
};

}  // namespace v0
}  // namespace cutoff
