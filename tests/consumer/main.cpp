// Plain C++: the host call, then the device's through a function of our own.

#include <cstdio>
#include <cutoff/cut.hpp>

#ifdef CCCL_ENABLE_ASSERTIONS
#error "a macro of CCCL's Debug builds comes along with cutoff::cutoff"
#endif

bool device_call(float const (&probs)[4], float const (&expected)[4]);

int main() {
  float const probs[4] = {0.125f, 0.5f, 0.125f, 0.25f},
              expected[4] = {0, 0.5f / 0.75f, 0, 0.25f / 0.75f};
  float out[4];
  cutoff::rows<float const> const in(probs, 1, 4);
  if (cutoff::cut(cutoff::serial{}, in, cutoff::top_k{2}, cutoff::renorm<float>{{out, 1, 4}}))
    return 1;
  for (int i = 0; i < 4; ++i)
    if (out[i] != expected[i]) return 1;
  std::puts("host: right");
  return device_call(probs, expected) ? 0 : 1;
}
