// detokenizer.h — makes text of a job's tokens, one token at a time, in whole UTF-8 characters.
//
// The texts of all calls together equal what the decoder makes of the same tokens, except that nothing is
// removed at the start. push() takes time proportional to the bytes of its token.
//
// Thread safety: one thread at a time, the one of the job's stream.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "core/text/byte_joiner.h"
#include "core/text/tokenizer/tokenizer.h"

namespace weir::core {

class detokenizer {
 public:
  // `skip_special`: special tokens have no text. `hidden`: bytes at the beginning, counted as bytes() counts,
  // that are no text (core/healing.h).
  explicit detokenizer(std::shared_ptr<const tokenizer> t, bool skip_special = true,
                       std::uint64_t hidden = 0);

  // Appends to `out` the characters that are complete with `id`. Returns whether the text so far ends with a
  // whole character, so that no bytes are held back.
  bool push(token_id id, std::string& out);

  // Ends the text: bytes that are held back become U+FFFD.
  void flush(std::string& out);

  // Sum of the sizes of token_bytes() of all tokens so far that are not special, including bytes past the
  // limit. ending::shown_bytes counts the same bytes.
  std::uint64_t bytes() const noexcept { return bytes_; }

  // Drops every byte after the first `shown_bytes`, counted as bytes() counts: this is how a stop string cuts
  // the last token. To be called before the tokens that it cuts are pushed.
  void limit(std::uint64_t shown_bytes) noexcept { limit_ = shown_bytes; }

 private:
  std::shared_ptr<const tokenizer> tokenizer_;
  bool skip_special_;
  std::uint64_t hidden_;
  byte_joiner joiner_;
  std::uint64_t bytes_ = 0;
  std::uint64_t limit_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace weir::core
