#include "core/text/chat/spelled_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "core/process_seed.h"

namespace weir::core {
namespace {

namespace json = boost::json;
using kind = call_format::kind;

// How values are spelled: as JSON, with the white space of templates' tojson, or as in Python.
enum class notation { json, python };

void spell(std::string& out, const json::value& v, notation how);

void spell_key(std::string& out, json::string_view key, notation how) {
  spell(out, json::string(key), how);
  out += ": ";
}

void spell(std::string& out, const json::value& v, notation how) {
  const bool python = how == notation::python;
  if (const auto* o = v.if_object()) {
    out += '{';
    for (const auto& [key, value] : *o) {
      if (out.back() != '{') out += ", ";
      spell_key(out, key, how);
      spell(out, value, how);
    }
    out += '}';
  } else if (const auto* list = v.if_array()) {
    out += '[';
    for (const auto& item : *list) {
      if (&item != list->data()) out += ", ";
      spell(out, item, how);
    }
    out += ']';
  } else if (v.is_bool() && python) {
    out += v.get_bool() ? "True" : "False";
  } else if (v.is_null() && python) {
    out += "None";
  } else {
    out += json::serialize(v);
  }
}

// A text of which parts came from a client.
struct spelling {
  jinja::rendering made;

  void own(std::string_view text) { made.text += text; }
  void sent(std::string_view text) {
    if (text.empty()) return;
    const auto begin = made.text.size();
    made.text += text;
    made.content.push_back({begin, made.text.size()});
  }
};

const json::value* member(const json::value& of, const char* name) {
  const auto* o = of.if_object();
  return o ? o->if_contains(name) : nullptr;
}

struct call {
  std::string name;
  json::value arguments;  // an object, where the client's are one
};

call call_of(const json::value& v) {
  const json::value* function = member(v, "function");
  const json::value& holder = function ? *function : v;
  call out;
  if (const auto* name = member(holder, "name"); name && name->is_string()) out.name = name->get_string();
  if (const auto* arguments = member(holder, "arguments")) out.arguments = *arguments;
  if (out.arguments.is_null()) out.arguments = json::object();
  return out;
}

void spell_object(spelling& out, const call& c, const call_format& f) {
  std::string text = "{";
  spell_key(text, json::string_view(f.name_key.data(), f.name_key.size()), notation::json);
  spell(text, json::string(c.name), notation::json);
  text += ", ";
  spell_key(text, json::string_view(f.arguments_key.data(), f.arguments_key.size()), notation::json);
  spell(text, c.arguments, notation::json);
  text += '}';
  out.sent(text);
}

void spell_python(spelling& out, const call& c) {
  std::string text = c.name + '(';
  if (const auto* o = c.arguments.if_object())
    for (const auto& [key, value] : *o) {
      if (text.back() != '(') text += ", ";
      text += key;
      text += '=';
      spell(text, value, notation::python);
    }
  out.sent(text + ')');
}

spelling spelled(const json::array& calls, const call_format& f) {
  const bool each = f.how == kind::object && !f.list;  // each call has marks of its own
  spelling out;
  out.own(f.section_open);
  if (!each) out.own(f.open);
  if (f.list) out.own("[");
  for (const auto& v : calls) {
    if (&v != calls.data()) out.own(f.between);
    if (each) out.own(f.open);
    f.how == kind::object ? spell_object(out, call_of(v), f) : spell_python(out, call_of(v));
    if (each) out.own(f.close);
  }
  if (f.list) out.own("]");
  if (!each) out.own(f.close);
  out.own(f.section_close);
  return out;
}

// A word that no client can know.
std::string word_of(std::size_t calls) { return fmt::format("weir{:016x}calls{}w", process_seed(), calls); }

void append_word(json::value& content, const std::string& word) {
  if (auto* parts = content.if_array()) {
    parts->push_back(json::object{{"type", "text"}, {"text", word}});
    return;
  }
  if (!content.is_string()) content = json::string();
  json::string& text = content.get_string();
  if (!text.empty()) text += '\n';
  text += word;
}

// Replaces the bytes [at, end) of a rendering by another one.
void replace(jinja::rendering& made, std::size_t at, std::size_t end, const jinja::rendering& by) {
  std::vector<jinja::span> spans;
  const auto add = [&](std::size_t a, std::size_t b) {
    if (a < b) spans.push_back({a, b});
  };
  const std::size_t more = by.text.size() - (end - at);  // modulo 2^64, as are the sums below
  for (const auto& s : made.content) add(s.begin, std::min(s.end, at));
  for (const auto& s : by.content) add(at + s.begin, at + s.end);
  for (const auto& s : made.content)
    if (s.end > end) add(std::max(s.begin, end) + more, s.end + more);
  made.content = std::move(spans);
  made.text.replace(at, end - at, by.text);
}

}  // namespace

bool spelled_calls::can_spell(const call_format& f) {
  return (f.how == kind::object && !f.bare && !f.name_key.empty()) || f.how == kind::pythonic;
}

void spelled_calls::take(json::array& messages, const call_format& f) {
  for (json::value& m : messages) {
    auto* o = m.if_object();
    const json::value* calls = o ? o->if_contains("tool_calls") : nullptr;
    if (!calls || !calls->is_array() || calls->get_array().empty()) continue;
    calls_.push_back(spelled(calls->get_array(), f).made);
    o->erase("tool_calls");
    append_word((*o)["content"], word_of(calls_.size() - 1));
  }
}

void spelled_calls::put(jinja::rendering& made) const {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const std::string word = word_of(i);
    for (auto at = made.text.find(word); at != std::string::npos; at = made.text.find(word, at)) {
      replace(made, at, at + word.size(), calls_[i]);
      at += calls_[i].text.size();
    }
  }
}

}  // namespace weir::core
