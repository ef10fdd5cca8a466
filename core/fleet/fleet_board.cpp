#include "core/fleet/fleet_board.h"

#include <boost/json.hpp>
#include <limits>

#include "core/fleet/arithmetic_class.h"
#include "core/fleet/file_list.h"
#include "core/fleet/frame_kind.h"

namespace weir::core::fleet {
namespace {

namespace json = boost::json;

constexpr std::size_t most_models = 64, most_gateways = 1024, longest_text = 256;
constexpr std::size_t most_devices = 64, most_known = 1024, longest_known = longest_board / 4;
constexpr const char* state_names[] = {"ready", "draining", "leaving"};

json::object object_of(const board_model& m) {
  return {{"name", m.name},
          {"device", m.device},
          {"engine", m.engine},
          {"class", class_text(m.arithmetic)},
          {"vocab", m.vocab_size},
          {"kv_type", m.kv_type},
          {"digest", m.digest},
          {"context", m.context},
          {"kv_tokens", m.kv_tokens},
          {"weights", m.weight_bytes},
          {"batch", m.batch},
          {"queue", m.queue},
          {"jobs", m.jobs},
          {"prompts", m.prompts},
          {"prompt_tokens", m.prompt_tokens},
          {"places", m.places},
          {"prompt_rate", m.prompt_rate},
          {"rate", m.rate},
          {"closed", m.closed},
          {"leaves", m.leaves},
          {"files", m.files}};
}

// Members of the wrong type, or out of their range, count as missing.
template <class T>
void take(const json::object& from, const char* name, T& to) {
  const auto* v = from.if_contains(name);
  if (!v || !v->is_number()) return;
  if constexpr (std::is_floating_point_v<T>) {
    const double d = v->to_number<double>();
    if (d >= 0 && d <= 1e12) to = d;
  } else {
    boost::system::error_code wrong;
    const auto n = v->to_number<std::uint64_t>(wrong);
    if (!wrong && n <= std::numeric_limits<T>::max()) to = static_cast<T>(n);
  }
}

void take(const json::object& from, const char* name, bool& to) {
  const auto* v = from.if_contains(name);
  if (v && v->is_bool()) to = v->get_bool();
}

void take(const json::object& from, const char* name, std::string& to) {
  const auto* v = from.if_contains(name);
  if (v && v->is_string()) to.assign(v->get_string().data(), std::min(v->get_string().size(), longest_text));
}

board_model model_of(const json::object& o) {
  board_model m;
  take(o, "name", m.name);
  take(o, "device", m.device);
  take(o, "engine", m.engine);
  std::string arithmetic;
  take(o, "class", arithmetic);
  m.arithmetic = parse_class(arithmetic);
  take(o, "vocab", m.vocab_size);
  take(o, "kv_type", m.kv_type);
  take(o, "digest", m.digest);
  take(o, "context", m.context);
  take(o, "kv_tokens", m.kv_tokens);
  take(o, "weights", m.weight_bytes);
  take(o, "batch", m.batch);
  take(o, "queue", m.queue);
  take(o, "jobs", m.jobs);
  take(o, "prompts", m.prompts);
  take(o, "prompt_tokens", m.prompt_tokens);
  take(o, "places", m.places);
  take(o, "prompt_rate", m.prompt_rate);
  take(o, "rate", m.rate);
  take(o, "closed", m.closed);
  take(o, "leaves", m.leaves);
  take(o, "files", m.files);
  if (!parse_digest(m.files)) m.files.clear();
  return m;
}

// Those that have room; `left_out`: how many have none.
json::array known_models(const std::vector<known_model>& all, std::size_t& left_out) {
  json::array out;
  std::size_t taken = 0;
  for (const auto& m : all) {
    json::object one{{"name", m.name}, {"state", m.state}, {"bytes", m.bytes}, {"share", m.share}};
    if (m.jobs > 0) one["jobs"] = m.jobs;
    for (const auto& [name, is] : {std::pair("wakes", m.wakes), std::pair("pinned", m.pinned),
                                 std::pair("wanted", m.wanted)})
      if (is) one[name] = true;
    if (!m.reason.empty()) one["reason"] = m.reason.substr(0, longest_text);
    taken += json::serialize(one).size() + 1;
    if (taken > longest_known || out.size() == most_known) break;
    out.push_back(std::move(one));
  }
  left_out = all.size() - out.size();
  return out;
}

known_model known_of(const json::object& o) {
  known_model m;
  take(o, "name", m.name);
  take(o, "state", m.state);
  take(o, "bytes", m.bytes);
  take(o, "share", m.share);
  take(o, "reason", m.reason);
  take(o, "wakes", m.wakes);
  take(o, "pinned", m.pinned);
  take(o, "jobs", m.jobs);
  take(o, "wanted", m.wanted);
  return m;
}

json::array devices_of(const fleet_board& b) {
  json::array out;
  for (const auto& d : b.devices)
    if (out.size() < most_devices)
      out.push_back({{"name", d.name.substr(0, longest_text)}, {"free", d.free}});
  return out;
}

void take_devices(const json::array& all, fleet_board& b) {
  for (const auto& d : all) {
    if (!d.is_object() || b.devices.size() == most_devices) continue;
    auto& to = b.devices.emplace_back();
    take(d.get_object(), "name", to.name);
    take(d.get_object(), "free", to.free);
  }
}

error no_board(const char* why) { return bad_param("board", "this is no board: {}", why); }

void take_gateways(const json::object& all, fleet_board& b) {
  for (const auto& [name, share] : all) {
    if (b.gateways.size() == most_gateways) return;
    if (!is_name(std::string_view(name.data(), name.size())) || !share.is_object()) continue;
    auto& to = b.gateways[std::string(name)];
    take(share.get_object(), "frames", to.frames);
    take(share.get_object(), "jobs", to.jobs);
  }
}

}  // namespace

const char* name(worker_state s) noexcept { return state_names[static_cast<std::size_t>(s)]; }

std::string json_of(const fleet_board& b) {
  json::array models;
  for (const auto& m : b.models)
    if (models.size() < most_models) models.push_back(object_of(m));
  json::object out{{"v", 1},
                   {"o", b.worker},
                   {"state", name(b.state)},
                   {"build", b.build},
                   {"number", b.number},
                   {"silent_ms", b.silent_ms},
                   {"broken", b.broken},
                   {"untold", b.untold},
                   {"on_demand", b.on_demand},
                   {"devices", devices_of(b)},
                   {"models", std::move(models)}};
  std::size_t left_out = b.known_left_out, no_room = 0;
  out["known"] = known_models(b.known, no_room);
  out["known_left_out"] = left_out + no_room;
  std::size_t left = longest_board - std::min(longest_board, json::serialize(out).size() + 64);
  json::object gateways;
  for (const auto& [name, share] : b.gateways) {
    json::object one{{"frames", share.frames}, {"jobs", share.jobs}};
    const std::size_t takes = json::serialize(one).size() + name.size() + 4;
    if (takes > left) break;
    left -= takes;
    gateways[name] = std::move(one);
  }
  out["gateways"] = std::move(gateways);
  return json::serialize(out);
}

result<fleet_board> read_board(std::string_view text) {
  if (text.size() > longest_board) return no_board("it is too long");
  boost::system::error_code wrong;
  const auto parsed = json::parse(text, wrong);
  if (wrong || !parsed.is_object()) return no_board("it is no JSON object");
  const auto& o = parsed.get_object();
  fleet_board b;
  std::uint32_t version = 0;
  take(o, "v", version);
  take(o, "o", b.worker);
  if (version != 1) return no_board("it has another version");
  if (!is_name(b.worker)) return no_board("its worker has no name");
  std::string state;
  take(o, "state", state);
  const auto known = std::ranges::find(state_names, state);
  if (known == std::end(state_names)) return no_board("its state is not known");
  b.state = static_cast<worker_state>(known - state_names);
  take(o, "build", b.build);
  take(o, "number", b.number);
  take(o, "silent_ms", b.silent_ms);
  take(o, "broken", b.broken);
  take(o, "untold", b.untold);
  if (const auto* models = o.if_contains("models"); models && models->is_array())
    for (const auto& m : models->get_array())
      if (m.is_object() && b.models.size() < most_models) b.models.push_back(model_of(m.get_object()));
  if (const auto* known = o.if_contains("known"); known && known->is_array())
    for (const auto& m : known->get_array())
      if (m.is_object() && b.known.size() < most_known) b.known.push_back(known_of(m.get_object()));
  take(o, "known_left_out", b.known_left_out);
  take(o, "on_demand", b.on_demand);
  if (const auto* all = o.if_contains("devices"); all && all->is_array()) take_devices(all->get_array(), b);
  if (const auto* all = o.if_contains("gateways"); all && all->is_object())
    take_gateways(all->get_object(), b);
  return b;
}

}  // namespace weir::core::fleet
