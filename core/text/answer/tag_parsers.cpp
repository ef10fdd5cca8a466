// Parsers of the kinds whose arguments are not JSON: the parsers write the JSON.
#include "core/text/answer/call_parsers.h"

namespace weir::core {
namespace {

constexpr std::string_view cdata_open = "<![CDATA[", cdata_close = "]]>";

// Where a spelling is at or behind `from`. `place`: its beginning, or that of what could become one; npos:
// nowhere.
fit find(std::string_view in, std::string_view spelling, std::size_t from, std::size_t& place,
         std::size_t& end) {
  for (place = in.find(spelling.front(), from); place != in.npos;
       place = in.find(spelling.front(), place + 1)) {
    const fit is = compare(in, place, spelling, end);
    if (is != fit::no) return is;
  }
  return fit::no;
}

std::string_view without_line_ends(std::string_view s) {
  if (s.starts_with('\n')) s.remove_prefix(1);
  if (s.ends_with('\n')) s.remove_suffix(1);
  return s;
}

}  // namespace

parsing call_parsers::waits_for_text() {
  bool more = true;
  while (more && !in_.has()) more = co_await in_.more();
  co_return more;
}

parsing call_parsers::word(std::string& out) {
  constexpr std::string_view ends = " \t\r\n<>\"'{}()[]=,\xFF";
  for (;;) {
    in_.skip_white();  // in front of the name: white space behind a name ends it
    const auto ahead = in_.ahead();
    const auto end = ahead.find_first_of(ends);
    if (end == 0 || std::min(end, ahead.size()) > longest_name) co_return false;
    if (end != ahead.npos) {
      out.assign(ahead.substr(0, end));
      in_.at += end;
      co_return true;
    }
    if (!co_await in_.more()) co_return false;
  }
}

void call_parsers::give_key(std::string_view key) {
  in_.give_arguments(has_members_ ? ", " : "");
  in_.give_arguments(json_string(key));
  in_.give_arguments(": ");
  has_members_ = true;
}

// ---- arguments between tags

parsing call_parsers::tagged() {
  std::string name, key;
  if (!co_await word(name)) co_return false;
  if (!co_await spelling(name_end_)) co_return false;
  begin(name, {});
  const parameter_types types(in_.tool() ? std::string_view(in_.tool()->parameters) : std::string_view());
  in_.give_arguments("{");
  has_members_ = false;
  while (co_await spelling(key_open_)) {
    json_types wanted = 0;
    if (!co_await tag_key(key, wanted)) co_return false;
    if (wanted == 0) wanted = types.of(key);
    give_key(key);
    in_.decide();
    const bool is_text = wanted == json_text_type && !f_.cdata;
    bool closed = false;
    if (is_text)
      closed = co_await text_value(value_close_, f_.value_lines);
    else
      closed = co_await typed_value(value_close_, f_.value_lines, wanted);
    if (!closed) co_return false;
  }
  if (!co_await spelling(close_)) co_return false;
  in_.give_arguments("}");
  in_.end_call();
  in_.decide();
  co_return true;
}

parsing call_parsers::tag_key(std::string& key, json_types& wanted) {
  if (!f_.says_string) {
    if (!co_await until(key_end_, "", key)) co_return false;
    co_return co_await spelling(key_end_);
  }
  if (!co_await until("\"", "", key)) co_return false;
  if (!co_await spelling("\" string=\"")) co_return false;
  std::string says;
  if (!co_await word(says)) co_return false;
  if (says == "true") wanted = json_text_type;
  co_return co_await spelling(key_end_);
}

// The inside of a JSON string, given while it comes. `lines`: a line feed at each end is not part of it.
parsing call_parsers::text_value(std::string_view close, bool lines) {
  std::string made;
  in_.give_arguments("\"");
  if (lines) {
    if (!co_await waits_for_text()) co_return false;
    if (in_.next() == '\n') ++in_.at;
  }
  for (;;) {
    std::size_t place = 0, end = 0;
    const fit is = find(in_.buffer, close, in_.at, place, end);
    std::size_t stop = std::min(place, in_.buffer.size());
    const bool line = lines && stop > in_.at && in_.buffer[stop - 1] == '\n';
    if (line) --stop;
    made.clear();
    append_escaped(made, in_.spelled(std::string_view(in_.buffer).substr(in_.at, stop - in_.at), true));
    in_.give_arguments(made);
    in_.decide(stop);
    if (is == fit::whole) {
      in_.decide(end);
      in_.give_arguments("\"");
      co_return true;
    }
    if (!co_await in_.more()) co_return false;
  }
}

// A value whose type is known at its end only.
parsing call_parsers::typed_value(std::string_view close, bool lines, json_types wanted) {
  std::size_t seen = 0;
  for (;;) {
    const bool quoted = f_.cdata && in_.ahead().starts_with(cdata_open);
    std::size_t place = 0, end = 0;
    fit is = find(in_.buffer, close, in_.at + seen, place, end);
    const auto text =
        std::string_view(in_.buffer).substr(in_.at, std::min(place, in_.buffer.size()) - in_.at);
    if (is == fit::whole && quoted && !text.ends_with(cdata_close)) {  // the mark is part of the value
      seen = place + 1 - in_.at;
      continue;
    }
    if (is != fit::whole) {
      seen = text.size();
      if (!co_await in_.more()) co_return false;
      continue;
    }
    std::string said = in_.spelled(lines ? without_line_ends(text) : text, true);
    if (quoted) said = said.substr(cdata_open.size(), said.size() - cdata_open.size() - cdata_close.size());
    in_.give_arguments(quoted && wanted == 0 ? json_string(said) : json_of_parameter(said, wanted));
    in_.decide(end);
    co_return true;
  }
}

// ---- calls as Python writes them

parsing call_parsers::pythonic() {
  for (bool first = true;; first = false) {
    const bool closed = co_await spelling(close_);
    if (closed && first) co_return false;
    if (closed) break;
    if (!first && !co_await spelling(",")) co_return false;
    if (!co_await python_call()) co_return false;
  }
  in_.decide();
  co_return true;
}

parsing call_parsers::python_call() {
  std::string name, key, value;
  if (!co_await word(name)) co_return false;
  if (!co_await spelling("(")) co_return false;
  begin(name, {});
  in_.give_arguments("{");
  has_members_ = false;
  while (!co_await spelling(")")) {
    if (has_members_ && !co_await spelling(",")) co_return false;
    if (!co_await word(key)) co_return false;
    if (!co_await spelling("=")) co_return false;
    if (!co_await value_text(")", value)) co_return false;
    const auto json = json_of_python(value);
    if (!json) co_return false;
    give_key(key);
    in_.give_arguments(*json);
    in_.decide();
  }
  in_.give_arguments("}");
  in_.end_call();
  in_.decide();
  co_return true;
}

// Text up to a comma, or to a bracket of `closing`, that stands outside of strings and brackets.
parsing call_parsers::value_text(std::string_view closing, std::string& out) {
  std::size_t seen = 0, depth = 0;
  char quote = '\0';
  bool in_quote = false, escaped = false;
  for (;;) {
    while (seen < in_.ahead().size()) {
      const auto ahead = in_.ahead().substr(seen);
      if (!quote_.empty() && ahead.starts_with(quote_)) {
        in_quote = !in_quote;
        seen += quote_.size();
        continue;
      }
      if (!quote_.empty() && std::string_view(quote_).starts_with(ahead)) break;  // a part of it
      const char c = ahead.front();
      const bool free = !in_quote && quote == '\0';
      if (free && depth == 0 && (c == ',' || closing.find(c) != closing.npos)) {
        out = in_.spelled(in_.ahead().substr(0, seen), true);
        in_.at += seen;
        co_return true;
      }
      if (free && (c == '[' || c == '{' || c == '(')) ++depth;
      if (free && (c == ']' || c == '}' || c == ')') && depth-- == 0) co_return false;
      if (quote_.empty() && !escaped && (c == '"' || c == '\''))
        quote = quote == '\0' ? c : quote == c ? '\0' : quote;
      escaped = quote != '\0' && c == '\\' && !escaped;
      seen += c == mark_byte ? 2 : 1;
    }
    if (!co_await in_.more()) co_return false;
  }
}

// ---- Gemma 4

parsing call_parsers::gemma() {
  std::string name, key;
  if (!co_await word(name)) co_return false;
  if (!co_await spelling("{")) co_return false;
  begin(name, {});
  in_.give_arguments("{");
  has_members_ = false;
  while (!co_await spelling("}")) {
    if (has_members_ && !co_await spelling(",")) co_return false;
    if (co_await spelling(quote_)) {
      if (!co_await until(quote_, "", key)) co_return false;
      if (!co_await spelling(quote_)) co_return false;
    } else {
      if (!co_await until(":", "{},", key)) co_return false;
      strip_white(key);
    }
    if (!co_await spelling(":")) co_return false;
    give_key(key);
    in_.decide();
    if (!co_await gemma_value()) co_return false;
  }
  in_.give_arguments("}");
  in_.end_call();
  in_.decide();
  if (co_await spelling(close_)) in_.decide();
  co_return true;
}

parsing call_parsers::gemma_value() {
  std::string value;
  if (co_await spelling(quote_)) co_return co_await text_value(quote_, false);
  if (!co_await value_text("}", value)) co_return false;
  const auto json = json_of_gemma(value, f_.quote);
  if (!json) co_return false;
  in_.give_arguments(*json);
  in_.decide();
  co_return true;
}

}  // namespace weir::core
