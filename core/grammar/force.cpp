#include "core/grammar/force.h"

namespace weir::core::grammar {

std::string forced_bytes(constraint& over, config_id at, std::size_t most) {
  std::string out;
  while (out.size() < most) {
    const auto b = over.only_byte(at);
    if (!b) break;
    at = over.step(at, *b);
    if (at <= constraint::failed) break;
    out += static_cast<char>(*b);
  }
  return out;
}

std::optional<token_id> single_token(const cursor& c) {
  if (c.may_end()) return std::nullopt;
  const auto* mask = c.mask();
  if (!mask || mask->count() != 1) return std::nullopt;
  return mask->ids().front();
}

}  // namespace weir::core::grammar
