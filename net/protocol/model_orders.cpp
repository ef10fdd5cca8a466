#include "net/protocol/model_orders.h"

#include <algorithm>

#include "core/schedule/shares.h"
#include "net/protocol/json.h"
#include "net/protocol/request_fields.h"

namespace weir::net::orders {
namespace {

using core::bad_param;
using core::result;

constexpr double longest_drain_s = 86'400;
constexpr std::int64_t most_kv_tokens = std::int64_t{1} << 36;  // as many pages as have numbers

// Fields that are planned: of a model, and of an order.
constexpr std::string_view planned_fields[] = {"split", "pinned", "draft"};

core::error not_supported(std::string_view field, std::string_view what) {
  auto e = core::make_error(core::errc::not_supported, "{} is not supported yet", what);
  e.param = field;
  return e;
}

// `name`: as an order's field; an unknown or planned one is refused.
core::error refused_field(std::string_view name) {
  if (std::ranges::find(planned_fields, name) != std::end(planned_fields)) return not_supported(name, name);
  return unknown_field(name);
}

// A text of 1 to `most` bytes without control characters.
result<std::string> read_text(std::string_view field, const json::value& v, std::size_t most) {
  auto text = read_string(field, v);
  if (!text) return text;
  if (text->empty() || text->size() > most)
    return bad_param(std::string(field), "{} must have 1 to {} bytes", field, most);
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  if (std::ranges::any_of(*text, is_control))
    return bad_param(std::string(field), "{} must have no control characters", field);
  return text;
}

result<std::vector<std::string>> read_texts(std::string_view field, const json::value& v, std::size_t most,
                                            std::size_t longest) {
  const json::array* list = v.if_array();
  if (!list || list->empty() || list->size() > most)
    return bad_param(std::string(field), "{} must be a list of 1 to {} texts", field, most);
  std::vector<std::string> out;
  for (const json::value& item : *list) {
    auto text = read_text(field, item, longest);
    if (!text) return text.error();
    if (std::ranges::find(out, *text) != out.end())
      return bad_param(std::string(field), "{} has '{}' twice", field, shortened(*text));
    out.push_back(std::move(*text));
  }
  return out;
}

result<std::vector<std::string>> read_devices(const json::value& v) {
  constexpr std::size_t longest_device = 64;
  if (!v.is_string()) return read_texts("device", v, most_devices, longest_device);
  auto one = read_text("device", v, longest_device);
  if (!one) return one.error();
  return std::vector<std::string>{std::move(*one)};
}

result<std::chrono::nanoseconds> read_drain(const json::value& v) {
  auto s = read_number("drain_s", v);
  if (!s) return s.error();
  if (!(*s >= 0 && *s <= longest_drain_s))
    return bad_param("drain_s", "drain_s must be in [0, {}]", longest_drain_s);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(*s));
}

result<std::uint64_t> read_kv_tokens(const json::value& v) {
  auto n = read_integer("kv_tokens", v);
  if (!n) return n.error();
  if (*n < 1 || *n > most_kv_tokens)
    return bad_param("kv_tokens", "kv_tokens must be in [1, {}], not {}", most_kv_tokens, *n);
  return static_cast<std::uint64_t>(*n);
}

result<double> read_share(const json::value& v) {
  auto w = read_number("share", v);
  if (!w) return w.error();
  if (!core::is_weight(*w))
    return bad_param("share", "share must be in [{}, {}], not {}", core::least_weight, core::most_weight, *w);
  return *w;
}

result<core::model_limits> read_limits(const json::value& v) {
  const json::object* o = v.if_object();
  if (!o) return bad_param("limits", "limits must be an object, not {}", kind_of(v));
  core::model_limits out;
  for (const auto& [name, value] : *o) {
    if (value.is_null()) continue;
    auto n = read_integer("limits", value);
    if (!n) return n.error();
    if (*n < 0) return bad_param("limits", "limits: {} must not be negative", shortened(std::string(name)));
    if (auto ok = core::set_limit(out, name, static_cast<std::uint64_t>(*n), "limits"); !ok)
      return ok.error();
  }
  return out;
}

// Which models have to go for a new one: none by itself.
result<> judge_evict(const json::value& v) {
  auto how = read_string("evict", v);
  if (!how) return how.error();
  if (*how == "none") return {};
  if (*how == "idle" || *how == "drain") return not_supported("evict", fmt::format("evict '{}'", *how));
  return bad_param("evict", "evict must be 'none', not '{}'", shortened(*how));
}

result<actors::sleep_level> read_level(const json::value& v) {
  auto level = read_string("level", v);
  if (!level) return level.error();
  for (const auto known : {actors::sleep_level::host, actors::sleep_level::disk})
    if (*level == actors::name(known)) return known;
  return bad_param("level", "level must be 'host' or 'disk', not '{}'", shortened(*level));
}

template <class T>
result<> store(result<T> read, auto& to) {
  if (!read) return read.error();
  to = std::move(*read);
  return {};
}

result<> read_load_field(std::string_view name, const json::value& v, load& to) {
  if (name == "name") return store(read_text(name, v, longest_name), to.name);
  if (name == "source") return store(read_text(name, v, longest_source), to.source);
  if (name == "device") return store(read_devices(v), to.devices);
  if (name == "kv_tokens") return store(read_kv_tokens(v), to.kv_tokens);
  if (name == "share") return store(read_share(v), to.share);
  if (name == "limits") return store(read_limits(v), to.limits);
  if (name == "wait") return store(read_bool(name, v), to.wait);
  if (name == "evict") return judge_evict(v);
  return refused_field(name);
}

result<> read_change_field(std::string_view name, const json::value& v, change& to, std::string& action) {
  if (name == "action") return store(read_string(name, v), action);
  if (name == "drain_s") return store(read_drain(v), to.drain);
  if (name == "level") return store(read_level(v), to.level);
  if (name == "wait") return store(read_bool(name, v), to.wait);
  if (name == "share") return store(read_share(v), to.share);
  if (name == "limits") return store(read_limits(v), to.limits);
  if (name == "pinned") return store(read_bool(name, v), to.pinned);
  if (name == "kv_tokens") return not_supported(name, "kv_tokens of a model that is there");
  return refused_field(name);
}

// Calls read(name, value) for each member that is not null. The first error counts.
template <class Read>
result<> read_members(const json::object& o, const Read& read) {
  for (const auto& [name, value] : o) {
    if (value.is_null()) continue;
    if (auto ok = read(std::string_view(name), value); !ok) return ok;
  }
  return {};
}

result<load> load_of(const json::object& o) {
  load out;
  const auto read = [&](std::string_view name, const json::value& v) {
    return read_load_field(name, v, out);
  };
  if (auto ok = read_members(o, read); !ok) return ok.error();
  if (out.name.empty()) return bad_param("name", "name is missing: what clients call the model");
  return out;
}

result<load> read_in(const json::value& v) {
  const json::object* o = v.if_object();
  if (!o) return bad_param("in", "in must be an object, not {}", kind_of(v));
  if (o->contains("wait")) return bad_param("wait", "wait stands beside in");
  return load_of(*o);
}

constexpr std::string_view known_actions = "'load', 'unload', 'sleep' or 'wake'";

// nullopt: there is no such action.
std::optional<change::kind> kind_of_action(std::string_view action) {
  using kind = change::kind;
  if (action.empty()) return kind::terms;
  if (action == "load") return kind::load;
  if (action == "unload") return kind::unload;
  if (action == "sleep") return kind::sleep;
  if (action == "wake") return kind::wake;
  return std::nullopt;
}

}  // namespace

