// gguf_rules.h — the rules by which byte-level tokenizers cut a text into words, by the names that GGUF files
// give them (tokenizer.ggml.pre). The expressions are those of the tokenizer.json files.
//
// Thread safety: immutable data; any thread.
#pragma once

#include <span>
#include <string_view>

namespace weir::core {

struct gguf_rule {
  std::span<const std::string_view> expressions;  // each cuts the words that the one before it left
  bool single_digits = false;                     // numerals are words of one character, before all else
  bool ignore_merges = false;                     // a word that is in the vocabulary is one token
  bool adds_bos = false;                          // where no key says so
  bool composes = false;                          // the text is normalised to NFC first
};

// Null for a name that is not known.
const gguf_rule* find_gguf_rule(std::string_view name) noexcept;

}  // namespace weir::core
