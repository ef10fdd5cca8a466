#include "core/text/tokenizer/byte_pieces.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir::core {

byte_pieces::byte_pieces(const vocabulary& pieces) {
  for (unsigned b = 0; b < 256; ++b) ids_[b] = pieces.find(fmt::format("<0x{:02X}>", b)).value_or(-1);
}

bool byte_pieces::append(std::string_view bytes, std::vector<token_id>& out) const {
  const auto id = [&](char b) { return ids_[static_cast<unsigned char>(b)]; };
  if (std::ranges::any_of(bytes, [&](char b) { return id(b) < 0; })) return false;
  for (const char b : bytes) out.push_back(id(b));
  return true;
}

bool byte_pieces::all() const noexcept {
  return std::ranges::all_of(ids_, [](token_id id) { return id >= 0; });
}

}  // namespace weir::core
