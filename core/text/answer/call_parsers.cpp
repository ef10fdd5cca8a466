#include "core/text/answer/call_parsers.h"

namespace weir::core {

using kind = call_format::kind;

call_parsers::call_parsers(reading& in) : in_(in), f_(in.plan->format->format().calls) {
  const auto& known = *in.plan->format;
  section_close_ = known.compared(f_.section_close);
  open_ = known.compared(f_.open);
  close_ = known.compared(f_.close);
  id_end_ = known.compared(f_.id_end);
  id_open_ = known.compared(f_.id_open);
  middle_ = known.compared(f_.middle);
  name_end_ = known.compared(f_.name_end);
  key_open_ = known.compared(f_.key_open);
  key_end_ = known.compared(f_.key_end);
  value_close_ = known.compared(f_.value_close);
  quote_ = known.compared(f_.quote);
  between_ = known.compared(f_.between);
}

// Whether the spelling comes next, behind white space.
parsing call_parsers::spelling(std::string_view s) {
  for (;;) {
    const fit is = in_.take(s);
    if (is != fit::part) co_return is == fit::whole;
    co_await in_.more();
  }
}

// Text up to a spelling, which stays.
parsing call_parsers::until(std::string_view s, std::string_view forbidden, std::string& out) {
  for (;;) {
    const fit is = in_.take_until(s, {}, forbidden, out);
    if (is != fit::part) co_return is == fit::whole;
    co_await in_.more();
  }
}

void call_parsers::begin(const std::string& name, const std::string& id) {
  in_.begin_call(name, id);
  in_.decide();
}

parsing call_parsers::call() {
  switch (f_.how) {
    case kind::object:
      if (f_.list) co_return co_await object_list();
      co_return co_await object();
    case kind::named:
      co_return co_await named();
    case kind::tagged:
      co_return co_await tagged();
    case kind::pythonic:
      co_return co_await pythonic();
    case kind::gemma:
      co_return co_await gemma();
    case kind::harmony:
      break;  // its calls are messages
  }
  co_return false;
}

parsing call_parsers::section() {
  for (bool first = true;; first = false) {
    const bool closed = co_await spelling(section_close_);
    if (closed && first) co_return false;
    if (closed) {
      in_.decide();
      co_return true;
    }
    if (!open_.empty() && !co_await spelling(open_)) co_return !first && !in_.call_begun();
    if (!co_await call()) co_return false;
  }
}

// ---- objects

parsing call_parsers::object_list() {
  const bool opened = co_await spelling("[");
  if (!opened) co_return false;
  for (bool first = true;; first = false) {
    const bool closed = co_await spelling("]");
    if (closed && first) co_return false;
    if (closed) break;
    if (!first && !co_await spelling(",")) co_return false;
    if (!co_await object()) co_return false;
  }
  if (!in_.holds()) in_.decide();
  if (!close_.empty() && co_await spelling(close_)) in_.decide();
  co_return true;
}

// A list's objects have no marks of their own.
parsing call_parsers::object() {
  std::string name, id;
  bool has_arguments = false;
  if (!co_await spelling("{")) co_return false;
  for (bool first = true;; first = false) {
    if (co_await spelling("}")) break;
    if (!first && !co_await spelling(",")) co_return false;
    if (!co_await object_member(name, id, has_arguments)) co_return false;
  }
  if (name.empty()) co_return false;
  if (f_.bare && in_.holds() && (!has_arguments || !in_.tool_of(name))) co_return false;
  if (!in_.call_begun()) in_.begin_call(name, id);
  if (!has_arguments) in_.give_arguments("{}");
  in_.end_call();
  if (in_.holds()) co_return true;
  in_.decide();
  if (!f_.list && !close_.empty() && co_await spelling(close_)) in_.decide();
  co_return true;
}

parsing call_parsers::object_member(std::string& name, std::string& id, bool& has_arguments) {
  std::string key;
  for (;;) {
    const fit is = in_.take_string(key);
    if (is == fit::no) co_return false;
    if (is == fit::whole) break;
    co_await in_.more();
  }
  if (!co_await spelling(":")) co_return false;
  const bool keyed = f_.name_key.empty();
  if (keyed) name = key;
  const bool is_name = !keyed && key == f_.name_key, is_id = key == "id" || key == f_.id_key;
  if (is_name || is_id) {
    for (;;) {
      const fit is = in_.take_string(is_name ? name : id);
      if (is == fit::whole) co_return true;
      if (is == fit::no) break;
      co_await in_.more();
    }
    if (is_name) co_return false;
  }
  const bool arguments = keyed || key == f_.arguments_key || key == "arguments" || key == "parameters";
  if (!arguments) {
    if (f_.bare && in_.holds() && key != "type" && !is_id) co_return false;
    co_return co_await object_value(false);
  }
  if (has_arguments) co_return false;
  has_arguments = true;
  if (!name.empty()) {
    in_.begin_call(name, id);
    if (!in_.holds()) in_.decide();
    co_return co_await object_value(true);
  }
  // The arguments stand before the name, and wait for it.
  const std::size_t before = in_.at - in_.decided;
  if (!co_await object_value(false)) co_return false;
  std::string kept = in_.buffer.substr(in_.decided + before, in_.at - in_.decided - before);
  while (name.empty()) {
    if (co_await spelling("}")) co_return false;
    if (!co_await spelling(",")) co_return false;
    if (!co_await object_member(name, id, has_arguments)) co_return false;
  }
  in_.begin_call(name, id);
  in_.give_encoded_arguments(kept);
  co_return true;
}

// A JSON value. `give`: it is arguments, which are given while they come. Arguments that are a text are what
// the text says, and null is no arguments.
parsing call_parsers::object_value(bool give) {
  json_scan scan;
  string_reader text;
  char first = '\0';
  std::string said;
  for (;;) {
    auto is = json_scan::status::more;
    if (first == '\0') in_.skip_white();
    const std::size_t from = in_.at;
    said.clear();
    while (in_.has() && is == json_scan::status::more) {
      const char c = in_.next();
      if (c == mark_byte) {  // a mark inside a string is part of the string
        if (!scan.in_string()) is = json_scan::status::bad;
        if (!scan.in_string()) break;
        if (first == '"') said += in_.spelled(in_.ahead().substr(0, 2), true);
        in_.at += 2;
        continue;
      }
      is = scan.take(static_cast<unsigned char>(c));
      if (is == json_scan::status::bad || is == json_scan::status::before) break;
      if (first == '"' && is == json_scan::status::more) text.take(c, said);
      if (first == '\0') first = c;
      ++in_.at;
    }
    const bool ended = is == json_scan::status::done || is == json_scan::status::before;
    if (give) {  // also what comes before a byte that is no JSON
      if (first == '"')
        in_.give_arguments(said);
      else if (first != 'n')
        in_.give_encoded_arguments(std::string_view(in_.buffer).substr(from, in_.at - from));
      else if (ended)
        in_.give_arguments("{}");
      if (!in_.holds()) in_.decide();
    }
    if (ended) co_return true;
    if (is == json_scan::status::bad) co_return false;
    if (!co_await in_.more()) co_return false;
  }
}

parsing call_parsers::arguments() { co_return co_await object_value(true); }

parsing call_parsers::bare_calls() {
  const bool known = in_.plan->calls_only;
  if (!known) in_.hold();
  for (;;) {
    if (!co_await object()) {
      if (in_.holds()) in_.drop_held();
      co_return false;
    }
    if (co_await spelling(between_)) continue;
    if (known) {
      in_.decide();
      co_return true;
    }
    for (in_.skip_white(); !in_.has() && !in_.over; in_.skip_white()) co_await in_.more();
    if (in_.has()) {
      in_.drop_held();
      co_return false;
    }
    in_.keep_held();
    in_.decide();
    co_return true;
  }
}

// ---- a name, then JSON

parsing call_parsers::named() {
  constexpr std::string_view no_name = "{}\"";
  std::string name, id;
  if (!id_end_.empty()) {
    if (!co_await until(id_end_, no_name, id)) co_return false;
    if (!co_await spelling(id_end_)) co_return false;
  }
  for (;;) {
    const fit is = in_.take_until(middle_, id_open_, no_name, name);
    if (is == fit::no) co_return false;
    if (is == fit::whole) break;
    co_await in_.more();
  }
  if (!id_open_.empty() && co_await spelling(id_open_)) {
    if (!co_await until(middle_, no_name, id)) co_return false;
  }
  if (!co_await spelling(middle_)) co_return false;
  strip_white(name);
  strip_white(id);
  if (f_.counted) {
    id = name;
    name = name.substr(0, name.rfind(':'));
  }
  if (name.starts_with(f_.name_prefix)) name.erase(0, f_.name_prefix.size());
  if (name.empty() || name.find_first_of(white_space) != name.npos) co_return false;
  for (in_.skip_white(); !in_.has(); in_.skip_white())
    if (!co_await in_.more()) co_return false;
  if (in_.next() != '{') co_return false;
  begin(name, id);
  if (!co_await arguments()) co_return false;
  in_.end_call();
  in_.decide();
  if (!close_.empty() && co_await spelling(close_)) in_.decide();
  co_return true;
}

}  // namespace weir::core
