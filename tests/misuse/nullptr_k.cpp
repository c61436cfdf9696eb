// nullptr is no array of k.
// error: use of deleted function .*per_row
#include <cutoff/cut.hpp>

using namespace cutoff;

cudaError_t call(rows<float const> in, rows<float> out, rows<std::int32_t> indices) {
#ifdef CONTROL
  return cut(serial{}, in, top_k{indices.data}, renorm<float>{out});
#else
  return cut(serial{}, in, top_k{nullptr}, renorm<float>{out});
#endif
}
