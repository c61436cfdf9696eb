// The same calls on the host, in plain C++: no GPU, no CUDA compiler, the same bits. For tests of
// an engine's own logic, and for checking what a GPU returned.
#include <cstdio>
#include <cutoff/cut.hpp>
#include <vector>

using namespace cutoff;

int main() {
  std::vector<float> const probs{0.125f, 0.5f,  0.125f, 0.25f,  // [2, 4]
                                 0.25f,  0.25f, 0.25f,  0.25f};
  std::vector<float> out(8), values(6), pivot(2);
  std::vector<std::int32_t> tokens(6);
  rows const in(probs.data(), 2, 4);

  // A number for all rows, or an array with one for each; an int or a double will do.
  float const p[] = {0.75f, 0.5f};
  bool right = cut(serial{}, in, top_p{p}, renorm{rows(out.data(), 2, 4)}) == cudaSuccess;
  right &= out == std::vector<float>{0,     2 / 3.f, 0,     1 / 3.f,
                                     0.25f, 0.25f,   0.25f, 0.25f};  // ties stay together

  right &= cut(serial{}, in, top_p{p, ties::lowest_index}, renorm{rows(out.data(), 2, 4)}) ==
           cudaSuccess;
  right &=
      out == std::vector<float>{0, 2 / 3.f, 0, 1 / 3.f, 0.5f, 0.5f, 0, 0};  // the shortest prefix

  right &= cut(serial{}, in, top_k{2}, pivots{pivot.data()}) == cudaSuccess;
  right &= pivot == std::vector<float>{0.25f, 0.25f};

  // Logits of any sign, the winners collected: exactly k, in order of index, the rest filled.
  right &= cut(serial{}, logits{in}, top_k{2},
               gather{rows(values.data(), 2, 3), rows(tokens.data(), 2, 3)}) == cudaSuccess;
  right &= tokens == std::vector<std::int32_t>{1, 3, -1, 0, 1, -1};

  // Arguments that make no sense are errors, and nothing is written.
  right &= cut(serial{}, in, top_k{0}, pivots{pivot.data()}) == cudaErrorInvalidValue;
  right &= cut(serial{}, in, top_p{1.5}, pivots{pivot.data()}) == cudaErrorInvalidValue;

  std::puts(right ? "as expected" : "wrong");
  return right ? 0 : 1;
}
