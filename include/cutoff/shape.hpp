#pragma once
// Launch shapes: how many threads work on a row, chosen from numbers alone, so that the choice can
// be printed, compared, tested on the host and overridden. The bits of a result never depend on it.

#include <cstdint>
#include <string>

namespace cutoff {
inline namespace v0 {

/// A launch shape: so many threads a block, so many blocks a row.
///
/// Shapes:  {256} a block; {320, n} blocks with a record of tiles, as long as shared memory holds it;
///          {1024, n} for rows of more than 2^20 entries, and for what needs no masses. n = 1 to 8:
///          more than one are a cluster (sm_90 and newer)
struct shape {
  int threads = 0, blocks = 1;
  constexpr bool operator==(shape const&) const = default;
};

inline std::string to_string(shape const& s) {
  return std::to_string(s.threads) + " threads, " + std::to_string(s.blocks) + " blocks a row";
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
  if (V <= 8192) return {256};
  // Several blocks a row as long as all rows are cut at once, two blocks of 320 or one of 1024 a
  // multiprocessor. A cluster lies within a part of the device, and so fewer than that fit: of an
  // H200 with 132 multiprocessors 132, 79, 62, 47, 39, 32, 30 clusters of 2 to 8 blocks, measured with
  // 512 threads and the same shared memory.
  bool const longest = V > 1 << 20;
  std::int64_t const most = (longest ? 1 : 2) * d.multiprocessors;
  auto const turns = [&](int n) {  // in which all rows are cut, with n blocks each; 0: none fits
    std::int64_t const at_once = (n > 2 ? most * 5 / 6 : most) / n;
    return at_once == 0 ? 0 : (B + at_once - 1) / at_once;
  };
  int blocks = 8;
  while (blocks > 1 && turns(blocks) != 1) --blocks;
  if (longest || blocks > 1 || V < 100'000) return {longest ? 1024 : 320, blocks};
  // More rows than that, and a last turn that few take part in: a turn of two or three blocks a row is
  // shorter, by less than a half or two thirds, as measured for 133 to 600 rows of 151,936 entries.
  std::int64_t best = 120 * turns(1);
  for (int n : {2, 3}) {
    std::int64_t const time = (n == 2 ? 69 : 52) * turns(n);
    if (time > 0 && time < best) best = time, blocks = n;
  }
  return {320, blocks};
}

}  // namespace v0
}  // namespace cutoff
