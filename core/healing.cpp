#include "core/healing.h"

#include <algorithm>

#include "core/text/tokenizer/tokenizer.h"

namespace weir::core {

std::shared_ptr<const healing> healing_of(token_id last, const tokenizer& by, std::uint32_t vocab_size) {
  if (by.is_special(last) || by.token_bytes(last).empty()) return nullptr;
  auto out = std::make_shared<healing>();
  out->token = last;
  out->bytes = by.token_bytes(last);
  out->allowed.resize((vocab_size + 31) / 32);
  for (std::uint32_t i = 0; i < std::min(vocab_size, by.vocab_size()); ++i) {
    const auto id = static_cast<token_id>(i);
    const bool begins = !by.is_special(id) && by.token_bytes(id).starts_with(out->bytes);
    if (begins) out->allowed[i / 32] |= 1u << i % 32;
  }
  return out;
}

}  // namespace weir::core
