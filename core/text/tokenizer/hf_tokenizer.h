// hf_tokenizer.h — implements the tokenizer interface with the parts that a Hugging Face tokenizer.json has.
// Other formats are read into the same parts.
//
// Encoding: added tokens are cut out of the text. The text between them is normalized, and added tokens with
// `normalized` set are cut out of it. The rest is cut into words, and the model makes tokens of each word.
// Decoding: the bytes of each id are looked up in a table, which the decoder filled at load.
//
// Thread safety: immutable once built; any thread.
#pragma once

#include "core/text/tokenizer/added_tokens.h"
#include "core/text/tokenizer/decoder.h"
#include "core/text/tokenizer/post_processor.h"
#include "core/text/tokenizer/pretokenizer.h"
#include "core/text/tokenizer/tokenizer.h"
#include "core/text/tokenizer/word_model.h"

namespace weir::core {

// Settings from tokenizer_config.json and special_tokens_map.json.
struct tokenizer_config {
  std::string bos;  // spelling of the BOS token; empty: none
  bool clean_up_spaces = true;
};

struct tokenizer_parts {
  normalizer normal;
  added_tokens added;
  pretokenizer cuts;
  word_model model;
  post_processor around;
  decoder back;
};
// The parts of tokenizer.json; of one without `model`, with the model given. Both throw refusal.
tokenizer_parts parts_of(const json_field& file);
tokenizer_parts parts_of(const json_field& file, word_model model);

class hf_tokenizer final : public tokenizer {
 public:
  // `path`: names the file in errors. Throws refusal.
  hf_tokenizer(tokenizer_parts parts, const tokenizer_config& config, const std::string& path);

  std::vector<token_id> encode(std::string_view utf8, encode_options how) const override;
  std::vector<token_id> encode_parts(std::span<const part> parts, turn* at) const override;
  std::string decode(std::span<const token_id> ids, decode_options how) const override;

  std::string_view token_bytes(token_id id) const override { return bytes_.at(index(id)); }
  bool is_special(token_id id) const override { return traits_of(id).special; }
  bool is_byte_piece(token_id id) const override { return traits_of(id).byte_piece; }
  std::string piece(token_id id) const override { return std::string(spelling(id)); }

  std::string_view model_type() const override { return model_.type(); }
  std::uint32_t vocab_size() const override { return static_cast<std::uint32_t>(traits_.size()); }
  std::optional<token_id> bos() const override { return bos_; }
  std::optional<token_id> id_of(std::string_view piece) const override;
  bool clean_up_spaces() const override { return clean_up_spaces_; }
  bool adds_bos() const override;

 private:
  struct traits {
    bool special = false, byte_piece = false;
  };
  // Of one call of encode(): buffers that are reused for each segment, and the call's turn.
  struct scratch {
    turn* at;
    word_list words;
    word_model::workspace model;
    std::string text;
  };

  void read_pieces();
  std::string_view spelling(token_id id) const noexcept;
  static std::size_t index(token_id id) noexcept { return static_cast<std::uint32_t>(id); }
  traits traits_of(token_id id) const noexcept {
    return index(id) < traits_.size() ? traits_[index(id)] : traits{};
  }

  std::vector<token_id> encode_text(std::string_view text, const std::vector<span_of_text>& plain,
                                    turn* at) const;
  void encode_segment(std::string_view text, bool opens, bool plain, scratch& s,
                      std::vector<token_id>& out) const;
  void encode_words(std::string_view text, bool opens, scratch& s, std::vector<token_id>& out) const;

  normalizer normalizer_;
  added_tokens added_;
  pretokenizer pretokenizer_;
  word_model model_;
  post_processor post_processor_;
  decoder decoder_;

  vocabulary added_pieces_;
  string_table bytes_;          // [id] see token_bytes()
  std::vector<traits> traits_;  // [id]
  std::optional<token_id> bos_;
  bool clean_up_spaces_;
};

}  // namespace weir::core
