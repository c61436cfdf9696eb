#pragma once
// Scopes: which threads form a group, and how they meet.
//
// Blocks of a cluster meet by its barrier without the order that is usual there, which is that of all
// memory, global memory too: to keep it, a barrier waits until what was written has reached the L2
// cache, a thousand cycles and more. Only shared memory is ordered here, by fences of its own.

#include <nv/target>

#include <cstdint>

namespace cutoff {
inline namespace v0 {

/// Scope of a warp: 32 threads.
struct warp_scope {
  static constexpr std::uint32_t threads = 32, most_units = 1;

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
  static constexpr std::uint32_t threads = Threads, most_units = 1;

  __device__ static std::uint32_t rank() { return threadIdx.x; }
  __device__ static void sync() { __syncthreads(); }
  __device__ static std::uint32_t index_in_block() { return 0; }
  __device__ static std::int64_t index_in_grid() { return blockIdx.x; }
  __device__ static std::int64_t groups_in_grid() { return gridDim.x; }
};

/// Scope of a cluster in one dimension: blocks that share memory across multiprocessors. How many is
/// the launch's choice, up to Blocks; before sm_90 it is one.
template <std::uint32_t Threads, std::uint32_t Blocks>
struct cluster_scope : block_scope<Threads> {
  static_assert(Blocks >= 2 && Blocks <= 16, "a cluster has 2 to 16 blocks");
  static constexpr std::uint32_t most_units = Blocks;

  __device__ static std::uint32_t unit() {
    // volatile: else the compiler reads the special register again, which takes longer than to keep it
    std::uint32_t rank = 0;
    NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));))
    return rank;
  }
  __device__ static std::uint32_t units() {
    std::uint32_t size = 1;
    NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));))
    return size;
  }
  /// A barrier of all units, for what is in shared memory.
  __device__ static void sync_units() {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (fence_before(); asm volatile("barrier.cluster.arrive.relaxed.aligned;\n"
                                               "barrier.cluster.wait.acquire.aligned;" ::
                                                   : "memory");
                  fence_after();))
  }
  /// A word of shared memory, as another unit has it.
  __device__ static std::uint32_t read(std::uint32_t const& own, std::uint32_t unit) {
    NV_IF_ELSE_TARGET(NV_PROVIDES_SM_90,
                      (auto const here = static_cast<std::uint32_t>(__cvta_generic_to_shared(&own));
                       std::uint32_t there, x; asm("mapa.shared::cluster.u32 %0, %1, %2;"
                                                   : "=r"(there)
                                                   : "r"(here), "r"(unit));
                       asm volatile("ld.shared::cluster.u32 %0, [%1];"
                                    : "=r"(x)
                                    : "r"(there)
                                    : "memory");
                       return x;),
                      (return own;))
  }
  __device__ static std::int64_t index_in_grid() { return blockIdx.x / units(); }
  __device__ static std::int64_t groups_in_grid() { return gridDim.x / units(); }

 private:
#if __CUDACC_VER_MAJOR__ >= 13
  __device__ static void fence_before() {
    asm volatile("fence.release.sync_restrict::shared::cta.cluster;" ::: "memory");
  }
  __device__ static void fence_after() {
    asm volatile("fence.acquire.sync_restrict::shared::cluster.cluster;" ::: "memory");
  }
#else  // older toolkits know only fences of all memory
  __device__ static void fence_before() { asm volatile("fence.acq_rel.cluster;" ::: "memory"); }
  __device__ static void fence_after() {}
#endif
};

/// Where a stream's kernels may overlap: what those before have written is there, and what they read
/// may be written over.
__device__ inline void wait_for_earlier_kernels() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("griddepcontrol.wait;" ::: "memory");))
}
/// The next kernel may be launched once all blocks have said so. It still has to wait.
__device__ inline void let_later_kernels_begin() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (asm volatile("griddepcontrol.launch_dependents;" ::: "memory");))
}

}  // namespace v0
}  // namespace cutoff
