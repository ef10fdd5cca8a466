#include "kernels/cpu/self_test.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cpu/packing.h"
#include "kernels/cpu/scratch.h"

namespace weir::kernels {
namespace {

// Elements of k: for plain types an odd number, which is some whole tiles and a part of one; for quantised
// types at least two whole blocks.
constexpr std::size_t length_of(dtype type) { return is_plain(type) ? 101 : 512; }
// Where the second slice begins.
constexpr std::size_t cut_of(dtype type) { return is_plain(type) ? 2 * tile_k : 256; }

// A number that depends on `i` alone. Signs and sizes vary; no number is larger than 8 in size.
float number(std::size_t i) {
  const auto bits = static_cast<std::uint32_t>(i * 2654435761u + 12345u);
  return std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits) >> 8),
                    -20 - static_cast<int>(bits % 7));
}

// As number(), for activations that are rounded to codes: rounding leaves these numbers as they are.
float whole_number(std::size_t i) {
  const float code = i % 32 == 5 ? 127 : std::nearbyint(number(i) * 15);
  return std::ldexp(code, static_cast<int>(i / 32 % 5) - 9);
}

// Some activations are subnormal, where they are not rounded.
struct example {
  const std::size_t k, cut;
  std::vector<float> x;
  std::vector<std::uint32_t> rows;  // the weights; 16-bit weights fill half, quantised weights less
  std::vector<float> wide;          // the weights as f32
  scratch<std::byte> packed;
  matrix w;

  example(dtype type, std::size_t most, code_order order) : k(length_of(type)), cut(cut_of(type)) {
    for (std::size_t i = 0; i < most * k; ++i)
      x.push_back(order == code_order::words ? whole_number(i) : i % 17 == 3 ? 1e-40f : number(i));
    rows.resize(panel_rows * k);
    for (std::size_t i = 0; i < panel_rows * k; ++i) {
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(number(i + 7919));
      const auto half =
          static_cast<std::uint16_t>(type == dtype::bf16 ? bits >> 16 : 0x2c00u + (bits >> 8) % 0x1000u);
      if (type == dtype::f32)
        rows[i] = bits;
      else
        std::memcpy(reinterpret_cast<std::byte*>(rows.data()) + 2 * i, &half, 2);
    }
    if (!is_plain(type)) fill_random_blocks(rows.data(), type, panel_rows * k, 1);
    w = {rows.data(), type, panel_rows, static_cast<std::uint32_t>(k)};
    wide.resize(panel_rows * k);
    dequantise(type, rows.data(), panel_rows * k, wide.data());
    pack_panel(w, 0, packed.room_for(panel_bytes(type, k)), order);
  }

  // The products [count, panel_rows] of rows [first, first + count) of x, computed in one slice or in two.
  std::vector<float> multiply(const product_path& path, std::size_t first, std::size_t count, bool sliced) {
    scratch<std::byte> prepared;
    path.prepare(x.data() + first * k, count, k, prepared.room_for(path.prepared_bytes(count, k)));
    std::vector<float> out(count * panel_rows, NAN);
    if (path.begin) path.begin(count);
    for (std::size_t at = 0; at < k; at = sliced && at == 0 ? cut : k) {
      product_tile t;
      t.panel = packed.data() + panel_bytes(w.type, at);
      t.type = w.type;
      t.x = prepared.data() + path.prepared_bytes(count, at);
      t.rows = count;
      t.k = sliced && at == 0 ? cut : k - at;
      t.from = at == 0 ? nullptr : out.data();
      t.to = out.data();
      t.from_stride = t.to_stride = panel_rows;
      path.multiply(t);
    }
    if (path.end) path.end();
    return out;
  }

  bool close(const std::vector<float>& out, std::size_t row) const {
    for (std::size_t j = 0; j < panel_rows; ++j) {
      double sum = 0, size = 0;
      for (std::size_t i = 0; i < k; ++i) {
        const double product = double{x[row * k + i]} * wide[j * k + i];
        sum += product;
        size += std::abs(product);
      }
      if (!(std::abs(sum - double{out[j]}) <= 1e-4 * size)) return false;
    }
    return true;
  }
};

bool same_bits(const float* a, const float* b) { return std::memcmp(a, b, panel_rows * sizeof(float)) == 0; }

}  // namespace

bool is_exact(const product_path& path, dtype type) {
  example e(type, path.most_rows, path.codes);
  for (std::size_t count = 1; count <= path.most_rows; ++count)
    for (const bool sliced : {false, true}) {
      const std::vector<float> together = e.multiply(path, 0, count, sliced);
      for (std::size_t r = 0; r < count; ++r) {
        const std::vector<float> alone = e.multiply(path, r, 1, false);
        if (!same_bits(alone.data(), together.data() + r * panel_rows) || !e.close(alone, r)) return false;
      }
    }
  return true;
}

}  // namespace weir::kernels
