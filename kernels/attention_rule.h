// attention_rule.h — the positions that a row attends to, and what becomes of its scores.
//
// The attention of every backend takes a rule. A variant of attention is one more member here.
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define WEIR_HOST_DEVICE __host__ __device__
#else
#define WEIR_HOST_DEVICE
#endif

namespace weir::kernels {

// The score of the row at position p with a key k is q · k * scale_at(p), and then cap * tanh(score / cap)
// where there is a cap.
struct attention_rule {
  std::uint32_t window = 0;  // positions that a row attends to, its own included; 0: all up to its own
  float scale = 1;           // factor of every score
  float cap = 0;             // bound of a score (Gemma 2); 0: none
  // Scores grow with the row's position: by 1 + growth * ln(1 + floor(p / growth_unit)) (Llama 4, Ministral
  // 3). No growth where `growth` is 0.
  float growth = 0;
  std::uint32_t growth_unit = 1;

  // The first position that the row at position `p` attends to. The last one is `p`.
  template <class Position>
  WEIR_HOST_DEVICE constexpr Position first_seen(Position p) const noexcept {
    return window != 0 && p + 1 > static_cast<Position>(window) ? p + 1 - static_cast<Position>(window) : 0;
  }

  WEIR_HOST_DEVICE float scale_at(std::uint32_t p) const noexcept {
    if (growth == 0) return scale;
    return scale * (1 + growth * std::log(static_cast<float>(1 + p / growth_unit)));
  }

  // Whether a score is q · k * scale at every position.
  constexpr bool is_plain() const noexcept { return cap == 0 && growth == 0; }
  bool operator==(const attention_rule&) const = default;
};

}  // namespace weir::kernels
