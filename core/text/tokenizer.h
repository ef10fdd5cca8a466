// tokenizer.h — text to token ids and back, exactly as the model's tokenizer.json says.
//
// Immutable once built: share it between threads by pointer.
// Format: Hugging Face's tokenizer.json (normalizer, pre_tokenizer, model, post_processor, decoder,
// added_tokens). What of it is not supported is refused by name at load.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/token_sink.h"

namespace weir::core {

struct encode_options {
  bool add_special = true;    // let the post-processor add BOS and the like
  bool parse_special = true;  // control tokens spelled in the text become those tokens; false for user text
};

class tokenizer {
 public:
  virtual ~tokenizer() = default;

  // Broken UTF-8 is read as U+FFFD.
  virtual std::vector<token_id> encode(std::string_view utf8, encode_options how) const = 0;

  // One text written by several hands, encoded as the whole that it is: control tokens are read only where
  // every byte of them stands in `control` parts. Adds nothing around it.
  struct part {
    std::string_view text;
    bool control = false;
  };
  virtual std::vector<token_id> encode_parts(std::span<const part> parts) const;

  // The whole text of `ids` as the tokenizer's decoder gives it. Broken UTF-8 becomes U+FFFD.
  struct decode_options {
    bool skip_special = false;
    bool clean_up_spaces = false;
  };
  virtual std::string decode(std::span<const token_id> ids, decode_options how) const = 0;

  // A token's own bytes inside a running text: pieces concatenate to the decoder's text, without stripping at
  // the start. Not always whole UTF-8. Special tokens have bytes too; is_special() says which ones not to
  // show. An id that no piece has gives "".
  virtual std::string_view token_bytes(token_id id) const = 0;
  virtual bool is_special(token_id id) const = 0;

  // Whether `id` is a byte piece ("<0x0A>"): what is broken in a run of them reads differently
  // (byte_joiner.h).
  virtual bool is_byte_piece(token_id) const { return false; }

  // The piece as the vocabulary spells it (for people: `weir tokenize`, /v1/tokenize).
  virtual std::string piece(token_id id) const = 0;

  virtual std::uint32_t vocab_size() const = 0;  // one past the largest id
  virtual std::optional<token_id> bos() const = 0;
  virtual std::optional<token_id> id_of(std::string_view piece) const = 0;  // added tokens and vocabulary
  virtual bool clean_up_spaces() const = 0;  // tokenizer_config.json; absent means true
  virtual bool adds_bos() const = 0;         // whether encode(add_special) starts with bos()
};

// Reads DIR/tokenizer.json and, where present, DIR/tokenizer_config.json and special_tokens_map.json.
result<std::shared_ptr<const tokenizer>> load_tokenizer(const std::string& dir);
// The same from the files' contents; `config_json` may be empty.
result<std::shared_ptr<const tokenizer>> parse_tokenizer(std::string_view tokenizer_json,
                                                         std::string_view config_json);

// Vocabularies that need no file. sim: a prompt's bytes are its ids (0..255), and id i reads "w%03d " (i <
// 1000). numbered: one id a word, id i reads "w%06d "; any other word is an id by its hash.
std::shared_ptr<const tokenizer> make_sim_tokenizer();
std::shared_ptr<const tokenizer> make_numbered_tokenizer(std::uint32_t vocab_size);

}  // namespace weir::core
