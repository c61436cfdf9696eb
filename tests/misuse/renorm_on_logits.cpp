// Scores have no mass to divide by.
// error: renorm needs probabilities: pass rows, not logits
#include <cutoff/cut.hpp>

using namespace cutoff;

cudaError_t call(rows<float const> in, rows<float> out, rows<std::int32_t> indices) {
#ifdef CONTROL
  return cut(serial{}, in, top_k{50}, renorm<float>{out});
#else
  return cut(serial{}, logits<float const>{in}, top_k{50}, renorm<float>{out});
#endif
}
