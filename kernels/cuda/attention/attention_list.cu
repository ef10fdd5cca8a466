// The list of decoding rows that the blocks of attention_bulk.cu work through.
#include <algorithm>

#include "kernels/cuda/attention/attention_piece.h"

namespace weir::kernels::cuda {
namespace {

std::uint32_t pieces(const decode_row& r) {
  return static_cast<std::uint32_t>(r.position) / piece_tokens + 1;
}

}  // namespace

std::uint32_t list_decodes(const cuda_facts& d, const head_shape& h, std::span<const decode_row> rows,
                           decode_row* out) {
  if (rows.empty()) return 0;
  std::uint64_t all = 0;
  std::uint32_t longest = 0;
  for (const decode_row& r : rows) {
    all += pieces(r);
    longest = std::max(longest, pieces(r));
  }
  const std::uint64_t share = all * h.kv_heads / bulk_blocks(d, h), mean = all / rows.size();
  const auto limit =
      static_cast<std::uint32_t>(std::max({std::uint64_t{page_pieces}, share * 5 / 4, mean * 5 / 4}));
  const auto parts_of = [&](std::uint32_t p) {
    return p <= limit ? 1 : std::min(255u, (p + limit - 1) / limit);
  };
  // Longest first: the class of an entry is how many sixteenths of the longest entry it has. The factor
  // `scale` replaces a division.
  constexpr std::uint32_t classes = 17;
  const std::uint64_t scale = (std::uint64_t{16} << 32) / std::min(longest, limit);
  const auto class_of = [&](std::uint32_t p, std::uint32_t parts) {
    const std::uint64_t sixteenths = (parts == 1 ? p : p / parts) * scale >> 32;
    return classes - 1 - std::min<std::uint32_t>(classes - 1, static_cast<std::uint32_t>(sixteenths));
  };
  std::uint32_t first[classes + 1] = {};
  for (const decode_row& r : rows) {
    const std::uint32_t p = pieces(r), parts = parts_of(p);
    first[class_of(p, parts) + 1] += parts;
  }
  for (std::uint32_t c = 0; c < classes; ++c) first[c + 1] += first[c];
  std::uint32_t slot = 0;
  for (const decode_row& r : rows) {
    const std::uint32_t p = pieces(r), parts = parts_of(p);
    std::uint32_t& at = first[class_of(p, parts)];
    for (std::uint32_t i = 0; i < parts; ++i) {
      decode_row& e = out[at++];
      e = r;
      e.part = static_cast<std::uint8_t>(i);
      e.parts = static_cast<std::uint8_t>(parts);
      e.slot = static_cast<std::uint16_t>(slot);
    }
    if (parts > 1) slot += parts;
  }
  return first[classes];
}

}  // namespace weir::kernels::cuda
