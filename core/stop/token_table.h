// token_table.h — the bytes that each token adds to a job's text, in which stop strings are searched.
//
// Each engine has one table, a copy of tokenizer::token_bytes() in contiguous memory, so that a token costs
// no virtual call. A special token adds no bytes. Nor does an id that the tokenizer does not know: a model's
// vocabulary is often padded.
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/token.h"

namespace weir::core {

class tokenizer;  // core/text/tokenizer/tokenizer.h

class token_table {
 public:
  explicit token_table(const tokenizer& t);

  // Bytes of a token. REQUIRES: id >= 0.
  std::string_view operator[](token_id id) const {
    const auto i = static_cast<std::size_t>(id);
    if (i + 1 >= starts_.size()) return {};
    return std::string_view(bytes_).substr(starts_[i], starts_[i + 1] - starts_[i]);
  }

 private:
  std::string bytes_;                // of all tokens, in the order of their ids
  std::vector<std::size_t> starts_;  // [vocab_size + 1] offset in bytes_
};

}  // namespace weir::core
