#include "core/text/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cassert>

#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

// PCRE2_MULTILINE, because ^ and $ match at every line in Ruby's syntax.
constexpr std::uint32_t compile_options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;

struct free_match {
  void operator()(pcre2_match_data* m) const noexcept { pcre2_match_data_free(m); }
};
using match_data = std::unique_ptr<pcre2_match_data, free_match>;

// Where the stack of the compiled code is too small, the interpreter does the match: its backtracking is on
// the heap. PCRE2_NO_UTF_CHECK, because the caller has checked the text.
int match(const pcre2_code* code, std::string_view text, std::size_t from, pcre2_match_data* found) {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const int rc = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, found, nullptr);
  if (rc != PCRE2_ERROR_JIT_STACKLIMIT) return rc;
  return pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, found, nullptr);
}

}  // namespace

void regex::release::operator()(void* code) const noexcept {
  pcre2_code_free(static_cast<pcre2_code*>(code));
}

regex::regex(std::string_view pattern, const json_field& where) {
  std::string complaint;
  try {
    compile(to_pcre2(pattern), complaint);
  } catch (const refusal& r) {
    throw refusal{make_error(r.why.code, "{}: {}", where.path(), r.why.message)};
  }
  if (!complaint.empty()) where.bad(complaint);
}

regex::regex(std::string_view pattern) {
  std::string complaint;
  compile(to_pcre2(pattern), complaint);
  assert(complaint.empty());
}

void regex::compile(std::string_view pattern, std::string& complaint) {
  int failed = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   compile_options, &failed, &at, nullptr);
  if (code == nullptr) {
    char text[128] = {};
    pcre2_get_error_message(failed, reinterpret_cast<PCRE2_UCHAR*>(text), sizeof text);
    complaint = fmt::format("not a pattern: {} (at {} of '{}')", text, at, pattern);
    return;
  }
  code_ = std::shared_ptr<void>(code, release{});
  plain_ = pattern.find('(') == pattern.npos && pattern.find("\\K") == pattern.npos;
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // on failure, pcre2_match() uses the interpreter
}

void regex::find(std::string_view text, std::vector<span_of_text>& out, turn* at) const {
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  const match_data found(pcre2_match_data_create(1, nullptr));
  const PCRE2_SIZE* where = pcre2_get_ovector_pointer(found.get());
  work_steps all(at);
  std::size_t from = 0, last_end = std::string_view::npos;
  while (from <= text.size() && match(code, text, from, found.get()) >= 0) {
    const span_of_text hit{where[0], where[1]};
    all.add(4 + hit.end - std::min(from, hit.end));
    const bool empty_after_match = hit.begin >= hit.end && hit.end == last_end;
    if (empty_after_match) {
      if (from >= text.size()) return;
      from += character_size(text[from]);
      continue;
    }
    out.push_back(hit);
    from = last_end = hit.end;
  }
}

// PCRE2_INFO_MINLENGTH counts what a group looks at behind the match, too.
std::size_t regex::shortest_match() const {
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  std::uint32_t may_be_empty = 1, least = 0;
  pcre2_pattern_info(code, PCRE2_INFO_MATCHEMPTY, &may_be_empty);
  pcre2_pattern_info(code, PCRE2_INFO_MINLENGTH, &least);
  if (may_be_empty) return 0;
  return plain_ ? std::max(least, 1u) : 1;
}

pattern::pattern(const json_field& at) : what_(std::string()) {
  const json_field field = at.find("String") ? at.at("String") : at.at("Regex");
  if (field.text().empty()) field.bad("must not be empty");
  if (at.find("String")) {
    what_ = std::string(field.text());
  } else {
    what_ = regex(field.text(), field);
  }
}

void pattern::find(std::string_view text, std::vector<span_of_text>& out, turn* at) const {
  if (const auto* r = std::get_if<regex>(&what_)) return r->find(text, out, at);
  const auto& literal = std::get<std::string>(what_);
  work_steps all(at);
  for (std::size_t hit = text.find(literal); hit != text.npos; hit = text.find(literal, out.back().end)) {
    out.push_back({hit, hit + literal.size()});
    all.add(4);
  }
}

double pattern::growth_of(std::string_view by) const {
  const auto* r = std::get_if<regex>(&what_);
  const std::size_t shortest = r ? r->shortest_match() : std::get<std::string>(what_).size();
  const auto size = static_cast<double>(by.size());
  return shortest == 0 ? 1 + size : std::max(1.0, size / static_cast<double>(shortest));
}

bool pattern::drops_start(std::string_view text, std::string_view by, turn* at) const {
  if (!by.empty()) return false;
  std::vector<span_of_text> hits;
  find(text, hits, at);
  return !hits.empty() && hits[0].begin == 0 && hits[0].end > 0;
}

std::string pattern::replace(std::string_view text, std::string_view by, turn* at) const {
  std::vector<span_of_text> hits;
  find(text, hits, at);
  std::string out;
  out.reserve(text.size() + hits.size() * by.size());
  std::size_t done = 0;
  for (const span_of_text& hit : hits) {
    out.append(text.substr(done, hit.begin - done)).append(by);
    done = hit.end;
  }
  return out.append(text.substr(done));
}

}  // namespace weir::core
