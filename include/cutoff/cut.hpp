#pragma once
// The cut of one row: the body of the kernel in cutoff.cuh and of the host call here.

#include <driver_types.h>

#include "sample.hpp"
#include "sink.hpp"
#include "tally.hpp"

namespace cutoff {
inline namespace v0 {

/// Draws a line in a row and writes what stays of it. W holds the row's mass: std::uint64_t for rows
/// of up to 2^20 entries, uint128 for longer ones.
///
/// Shapes:  r [V]
/// Group:   every member calls; what it has written others see after a barrier of the caller's
template <class W, group G, class Row, class Rule, class Sink>
__host__ __device__ void cut_row(G const& g, Row r, std::int64_t b, Rule const& rule,
                                 Sink const& sink) {
  constexpr bool weighs = Rule::weighs || Sink::weighs;
  ties const at = rule.at_pivot == ties::by_sink ? Sink::usual : rule.at_pivot;
  std::uint32_t largest = 0;
  if constexpr (Row::surveyed) {
    if constexpr (requires { sink.blank(r, b); }) r.background = sink.blank(r, b);
    if constexpr (requires { rule.keeps_few(r, b); })
      r.early = r.background && rule.keeps_few(r, b);
    if constexpr (Rule::weighs)
      largest = survey_by_mass<W>(g, r, rule.p[b]);
    else
      largest = survey(g, r);
  } else if constexpr (weighs) {
    largest = largest_key(g, r);
  }
  if constexpr (weighs) {
    mass<typename Row::value, W> const m(largest);
    sink.write(g, r, b, rule.draw(g, r, b, m, at), m);
  } else {
    sink.write(g, r, b, rule.draw(g, r, b, nothing{}, at), nothing{});
  }
}

/// Whether a call's arguments make sense; those that no call can take do not compile.
template <element T, domain D, class Rule, class Sink>
bool valid(batch<T, D> const& batch, Rule const& rule, Sink const& sink) {
  static_assert(D == domain::probabilities || !Rule::weighs,
                "top_p needs probabilities: pass rows, not logits");
  Sink::template accepts<T, D, Rule>();
  rows<T const> const& in = batch.in;
  if (in.count < 0 || !in.data || in.length < 1 || in.length > 0x7fffffff) return false;
  if (in.count > 1 && in.stride < in.length) return false;
  return rule.valid(in.count) && sink.valid(in, rule);
}

/// Cuts rows on the host, one after another, with the bits that the device gives.
///
/// Shapes:  in [B, V], rows or logits; all memory is host memory, arrays of k and p too
/// Errors:  cudaErrorInvalidValue for what the types cannot rule out; B == 0 is success
template <input In, class Rule, class Sink>
cudaError_t cut(serial g, In in, Rule rule, Sink sink) {
  auto const batch = as_batch(in);
  if (batch.in.count == 0) return cudaSuccess;
  if (!valid(batch, rule, sink)) return cudaErrorInvalidValue;
  bool const wide = batch.in.length > mass<float, std::uint64_t>::longest;
  for (std::int64_t b = 0; b < batch.in.count; ++b) {
    if (wide)
      cut_row<uint128>(g, batch[b], b, rule, sink);
    else
      cut_row<std::uint64_t>(g, batch[b], b, rule, sink);
  }
  return cudaSuccess;
}

}  // namespace v0
}  // namespace cutoff