result<load> parse_load(std::string_view body, std::size_t most_values) {
  const auto o = read_body(body, most_values);
  if (!o) return o.error();
  return load_of(*o);
}

result<change> parse_change(std::string_view body, std::size_t most_values) {
  const auto o = read_body(body, most_values);
  if (!o) return o.error();
  change out;
  std::string action;
  const auto read = [&](std::string_view name, const json::value& v) {
    return read_change_field(name, v, out, action);
  };
  if (auto ok = read_members(*o, read); !ok) return ok.error();
  using kind = change::kind;
  if (action.empty() && !out.limits.none())  // what it has was made for them
    return not_supported("limits", "limits of a model that is there");
  if (action.empty() && !out.share && !out.pinned)
    return bad_param("action", "action is missing: {}, or share or pinned without an action", known_actions);
  const auto known = kind_of_action(action);
  if (!known) return bad_param("action", "action must be {}, not '{}'", known_actions, shortened(action));
  out.is = *known;
  const bool settles = out.is == kind::load || out.is == kind::terms;
  const bool drains = out.is == kind::unload || out.is == kind::sleep;
  if (!settles && !out.limits.none()) return bad_param("limits", "limits are not for '{}'", action);
  if (!settles && out.share) return bad_param("share", "share is not for '{}'", action);
  if (out.is != kind::terms && out.pinned)
    return bad_param("pinned", "pinned stands without an action: it is not for '{}'", action);
  if (!drains && out.drain) return bad_param("drain_s", "drain_s is for 'unload' and 'sleep' alone");
  if (out.is != kind::sleep && out.level) return bad_param("level", "level is for 'sleep' alone");
  return out;
}

result<swap> parse_swap(std::string_view body, std::size_t most_values) {
  const auto o = read_body(body, most_values);
  if (!o) return o.error();
  swap out;
  bool wait = true;
  const auto read = [&](std::string_view name, const json::value& v) -> result<> {
    if (name == "out") return store(read_texts(name, v, most_out, longest_name), out.out);
    if (name == "in") return store(read_in(v), out.in);
    if (name == "drain_s") return store(read_drain(v), out.drain);
    if (name == "wait") return store(read_bool(name, v), wait);
    return refused_field(name);
  };
  if (auto ok = read_members(*o, read); !ok) return ok.error();
  if (out.out.empty()) return bad_param("out", "out is missing: the names of the models that go");
  if (out.in.name.empty()) return bad_param("in", "in is missing: the model that comes");
  out.in.wait = wait;
  return out;
}

result<std::string> parse_named(std::string_view body, std::size_t most_values) {
  const auto o = read_body(body, most_values);
  if (!o) return o.error();
  std::string model;
  const auto read = [&](std::string_view name, const json::value& v) -> result<> {
    if (name == "model") return store(read_text(name, v, longest_name), model);
    return refused_field(name);
  };
  if (auto ok = read_members(*o, read); !ok) return ok.error();
  if (model.empty()) return bad_param("model", "model is missing");
  return model;
}

}  // namespace weir::net::orders
