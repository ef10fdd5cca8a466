// spelled_words.h — a vocabulary for benchmarks of constraints: the printable characters, then words like
// "w000123 ", so that every text of these characters can be spelled.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/text/tokenizer/tokenizer.h"

namespace weir::apps::bench {

class spelled_words final : public core::tokenizer {
 public:
  explicit spelled_words(std::uint32_t size) {
    for (std::uint32_t id = 0; id < size; ++id)
      words_.push_back(id < characters ? std::string(1, static_cast<char>(' ' + id))
                                       : fmt::format("w{:06} ", id));
  }

  std::vector<core::token_id> encode(std::string_view, core::encode_options) const override { return {}; }
  std::string decode(std::span<const core::token_id> ids, decode_options) const override {
    std::string text;
    for (const auto id : ids) text += token_bytes(id);
    return text;
  }
  std::string_view token_bytes(core::token_id id) const override {
    return words_.at(static_cast<std::size_t>(id));
  }
  bool is_special(core::token_id) const override { return false; }
  std::string piece(core::token_id id) const override { return std::string(token_bytes(id)); }
  std::uint32_t vocab_size() const override { return static_cast<std::uint32_t>(words_.size()); }
  std::optional<core::token_id> bos() const override { return std::nullopt; }
  std::optional<core::token_id> id_of(std::string_view) const override { return std::nullopt; }
  bool clean_up_spaces() const override { return false; }
  bool adds_bos() const override { return false; }

 private:
  static constexpr std::uint32_t characters = '~' - ' ' + 1;
  std::vector<std::string> words_;
};

}  // namespace weir::apps::bench
