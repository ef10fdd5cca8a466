// talk_fields.h — reads fields of foreign JSON messages, and their errors, for the client side of protocols.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace weir::load::fields {

namespace json = boost::json;

// Parses `text` and calls `f` with the object; returns false if it is not a JSON object.
template <class F>
bool with_object(std::string_view text, F&& f) {
  unsigned char memory[4096];
  json::monotonic_resource pool(memory, sizeof memory);
  boost::system::error_code ec;
  const json::value v = json::parse({text.data(), text.size()}, ec, &pool);
  if (ec || !v.is_object()) return false;
  f(v.get_object());
  return true;
}

inline std::string_view string_of(const json::object& o, std::string_view name) {
  const auto* v = o.if_contains(json::string_view(name.data(), name.size()));
  return v && v->is_string() ? std::string_view(v->get_string().data(), v->get_string().size())
                             : std::string_view();
}

inline std::optional<std::int64_t> number_of(const json::object& o, std::string_view name) {
  const auto* v = o.if_contains(json::string_view(name.data(), name.size()));
  if (!v || !v->is_number()) return std::nullopt;
  boost::system::error_code ec;
  const auto n = v->to_number<std::int64_t>(ec);
  return ec ? std::nullopt : std::optional(n);
}

inline std::uint64_t count_of(const json::object& o, std::string_view name) {
  const auto n = number_of(o, name);
  return n && *n > 0 ? static_cast<std::uint64_t>(*n) : 0;
}

inline const json::object* object_of(const json::object& o, std::string_view name) {
  const auto* v = o.if_contains(json::string_view(name.data(), name.size()));
  return v ? v->if_object() : nullptr;
}

// The beginning of a foreign text, on one line.
inline std::string brief(std::string_view text) {
  std::string out(text.substr(0, 200));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return out;
}

// "code: message" of an error object or of a message with one. Without a code, the type is taken.
inline std::string error_text(const json::object& o) {
  const json::object* e = object_of(o, "error");
  if (!e) e = &o;
  auto code = string_of(*e, "code");
  if (code.empty()) code = string_of(*e, "type");
  return brief(fmt::format("{}: {}", code, string_of(*e, "message")));
}

// The fields of `ours`, and those of `extra`, which replace fields of the same name.
inline std::string with(const json::object& ours, const json::object& extra) {
  json::object all = ours;
  for (const auto& field : extra) all[field.key()] = field.value();
  return json::serialize(all);
}

}  // namespace weir::load::fields
