// tokenizer_settings.h — what the files beside a vocabulary say of a tokenizer: tokenizer_config.json,
// special_tokens_map.json and added_tokens.json.
//
// Thread safety: plain data and a pure function; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/tokenizer/added_tokens.h"
#include "core/text/tokenizer/hf_tokenizer.h"

namespace weir::core {

// The contents; a file that is not there is empty.
struct settings_files {
  std::string_view config, special_tokens, added_tokens;
};

struct tokenizer_settings {
  // `tokenizer_class`, else the class that `auto_map` names, without its module; empty: neither.
  std::string class_name;
  std::optional<std::string> bos, eos;  // spellings; an empty one: the files say that there is none
  std::optional<bool> clean_up_spaces, adds_bos, adds_eos, legacy, leading_space;

  // Tokens with ids, sorted by them, with distinct ids. Those that a special token names are special.
  std::vector<added_token> added;
  std::vector<std::string> special;  // spellings of special tokens

  tokenizer_config config() const { return {bos.value_or(""), clean_up_spaces.value_or(true)}; }
};

// Throws refusal. parse_config_alone() reads no more than it returns, since tokenizer.json has the rest.
tokenizer_settings parse_settings(const settings_files& files);
tokenizer_config parse_config_alone(const settings_files& files);

}  // namespace weir::core
