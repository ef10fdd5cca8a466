#include "core/text/byte_joiner.h"

#include "core/text/tokenizer/unicode.h"

namespace weir::core {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

// Returns the number of bytes at the end of `bytes` that belong to an unfinished character.
std::size_t byte_joiner::append_characters(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const utf8_step step = next_utf8(bytes);
    const std::string_view character = bytes.substr(0, step.size);
    if (step.what == utf8_step::kind::cut) return bytes.size();
    if (step.what == utf8_step::kind::broken) {
      for (std::size_t i = 0; i < (in_run_ ? step.size : 1); ++i) out += replacement_character;
    } else if (!opens_run_ || character != byte_order_mark) {
      out += character;
    }
    opens_run_ = false;
    bytes.remove_prefix(step.size);
  }
  return 0;
}

void byte_joiner::push(std::string_view bytes, bool byte_piece, std::string& out) {
  if (bytes.empty()) return;
  if (byte_piece != in_run_) {
    finish(out);
    in_run_ = opens_run_ = byte_piece;
  }
  if (held_.empty()) {
    held_ = bytes.substr(bytes.size() - append_characters(bytes, out));
  } else {
    held_ += bytes;
    held_.erase(0, held_.size() - append_characters(held_, out));
  }
}

void byte_joiner::finish(std::string& out) {
  const std::size_t marks = in_run_ ? held_.size() : held_.empty() ? 0 : 1;
  for (std::size_t i = 0; i < marks; ++i) out += replacement_character;
  held_.clear();
  in_run_ = opens_run_ = false;
}

}  // namespace weir::core
