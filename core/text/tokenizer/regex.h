// regex.h — the patterns of tokenizer.json: written for Oniguruma (Ruby's syntax), run by PCRE2.
//
// Syntax that means something else in PCRE2 is translated, or refused with an error that names it.
//
// Thread safety: immutable once compiled; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/text/json_field.h"
#include "core/turn.h"

namespace weir::core {

// A part of a text: offsets in bytes, without the byte at `end`.
struct span_of_text {
  std::size_t begin = 0, end = 0;
  std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
};

class regex {
 public:
  // Throws refusal if the pattern is wrong or not supported. `where`: the field that the error names.
  regex(std::string_view pattern, const json_field& where);
  // REQUIRES: the pattern is correct.
  explicit regex(std::string_view pattern);

  // Appends every match in `text`, from left to right, without overlap. Where PCRE2 gives up because of one
  // of its limits, the search ends. `at`: turn.h; this throws nobody_waits. REQUIRES: `text` is valid UTF-8.
  void find(std::string_view text, std::vector<span_of_text>& out, turn* at = nullptr) const;
  // No match has fewer characters. 0 or 1 for a pattern with groups, whose lengths are not known.
  std::size_t shortest_match() const;

 private:
  void compile(std::string_view pattern, std::string& complaint);
  struct release {
    void operator()(void* code) const noexcept;
  };
  std::shared_ptr<void> code_;
  bool plain_ = false;  // without groups and \K, so that a match is all that the pattern looks at
};

// A string or a regular expression to search for, from {"String": …} or {"Regex": …}.
class pattern {
 public:
  explicit pattern(const json_field& at);
  explicit pattern(std::string literal) : what_(std::move(literal)) {}
  explicit pattern(regex compiled) : what_(std::move(compiled)) {}
  void find(std::string_view text, std::vector<span_of_text>& out, turn* at = nullptr) const;
  // `text` with every match replaced.
  std::string replace(std::string_view text, std::string_view by, turn* at = nullptr) const;
  // Whether replace() puts nothing for bytes at the start of `text`.
  bool drops_start(std::string_view text, std::string_view by, turn* at = nullptr) const;
  // How many times as long replace() may make a text; at least 1.
  double growth_of(std::string_view by) const;

 private:
  std::variant<std::string, regex> what_;
};

// Translates a pattern from Oniguruma to PCRE2; throws refusal if it uses a feature that is not supported.
// Public only for its test.
std::string to_pcre2(std::string_view pattern);

}  // namespace weir::core
