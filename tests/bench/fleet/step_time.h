// step_time.h — how long an engine's step takes: a fit to what one H200 took for the shape llama-3.1-8b in
// bf16 (docs/performance.md, «CUDA: one H200»; docs/measurements/gpu.md, «The engine»).
//
// A step is its products, which read the weights once for all rows, and attention, which reads the keys and
// values of each sequence (131,072 bytes a token at 4.03 TB/s: the attention of 256 sequences, 4.57 ms).
// Products of few rows are the measured decode steps without attention; those of many rows are the prompts of
// 2,048 tokens. Attention of prompts is what a prompt of 8,192 takes longer than four of 2,048. Against
// «The server» at 256 streams, which the fit does not use, a step of 256 + 512 rows is predicted at 20 ms,
// and 21.6 ms were measured.
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace weir::bench::fleet {

struct step_rows {
  std::uint32_t decode = 0, prompt = 0;
  double decode_context = 0;  // tokens whose keys and values decoding rows read, all together
  double prompt_context = 0;  // the same of prompt rows: the sum over rows of the tokens before each
};

// Milliseconds.
constexpr double products_ms(double rows) {
  struct point {
    double rows, ms;
  };
  constexpr std::array<point, 7> measured{
      {{1, 3.92}, {8, 4.03}, {32, 4.03}, {64, 4.21}, {128, 4.71}, {256, 6.18}, {2048, 44.3}}};
  std::size_t i = 1;
  while (i + 1 < measured.size() && rows > measured[i].rows) ++i;
  const auto &a = measured[i - 1], &b = measured[i];
  return a.ms + (std::max(rows, 1.0) - a.rows) / (b.rows - a.rows) * (b.ms - a.ms);
}

constexpr double step_ms(const step_rows& r) {
  constexpr double decode_token_ms = 32.5e-6, prompt_pair_ms = 1.01e-6;
  return products_ms(r.decode + r.prompt) + decode_token_ms * r.decode_context +
         prompt_pair_ms * r.prompt_context;
}

// Pages of KV memory beside the weights on such a device (952,128 tokens).
inline constexpr std::uint32_t h200_pages = 14877;

}  // namespace weir::bench::fleet
