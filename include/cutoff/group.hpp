#pragma once
// Who works together on one row. An algorithm is written once, against the concept below, and runs
// on one thread (serial, here), a warp, a block or a cluster (group.cuh).
//
// The contract of every group g:
//  1. Members are numbered rank() in [0, size()); a sweep deals the row out by these numbers.
//  2. sum, max, scan, clear and cross are collective: all members call them, in the same order,
//     and all get the result. All but clear are barriers too: what a member wrote before is seen
//     after, and what it had to read it has read.
//  3. add is not collective: any member adds to a histogram between a clear and the next cross.
//  4. Scratch belongs to the caller, one per group. The group's next collective may use it at once;
//     for anything else it is free after a barrier of the caller's.
//  5. Sums are of unsigned integers, so no result depends on the number or order of the members.

#include <concepts>
#include <cstdint>

#include "key.hpp"

namespace cutoff {
inline namespace v0 {

/// Result of a scan: what the members of lower rank hold, and what all hold.
template <class W>
struct scanned {
  W before, total;
};

/// Result of a cross: the largest digit d at which the bins from the top down to d reach a target,
/// with the sum of the bins above d and bin d itself. Not reached: digit 0, above = all, at = 0.
template <class W>
struct crossing {
  std::uint32_t digit;
  W above, at;
};

template <class G>
concept group = requires(G const g, std::uint32_t n,
                         typename G::template histogram<std::uint32_t> h) {
  { g.rank() } -> std::same_as<std::uint32_t>;
  { g.size() } -> std::same_as<std::uint32_t>;
  { g.sum(n) } -> std::same_as<std::uint32_t>;
  { g.max(n) } -> std::same_as<std::uint32_t>;
  { g.scan(n) } -> std::same_as<scanned<std::uint32_t>>;
  g.clear(h);
  g.add(h, n, n);
  { g.cross(h, n) } -> std::same_as<crossing<std::uint32_t>>;
};

/// The group of one thread, on the host or on the device.
struct serial {
  template <class W>
  struct histogram {
    W bin[radix];
    __host__ __device__ explicit histogram(serial const&) {}
  };

  __host__ __device__ std::uint32_t rank() const { return 0; }
  __host__ __device__ std::uint32_t size() const { return 1; }

  template <class W>
  __host__ __device__ W sum(W x) const {
    return x;
  }
  __host__ __device__ std::uint32_t max(std::uint32_t x) const { return x; }
  template <class W>
  __host__ __device__ scanned<W> scan(W x) const {
    return {W{0}, x};
  }

  template <class W>
  __host__ __device__ void clear(histogram<W>& h) const {
    for (W& bin : h.bin) bin = 0;
  }
  template <class W>
  __host__ __device__ void add(histogram<W>& h, std::uint32_t digit, W w) const {
    h.bin[digit] += w;
  }
  template <class W>
  __host__ __device__ crossing<W> cross(histogram<W>& h, W target) const {
    W above = 0;
    for (std::uint32_t d = radix; d-- > 0; above += h.bin[d])  // above = sum of bins over d
      if (h.bin[d] >= target - above) return {d, above, h.bin[d]};
    return {0, above, 0};
  }
};

static_assert(group<serial>);

}  // namespace v0
}  // namespace cutoff
