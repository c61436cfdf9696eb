#pragma once
// Launch shapes: how many threads work on a row, chosen from numbers alone, so that the choice can
// be printed, compared, tested on the host and overridden. The bits of a result never depend on it.

#include <cstdint>
#include <string>

namespace cutoff {
inline namespace v0 {

/// A launch shape: blocks of `threads`; a row has a cluster of `blocks` of them, or a block serves
/// `rows` rows at a time, a warp each.
///
/// Shapes:  {128, 1, 4} warp; {256} and {1024} block; {512} block, {1024, 2} and {1024, 8} cluster
///          (sm_90 and newer) with a record of tiles, as long as shared memory holds it. Masses of
///          rows of more than 2^20 entries: {1024} and {1024, 8}, without
struct shape {
  int threads = 0, blocks = 1, rows = 1;
  constexpr bool operator==(shape const&) const = default;
};

inline std::string to_string(shape const& s) {
  return std::to_string(s.threads) + " threads, " + std::to_string(s.blocks) + " blocks a row, " +
         std::to_string(s.rows) + " rows a block";
}

/// What the choice needs to know of a device.
struct device {
  int multiprocessors;
};

/// The shape for B rows of V elements.
///
/// Units:   V, B from 1. Clusters are a wish: where they cannot be launched a block takes their place
/// Source:  one H200, CUDA 13.0, 2026-11, bench/README.md
constexpr shape shape_for(std::int64_t V, std::int64_t B, device d) {
  if (V <= 1024) return {128, 1, 4};
  if (V <= 8192) return {256};
  // Several blocks a row while each finds a multiprocessor of its own: two waves of clusters of 8
  // take as long as one of 2, and three take longer.
  if (B <= d.multiprocessors / 8) return {1024, 8};
  if (V > 1 << 20) return {1024};
  return B <= d.multiprocessors / 2 ? shape{1024, 2} : shape{512};
}

}  // namespace v0
}  // namespace cutoff
