#include "kernels/reference/kv_values.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/tensor.h"

namespace weir::kernels {
namespace {

template <class T>
void put(std::byte* to, T x) {
  std::memcpy(to, &x, sizeof x);
}
template <class T>
T get(const std::byte* from) {
  T x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

// Stores one group in q8. The scale is the largest magnitude / 127, rounded to f16, and the codes are the
// numbers over the rounded scale. Where a number is infinite or NaN, the scale is NaN, and so is every number
// of the group.
void store_group(const kv_head& to, std::size_t token, std::size_t first, const float* x) {
  const std::size_t count = to.group();
  double turned[most_kv_group];
  for (std::size_t i = 0; i < count; ++i) turned[i] = x[i];
  turn_group(turned, count);
  float rounded[most_kv_group], largest = 0;
  bool finite = true;
  for (std::size_t i = 0; i < count; ++i) {
    rounded[i] = static_cast<float>(turned[i]);
    finite = finite && std::isfinite(rounded[i]);
    largest = std::max(largest, std::fabs(rounded[i]));
  }
  const std::uint16_t stored = to_f16(finite ? largest / 127 : std::numeric_limits<float>::quiet_NaN());
  const float scale = from_f16(stored);
  for (std::size_t i = 0; i < count; ++i) {
    const float code = scale > 0 ? std::nearbyint(rounded[i] / scale) : 0.0f;
    put(to.number(token, first + i), static_cast<std::int8_t>(std::clamp(code, -127.0f, 127.0f)));
  }
  put(to.scale(token, first), stored);
}

float load_number(const kv_head& from, std::size_t token, std::size_t i) {
  const std::byte* at = from.number(token, i);
  switch (from.type) {
    case kv_type::f32:
      return get<float>(at);
    case kv_type::bf16:
      return from_bf16(get<std::uint16_t>(at));
    case kv_type::fp8: {
      const auto bits = get<std::uint8_t>(at);
      return (bits & 0x7f) == 0x7f ? std::numeric_limits<float>::quiet_NaN() : from_e4m3(bits);
    }
    case kv_type::q8:
      return static_cast<float>(get<std::int8_t>(at)) * from_f16(get<std::uint16_t>(from.scale(token, i)));
  }
  return 0.0f;
}

}  // namespace

void turn_group(double* x, std::size_t count) noexcept {
  for (std::size_t half = 1; half < count; half *= 2)
    for (std::size_t i = 0; i < count; ++i) {
      if (i & half) continue;
      const double a = x[i], b = x[i + half];
      x[i] = a + b;
      x[i + half] = a - b;
    }
  const double share = 1 / std::sqrt(static_cast<double>(count));
  for (std::size_t i = 0; i < count; ++i) x[i] *= share;
}

void store_kv(const kv_head& to, std::size_t token, const float* x) {
  if (to.type == kv_type::q8) {
    for (std::size_t i = 0; i < to.head_dim; i += to.group()) store_group(to, token, i, x + i);
    return;
  }
  for (std::size_t i = 0; i < to.head_dim; ++i) {
    std::byte* at = to.number(token, i);
    if (to.type == kv_type::f32) put(at, x[i]);
    if (to.type == kv_type::bf16) put(at, to_bf16(x[i]));
    if (to.type == kv_type::fp8) put(at, to_e4m3(x[i]));
  }
}

kv_numbers load_kv(const kv_head& from, std::size_t token, std::size_t first) {
  kv_numbers out;
  out.count = from.group();
  for (std::size_t i = 0; i < out.count; ++i) out.x[i] = load_number(from, token, first + i);
  if (from.type == kv_type::q8) turn_group(out.x, out.count);
  return out;
}

}  // namespace weir::kernels
