#include "core/text/detokenizer.h"

#include <algorithm>

namespace weir::core {

detokenizer::detokenizer(std::shared_ptr<const tokenizer> t, bool skip_special, std::uint64_t hidden)
    : tokenizer_(std::move(t)), skip_special_(skip_special), hidden_(hidden) {}

bool detokenizer::push(token_id id, std::string& out) {
  const std::string_view bytes = tokenizer_->token_bytes(id);
  const std::uint64_t room = limit_ - std::min(limit_, bytes_);
  std::uint64_t from = 0, shown = std::min<std::uint64_t>(room, bytes.size());
  if (tokenizer_->is_special(id)) {
    shown = skip_special_ || room == 0 ? 0 : bytes.size();
  } else {
    from = std::min(hidden_ - std::min(hidden_, bytes_), shown);
    bytes_ += bytes.size();
  }
  joiner_.push(bytes.substr(from, shown - from), tokenizer_->is_byte_piece(id), out);
  return joiner_.empty();
}

void detokenizer::flush(std::string& out) { joiner_.finish(out); }

}  // namespace weir::core
