// The output keeps the type.
// error: the output's element type must be the input's
#include <cutoff/cut.hpp>

using namespace cutoff;

cudaError_t call(rows<float const> in, rows<float> out, rows<std::int32_t> indices) {
#ifdef CONTROL
  return cut(serial{}, in, top_k{50}, renorm<float>{out});
#else
  return cut(serial{}, in, top_k{50}, renorm<__half>{rows<__half>(nullptr, 1, 1)});
#endif
}
