// A share given as k would be cut to 0.
// error: use of deleted function .*per_row
#include <cutoff/cut.hpp>

using namespace cutoff;

cudaError_t call(rows<float const> in, rows<float> out, rows<std::int32_t> indices) {
#ifdef CONTROL
  return cut(serial{}, in, top_k{50}, renorm<float>{out});
#else
  return cut(serial{}, in, top_k{0.9f}, renorm<float>{out});
#endif
}
