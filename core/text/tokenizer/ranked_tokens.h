// ranked_tokens.h — a byte-level vocabulary as tiktoken has it: tokens are bytes and have ranks, and of two
// neighbours the pair whose token has the lowest rank is joined first.
//
// Thread safety: one owner.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/text/tokenizer/hf_tokenizer.h"

namespace weir::core {

class ranked_tokens {
 public:
  // `path`: names the token in errors. Throws refusal.
  void add(std::string_view base64, std::size_t rank, const std::string& path);

  std::size_t size() const noexcept { return spelled_.size(); }

  struct rules {
    std::string expression;  // its matches are the words of a text
    bool composes = false;   // the text is normalised to NFC first
    std::size_t first_id = 0;
  };
  // A tokenizer's parts, without added tokens. The id of a token is its rank behind `first_id`. `path`: of
  // the file. Throws refusal; also where a rank or a byte has no token.
  tokenizer_parts parts(const rules& how, const std::string& path) const;

 private:
  void check(const std::string& path) const;

  std::vector<std::string> spelled_;       // [rank] in the alphabet of byte-level vocabularies; empty: none
  std::unordered_set<std::string> known_;  // the same
};

}  // namespace weir::core
