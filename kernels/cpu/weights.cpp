// Weight matrices in the packed layout: packing them, and gather, which reads single rows.
#include <algorithm>

#include "kernels/cpu/backend.h"
#include "kernels/cpu/packing.h"

namespace weir::kernels {

std::uint64_t cpu_weight_bytes(void*, dtype type, std::uint32_t rows, std::uint32_t cols) {
  return packed_bytes(type, rows, cols);
}

void cpu_pack(void* self, const matrix& rows_on_host, void* to) {
  auto& cpu = *static_cast<cpu_state*>(self);
  const std::size_t bytes = panel_bytes(rows_on_host.type, rows_on_host.cols);
  const code_order order = cpu.path_of(rows_on_host.type).codes;
  const auto one = [&](std::uint32_t panel, unsigned) {
    pack_panel(rows_on_host, panel, static_cast<std::byte*>(to) + panel * bytes, order);
  };
  cpu.workers.run(static_cast<std::uint32_t>(panels_of(rows_on_host.rows)), one);
}

void cpu_gather(void* self, const gather& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  const std::size_t width = op.table.cols, row_bytes = bytes_of(op.table.type, width);
  const code_order order = cpu.path_of(op.table.type).codes;
  const auto widen = [&](std::size_t r) {
    const auto row = static_cast<std::size_t>(op.ids[r]);
    float* out = op.out + r * width;
    if (op.table.order == layout::packed) return unpack_row(op.table, row, out, order);
    const auto* from = static_cast<const std::byte*>(op.table.data) + row * row_bytes;
    if (!is_plain(op.table.type)) return dequantise(op.table.type, from, width, out);
    cpu.simd.widen(from, op.table.type, out, width);
  };
  const auto one = [&](std::size_t r) {
    widen(r);
    if (op.factor != 1) cpu.simd.soft_cap(op.out + r * width, width, op.factor, 0);
  };
  constexpr std::size_t worth_sharing = 1u << 15, piece = 16;  // elements; rows
  if (op.ids.size() * width < worth_sharing) {
    for (std::size_t r = 0; r < op.ids.size(); ++r) one(r);
    return;
  }
  const auto pieces = static_cast<std::uint32_t>((op.ids.size() + piece - 1) / piece);
  cpu.workers.run(pieces, [&](std::uint32_t item, unsigned) {
    for (std::size_t r = item * piece; r < std::min<std::size_t>((item + 1) * piece, op.ids.size()); ++r)
      one(r);
  });
}

}  // namespace weir::kernels
