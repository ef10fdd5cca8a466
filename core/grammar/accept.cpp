#include "core/grammar/accept.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

#include "core/json_line.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core::grammar {
namespace {

namespace json = boost::json;

constexpr std::size_t most_depth = 256;  // of a line's JSON

// The text of a member's value in the text of an object. REQUIRES: `object` is valid JSON, an object.
std::string_view raw_member(std::string_view object, std::string_view name) {
  int depth = 0;
  bool is_name = true;
  std::string_view last_name;
  std::size_t value = 0;
  const auto trimmed = [](std::string_view s) {
    const auto first = s.find_first_not_of(" \t\r\n");
    return first == s.npos ? std::string_view() : s.substr(first, s.find_last_not_of(" \t\r\n") - first + 1);
  };
  std::string_view found;  // of members with equal names the last, as in the parser
  for (std::size_t i = 0; i < object.size(); ++i) {
    const char c = object[i];
    if (c == '"') {
      const auto begin = ++i;
      while (object[i] != '"') i += object[i] == '\\' ? 2 : 1;
      if (depth == 1 && is_name) last_name = object.substr(begin, i - begin);
    } else if (depth == 1 && c == ':' && is_name) {
      is_name = false;
      value = i + 1;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (depth == 1 && (c == ',' || c == '}')) {
      if (last_name == name) found = trimmed(object.substr(value, i - value));
      is_name = true;
      if (c == '}') --depth;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return found;
}

result<std::vector<std::string>> strings_of(const json::value& v, const char* field) {
  const auto* all = v.if_array();
  std::vector<std::string> out;
  if (all)
    for (const auto& x : *all)
      if (const auto* s = x.if_string()) out.emplace_back(s->data(), s->size());
  if (!all || out.size() != all->size()) return bad_param(field, "{} must be an array of strings", field);
  return out;
}

result<std::string> string_of(const json::object& o, const char* field) {
  const auto* s = o.at(field).if_string();
  if (!s) return bad_param(field, "{} must be a string", field);
  return std::string(s->data(), s->size());
}

result<std::vector<token_id>> ids_of(const json::value& v) {
  const auto* all = v.if_array();
  std::vector<token_id> out;
  if (all)
    for (const auto& x : *all)
      if (x.is_int64() && x.get_int64() >= 0 && x.get_int64() <= INT32_MAX)
        out.push_back(static_cast<token_id>(x.get_int64()));
  if (!all || out.size() != all->size()) return bad_param("ids", "ids must be an array of token ids");
  return out;
}

result<std::optional<constraint_text>> own_constraint(const json::object& o, std::string_view line,
                                                      std::string& field) {
  constraint_text c;
  for (const auto* name : {"schema", "regex", "grammar", "choice"}) {
    if (!o.if_contains(name)) continue;
    if (!field.empty()) return bad_param(name, "a line has one constraint, not both {} and {}", field, name);
    field = name;
  }
  if (field.empty()) return std::optional<constraint_text>();
  if (field == "schema") {
    c.what = constraint_text::kind::json_schema;
    c.text = raw_member(line, "schema");
    if (c.text.empty()) return bad_param(field, "the name schema must be written without escapes");
  } else if (field == "choice") {
    c.what = constraint_text::kind::choice;
    auto choices = strings_of(o.at("choice"), "choice");
    if (!choices) return choices.error();
    c.choices = std::move(*choices);
  } else {
    c.what = field == "regex" ? constraint_text::kind::regex : constraint_text::kind::grammar;
    auto text = string_of(o, field.c_str());
    if (!text) return text.error();
    c.text = std::move(*text);
  }
  if (o.if_contains("grammar_syntax")) {
    auto syntax = string_of(o, "grammar_syntax");
    if (!syntax) return syntax.error();
    if (*syntax != "gbnf" && *syntax != "lark")
      return bad_param("grammar_syntax", "grammar_syntax must be gbnf or lark");
    c.syntax = std::move(*syntax);
  }
  if (o.if_contains("whitespace")) {
    const auto name = string_of(o, "whitespace");
    if (!name) return name.error();
    const auto space = parse_json_space(*name);
    if (!space) return space.error();
    c.space = *space;
  }
  if (const auto* strict = o.if_contains("strict")) {
    if (!strict->is_bool()) return bad_param("strict", "strict must be true or false");
    c.strict = strict->get_bool();
  }
  return std::optional(std::move(c));
}

double microseconds(duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

// Numbers of microseconds with at most two digits behind the point.
json::value rounded(double us) { return std::round(us * 100) / 100; }

std::string hex_of(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace

result<json_space> parse_json_space(std::string_view name) {
  if (name == "bounded") return json_space::bounded;
  if (name == "compact") return json_space::compact;
  if (name == "any") return json_space::any;
  return bad_param("whitespace", "whitespace must be bounded, compact or any");
}

result<accept_line> parse_accept_line(std::string_view line) {
  json::error_code ec;
  json::parse_options how;
  how.max_depth = most_depth;
  const auto value = json::parse(line, ec, {}, how);
  const auto* o = ec ? nullptr : value.if_object();
  if (!o) return bad_param("", "not a JSON object");
  accept_line out;
  auto own = own_constraint(*o, line, out.field);
  if (!own) return own.error();
  out.own = std::move(*own);
  const auto *text = o->if_contains("text"), *ids = o->if_contains("ids");
  if (!text == !ids) return bad_param("text", "a line has either text or ids");
  if (text) {
    auto s = string_of(*o, "text");
    if (!s) return s.error();
    out.subject.text = std::move(*s);
    return out;
  }
  auto all = ids_of(*ids);
  if (!all) return all.error();
  out.subject.ids = std::move(*all);
  return out;
}

std::string to_json(const accept_verdict& v, bool mask) {
  json::object o;
  o["accepted"] = v.accepted;
  o["at"] = v.at ? json::value(*v.at) : json::value(nullptr);
  o["may_end"] = v.may_end;
  o["completion"] = nullptr;
  if (v.completion && is_valid_utf8(*v.completion)) o["completion"] = *v.completion;
  if (v.completion && !is_valid_utf8(*v.completion)) o["completion_hex"] = hex_of(*v.completion);
  o["compile_us"] = rounded(v.compile_us);
  o["mask_us"] = json::object{
      {"p50", rounded(v.mask_us.p50)}, {"p99", rounded(v.mask_us.p99)}, {"max", rounded(v.mask_us.max)}};
  if (mask) o["mask"] = json::value_from(v.mask);
  if (!v.warnings.empty()) {
    json::array all;
    for (const auto& w : v.warnings) all.push_back(json::object{{"param", w.where}, {"message", w.message}});
    o["warnings"] = std::move(all);
  }
  return json_line(o);
}

std::string to_json(const error& e) {
  return json::serialize(json::object{{"error", json::object{{"message", e.message}, {"param", e.param}}}});
}

acceptor::acceptor(std::shared_ptr<const tokenizer> t, const clock& c)
    : tokenizer_(std::move(t)),
      views_(std::make_shared<terminal_views>(std::make_shared<const token_trie>(tokenizer_))),
      clock_(c) {}

result<acceptor::prepared> acceptor::prepare(const constraint_text& text, const std::string& field) {
  const auto begin = clock_.now();
  const auto named = [&](error e) {
    e.param = field + e.param;
    return e;
  };
  auto c = compile(text);
  if (!c) return named(c.error());
  prepared out;
  out.warnings = std::move(c->warnings);
  auto over = constraint::make(std::move(*c), views_);
  if (!over) return named(over.error());
  out.over = std::move(*over);
  out.compile_us = microseconds(clock_.now() - begin);
  return out;
}

// The subject's ids as steps, if it has ids. Else the tokens of encode(), if their bytes are the text. For a
// metaspace vocabulary the space before the text is taken off. Otherwise each byte is a step without a token.
std::vector<acceptor::step> acceptor::steps_of(const accept_subject& subject) const {
  std::vector<step> out;
  const auto& trie = views_->trie();
  if (subject.ids) {
    for (const auto id : *subject.ids) out.push_back({std::string(trie.text(id)), id});
    return out;
  }
  std::string all;
  for (const auto id : tokenizer_->encode(subject.text, {.add_special = false, .parse_special = false})) {
    out.push_back({std::string(trie.text(id)), id});
    all += out.back().bytes;
  }
  if (all == subject.text) return out;
  if (trie.leading_space() && all == " " + subject.text) {  // a job would draw another first token
    out[0].bytes.erase(0, 1);
    out[0].token.reset();
    return out;
  }
  out.clear();
  for (const char c : subject.text) out.push_back({std::string(1, c), std::nullopt});
  return out;
}

result<accept_verdict> acceptor::check(const prepared& p, const accept_subject& subject) {
  auto& over = *p.over;
  accept_verdict out;
  out.compile_us = p.compile_us;
  out.warnings = p.warnings;
  std::vector<double> times;
  const auto too_much = [&](std::size_t at) {
    return bad_param("", "the constraint cannot be followed: {}, at byte {}", over.failure(), at);
  };
  const auto timed_mask = [&](parse_id c) {
    const auto begin = clock_.now();
    const auto* m = over.mask(c);
    times.push_back(microseconds(clock_.now() - begin));
    return m;
  };
  auto c = over.start();
  std::size_t offset = 0;
  for (const auto& s : steps_of(subject)) {
    if (s.token && !over.trie().known(*s.token))
      return bad_param("ids", "{} is outside the vocabulary", *s.token);
    const auto* m = timed_mask(c);
    if (!m) return too_much(offset);
    const auto to = s.token ? over.accept(c, *s.token) : over.step(c, s.bytes);
    if (to == constraint::failed) return too_much(offset);
    if (s.token && m->has(*s.token) != (to != constraint::dead))
      return make_error(errc::internal, "the mask at byte {} contradicts the bytes of token {}", offset,
                        *s.token);
    if (to == constraint::dead) {
      std::size_t n = 0;  // bytes of this step that the constraint allows
      for (auto x = c; n < s.bytes.size(); ++n)
        if ((x = over.step(x, static_cast<unsigned char>(s.bytes[n]))) <= constraint::failed) break;
      out.at = offset + n;
      c = over.step(c, std::string_view(s.bytes).substr(0, n));
      break;
    }
    c = to;
    offset += s.bytes.size();
  }
  const auto* m = timed_mask(c);
  if (!m) return too_much(offset);
  out.accepted = !out.at;
  out.may_end = over.may_end(c);
  out.mask = m->ids();
  if (out.accepted) out.completion = over.completion(c);
  std::sort(times.begin(), times.end());
  const auto rank = [&](double q) {
    return times[static_cast<std::size_t>(q * static_cast<double>(times.size() - 1) + 0.5)];
  };
  out.mask_us = {rank(0.5), rank(0.99), times.back()};
  return out;
}

}  // namespace weir::core::grammar
