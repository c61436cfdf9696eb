// true is no mass.
// error: use of deleted function .*per_row
#include <cutoff/cut.hpp>

using namespace cutoff;

cudaError_t call(rows<float const> in, rows<float> out, rows<std::int32_t> indices) {
#ifdef CONTROL
  return cut(serial{}, in, top_p{1}, renorm<float>{out});
#else
  return cut(serial{}, in, top_p{true}, renorm<float>{out});
#endif
}
