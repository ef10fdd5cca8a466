#include "core/text/detokenizer.h"

#include <algorithm>

namespace weir::core {

detokenizer::detokenizer(std::shared_ptr<const tokenizer> t, bool skip_special)
    : tokenizer_(std::move(t)), skip_special_(skip_special) {}

bool detokenizer::push(token_id id, std::string& out) {
  std::string_view bytes = tokenizer_->token_bytes(id);
  const std::uint64_t room = limit_ - std::min(limit_, bytes_);
  bytes_ += bytes.size();
  if (!(skip_special_ && tokenizer_->is_special(id))) {
    joiner_.push(bytes.substr(0, std::min<std::uint64_t>(room, bytes.size())), tokenizer_->is_byte_piece(id),
                 out);
  }
  return joiner_.empty();
}

void detokenizer::flush(std::string& out) { joiner_.finish(out); }

}  // namespace weir::core
