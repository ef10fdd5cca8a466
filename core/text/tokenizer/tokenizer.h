// tokenizer.h — makes token ids of text and text of token ids.
//
// Formats: Hugging Face's tokenizer.json (normalizer, pre_tokenizer, model, post_processor, decoder,
// added_tokens); Mistral's tekken.json; a model of SentencePiece; ranks of tiktoken; the keys of a GGUF file.
// A feature that is not supported is refused at load, with an error that names it.
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/token.h"
#include "core/turn.h"

namespace weir::core {

struct encode_options {
  bool add_special = true;    // the post-processor adds its tokens, such as BOS
  bool parse_special = true;  // control tokens are recognised in the text; false for user text
  // Where go_on() says that nobody wants the ids, encode() ends, and returns none.
  turn* at = nullptr;
};

class tokenizer {
 public:
  virtual ~tokenizer() = default;

  // The ids of a text. A tokenizer from tokenizer.json reads invalid UTF-8 as U+FFFD; one that needs no file
  // takes any bytes.
  virtual std::vector<token_id> encode(std::string_view utf8, encode_options how) const = 0;

  // Encodes the parts as one text. A control token is recognised only if all its bytes are in `control`
  // parts. The post-processor's tokens are not added. `at` as in encode_options. The default implementation
  // encodes each part by itself, for tokenizers whose tokens do not depend on the text around them.
  struct part {
    std::string_view text;
    bool control = false;
  };
  virtual std::vector<token_id> encode_parts(std::span<const part> parts, turn* at = nullptr) const;

  // The text of `ids`, as the tokenizer's decoder makes it. Invalid UTF-8 becomes U+FFFD.
  struct decode_options {
    bool skip_special = false;
    bool clean_up_spaces = false;
  };
  virtual std::string decode(std::span<const token_id> ids, decode_options how) const = 0;

  // The bytes of one token in the middle of a text: the bytes of all tokens together are the decoder's text,
  // before it removes anything at the start. They may begin or end inside a UTF-8 character. Special tokens
  // have bytes too. Empty for an id without a piece.
  virtual std::string_view token_bytes(token_id id) const = 0;
  // Whether the token is a control token, which is normally not shown.
  virtual bool is_special(token_id id) const = 0;

  // Whether `id` is a byte piece ("<0x0A>"): invalid UTF-8 in a run of them is special (byte_joiner.h).
  virtual bool is_byte_piece(token_id) const { return false; }

  // The piece as the vocabulary spells it, for people to read (`weir tokenize`, /v1/tokenize).
  virtual std::string piece(token_id id) const = 0;

  // How it makes tokens of a word, such as BPE; empty for one that needs no file.
  virtual std::string_view model_type() const { return {}; }

  virtual std::uint32_t vocab_size() const = 0;  // one past the largest id
  virtual std::optional<token_id> bos() const = 0;
  virtual std::optional<token_id> id_of(std::string_view piece) const = 0;  // added tokens, then vocabulary
  virtual bool clean_up_spaces() const = 0;  // of tokenizer_config.json, where the default is true
  virtual bool adds_bos() const = 0;         // whether encode(add_special) starts with bos()
};

// Reads a directory's tokenizer.json, or else its tekken.json, tokenizer.model, tiktoken.model or *.tiktoken;
// and, if they exist, tokenizer_config.json, special_tokens_map.json and added_tokens.json. If `dir` is a
// GGUF file, its keys say the same. Errors: bad_file, not_supported; the message names the file and the
// field.
result<std::shared_ptr<const tokenizer>> load_tokenizer(const std::string& dir);
// A tokenizer from the contents of the first two files; `config_json` may be empty. Errors as above.
result<std::shared_ptr<const tokenizer>> parse_tokenizer(std::string_view tokenizer_json,
                                                         std::string_view config_json);

// A vocabulary of 1000 ids that needs no file. The ids of a prompt are its bytes (0..255). The text of id i
// is "w%03d ".
std::shared_ptr<const tokenizer> make_sim_tokenizer();
// A vocabulary of 257 ids that needs no file: ids 0 to 255 are bytes, and 256 is the control token that ends
// an answer (core/model/sim_script.h). Its spelling stands for it nowhere in a text.
std::shared_ptr<const tokenizer> make_byte_tokenizer();
// A vocabulary that needs no file and has one id for each word. The text of id i is "w%06d ". The id of any
// other word is a hash of the word.
std::shared_ptr<const tokenizer> make_numbered_tokenizer(std::uint32_t vocab_size);

}  // namespace weir::core
