// detokenizer.h — a job's tokens to text as they come: whole UTF-8 only, O(new tokens) a call.
//
// Used by one stream on its own thread. The text of all calls together equals the decoder's text over the
// same tokens, without stripping at its start; special tokens give none unless asked for.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "core/text/byte_joiner.h"
#include "core/text/tokenizer.h"

namespace weir::core {

class detokenizer {
 public:
  explicit detokenizer(std::shared_ptr<const tokenizer> t, bool skip_special = true);

  // Appends to `out` what `id` completes. Returns true where nothing is held back after it: the text so far
  // ends with a whole character.
  bool push(token_id id, std::string& out);

  // The end: appends what was held, broken UTF-8 as U+FFFD.
  void flush(std::string& out);

  // Bytes pushed so far: tokenizer::token_bytes of every token that is not special, shown or not. What
  // ending::shown_bytes counts.
  std::uint64_t bytes() const noexcept { return bytes_; }

  // Bytes past this many are dropped: how a stop string cuts the last token. May be set at any time before
  // the tokens it cuts are pushed.
  void limit(std::uint64_t shown_bytes) noexcept { limit_ = shown_bytes; }

 private:
  std::shared_ptr<const tokenizer> tokenizer_;
  bool skip_special_;
  byte_joiner joiner_;
  std::uint64_t bytes_ = 0;
  std::uint64_t limit_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace weir::core
