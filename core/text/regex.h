// regex.h — the patterns of tokenizer.json: written for Oniguruma (Ruby's syntax), run by PCRE2.
//
// Immutable once compiled: any thread. What PCRE2 would read differently is translated, or refused by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/text/json_field.h"

namespace weir::core {

// A stretch of a text, in bytes.
struct span_of_text {
  std::size_t begin = 0, end = 0;
  std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
};

class regex {
 public:
  // Throws refusal, naming `where`.
  regex(std::string_view pattern, const json_field& where);
  explicit regex(std::string_view pattern);  // one of our own

  // Appends every match in valid `text`, left to right, none overlapping. A match beyond PCRE2's limits is
  // none.
  void find(std::string_view text, std::vector<span_of_text>& out) const;

 private:
  void compile(std::string_view pattern, std::string& complaint);
  struct release {
    void operator()(void* code) const noexcept;
  };
  std::shared_ptr<void> code_;
};

// {"String": …} or {"Regex": …}.
class pattern {
 public:
  explicit pattern(const json_field& at);
  explicit pattern(std::string literal) : what_(std::move(literal)) {}
  explicit pattern(regex compiled) : what_(std::move(compiled)) {}
  void find(std::string_view text, std::vector<span_of_text>& out) const;
  // `text` with every match replaced.
  std::string replace(std::string_view text, std::string_view by) const;

 private:
  std::variant<std::string, regex> what_;
};

// Oniguruma's pattern in PCRE2's words; throws refusal with what it cannot say. Exposed for its test.
std::string to_pcre2(std::string_view pattern);

}  // namespace weir::core
