// Scores have no mass to add up.
// error: top_p needs probabilities: pass rows, not logits
#include <cutoff/cut.hpp>

using namespace cutoff;

cudaError_t call(rows<float const> in, rows<float> out, rows<std::int32_t> indices) {
#ifdef CONTROL
  return cut(serial{}, in, top_p{0.9f}, pivots<float>{out.data});
#else
  return cut(serial{}, logits<float const>{in}, top_p{0.9f}, pivots<float>{out.data});
#endif
}
