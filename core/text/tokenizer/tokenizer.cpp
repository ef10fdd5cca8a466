#include "core/text/tokenizer/tokenizer.h"

namespace weir::core {

std::vector<token_id> tokenizer::encode_parts(std::span<const part> parts, turn* at) const {
  std::vector<token_id> ids;
  for (const part& p : parts) {
    const auto more = encode(p.text, {.add_special = false, .parse_special = p.control, .at = at});
    ids.insert(ids.end(), more.begin(), more.end());
  }
  return ids;
}

}  // namespace weir::core
