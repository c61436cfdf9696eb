// A gather is as wide as k.
// error: gather takes top_k only: top_p has no fixed number of winners
#include <cutoff/cut.hpp>

using namespace cutoff;

cudaError_t call(rows<float const> in, rows<float> out, rows<std::int32_t> indices) {
#ifdef CONTROL
  return cut(serial{}, in, top_k{50}, gather<float>{out, indices});
#else
  return cut(serial{}, in, top_p{0.9f}, gather<float>{out, indices});
#endif
}
