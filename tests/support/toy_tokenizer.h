// toy_tokenizer.h — a vocabulary written out in a test: id i has the i-th piece; a piece <like this> is
// special.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/tokenizer/tokenizer.h"

namespace weir::tests {

class toy_tokenizer final : public core::tokenizer {
 public:
  explicit toy_tokenizer(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}

  // Takes the longest piece with which the rest begins, again and again. Bytes that begin no piece are left
  // out.
  std::vector<core::token_id> encode(std::string_view text, core::encode_options) const override {
    std::vector<core::token_id> out;
    while (!text.empty()) {
      std::size_t best = pieces_.size(), length = 0;
      for (std::size_t i = 0; i < pieces_.size(); ++i)
        if (pieces_[i].size() > length && text.starts_with(pieces_[i])) best = i, length = pieces_[i].size();
      if (length > 0) out.push_back(static_cast<core::token_id>(best));
      text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out;
  }
  std::string decode(std::span<const core::token_id> ids, decode_options) const override {
    std::string out;
    for (const auto id : ids) {
      if (!is_special(id)) out += token_bytes(id);
    }
    return out;
  }
  std::string_view token_bytes(core::token_id id) const override {
    return pieces_.at(static_cast<std::size_t>(id));
  }
  bool is_special(core::token_id id) const override {
    const auto b = token_bytes(id);
    return b.size() > 1 && b.front() == '<' && b.back() == '>';
  }
  std::string piece(core::token_id id) const override { return std::string(token_bytes(id)); }
  std::uint32_t vocab_size() const override { return static_cast<std::uint32_t>(pieces_.size()); }
  std::optional<core::token_id> bos() const override { return std::nullopt; }
  std::optional<core::token_id> id_of(std::string_view p) const override {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i] == p) return static_cast<core::token_id>(i);
    }
    return std::nullopt;
  }
  bool clean_up_spaces() const override { return false; }
  bool adds_bos() const override { return false; }

 private:
  std::vector<std::string> pieces_;
};

// Pieces "a".."z", then "aa", "ab", … : as many as asked for.
inline std::shared_ptr<const core::tokenizer> letters(std::uint32_t vocab_size) {
  std::vector<std::string> pieces;
  for (std::uint32_t i = 0; i < vocab_size; ++i) {
    std::string p(1, static_cast<char>('a' + i % 26));
    if (i >= 26) p.insert(p.begin(), static_cast<char>('a' + (i / 26 - 1) % 26));
    pieces.push_back(p);
  }
  return std::make_shared<toy_tokenizer>(pieces);
}

}  // namespace weir::tests
