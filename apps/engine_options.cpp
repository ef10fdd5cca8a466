#include "apps/engine_options.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <sstream>

#include "actors/models_dir.h"
#include "actors/open_model.h"
#include "core/model/load.h"
#include "core/schedule/shares.h"
#include "core/text/read_file.h"
#include "core/text/template/template.h"

namespace weir::apps {
namespace {

using core::bad_param;

constexpr std::size_t most_devices = 64;
constexpr std::size_t most_aliases = 1000;
constexpr std::size_t most_template_bytes = 1 << 20;

// Parses NAME=SOURCE or SOURCE.
actors::model_spec spec_of(const std::string& text) {
  actors::model_spec m;
  const auto eq = text.find('=');
  m.source = eq == text.npos ? text : text.substr(eq + 1);
  m.name = eq == text.npos ? actors::name_of_source(m.source) : text.substr(0, eq);
  return m;
}

core::result<std::string> device_of(const std::string& asked, std::string& why_cpu) {
  if (asked == "auto") return core::best_device(why_cpu);
  if (asked == "cpu" || asked == "reference") return asked;
  if (asked == "sim" || asked.starts_with("sim:")) return std::string("sim");
  if (asked == "cuda") return std::string("cuda:0");
  const bool numbered =
      asked.starts_with("cuda:") && asked.size() > 5 && asked.size() < 9 &&
      std::all_of(asked.begin() + 5, asked.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (numbered) return asked;
  return bad_param(
      "device",
      "--device must be auto, cuda[:N], cpu, reference or sim[:K=V,...], or several with commas, not '{}'",
      asked);
}

// The devices of a list with commas. A sim's options have commas, too, so a sim stands alone.
core::result<std::vector<std::string>> devices_of(const std::string& asked, std::string& why_cpu) {
  std::vector<std::string> out;
  if (asked.starts_with("sim") || asked.find(',') == asked.npos) {
    auto one = device_of(asked, why_cpu);
    if (!one) return one.error();
    out.push_back(std::move(*one));
    return out;
  }
  std::istringstream names(asked + ",");
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "auto" || name.starts_with("sim"))
      return bad_param("device", "--device {}: '{}' stands alone, or not at all", asked, name);
    auto one = device_of(name, why_cpu);
    if (!one) return one.error();
    if (one->starts_with("cuda:") && std::ranges::find(out, *one) != out.end())
      return bad_param("device", "--device {}: {} is there twice", asked, *one);
    out.push_back(std::move(*one));
  }
  if (out.size() > most_devices)
    return bad_param("device", "--device names {} devices, {} are the most", out.size(), most_devices);
  return out;
}

core::result<std::vector<actors::model_spec>> models_of(const core::engine_settings& s,
                                                        const std::string& device) {
  std::vector<actors::model_spec> out;
  if (device == "sim") {
    if (!s.model.empty())
      return bad_param("model", "--model: the simulated device serves its own model, called sim");
    out.push_back({"sim", s.device});
    return out;
  }
  if (s.model.empty()) {
    out.push_back({"rill", bundled_model()});
    return out;
  }
  std::set<std::string> names;
  for (const auto& text : s.model) {
    auto m = spec_of(text);
    if (m.name.empty()) return bad_param("model", "--model {}: the name is empty", text);
    if (!names.insert(m.name).second)
      return bad_param("model", "--model: two models are called '{}'; give one another name: NAME=PATH",
                       m.name);
    out.push_back(std::move(m));
  }
  return out;
}

core::result<> set_chat_template(actors::owner_options& o, const core::engine_settings& s) {
  o.chatml = s.chatml;
  const std::string& file = s.chat_template;
  if (file.empty()) return {};
  if (s.chatml) return bad_param("chat-template", "--chat-template and --chatml exclude each other");
  const auto text = core::read_file(file);
  if (!text) return bad_param("chat-template", "--chat-template: {}", text.error().message);
  if (!*text) return bad_param("chat-template", "--chat-template: there is no file {}", file);
  if (text->value().size() > most_template_bytes)
    return bad_param("chat-template", "--chat-template: {} has more than {} bytes", file,
                     most_template_bytes);
  if (const auto program = core::jinja::program::compile(**text); !program)
    return bad_param("chat-template", "--chat-template {}: {}", file, program.error().message);
  o.chat_template = std::make_shared<const actors::template_text>(actors::template_text{file, **text});
  return {};
}

core::result<> set_models_dir(actors::service_options& o, const std::string& dir) {
  if (dir.empty()) return {};
  if (o.owner.device == "sim")
    return bad_param("models-dir", "--models-dir: the simulated device runs no models of files");
  auto found = actors::models_in(dir);
  if (!found) return bad_param("models-dir", "--models-dir {}", found.error().message);
  o.known_models = std::move(*found);
  return {};
}

struct asked_context {
  std::string name;  // of a model; empty: of all models that no other context names
  std::uint32_t tokens = 0;
};

// Parses [NAME=]TOKENS.
core::result<asked_context> context_in(const std::string& text) {
  constexpr std::uint32_t most = 1 << 24;
  const auto equals = text.find('=');
  asked_context out;
  if (equals != text.npos) out.name = text.substr(0, equals);
  const char *begin = text.data() + (equals == text.npos ? 0 : equals + 1), *end = text.data() + text.size();
  const auto [at, ec] = std::from_chars(begin, end, out.tokens);
  if (ec != std::errc() || at != end || out.tokens > most || equals == 0)
    return bad_param("context", "--context {}: [NAME=]TOKENS is wanted, of 0 to {} tokens", text, most);
  return out;
}

core::result<> set_contexts(actors::service_options& o, const std::vector<std::string>& contexts) {
  std::set<std::string> named;
  for (const auto& text : contexts) {
    const auto asked = context_in(text);
    if (!asked) return asked.error();
    if (!named.insert(asked->name).second)
      return bad_param("context", "--context {}: another one is for the same models", text);
    bool found = asked->name.empty();
    if (found) o.owner.context = asked->tokens;
    for (auto* models : {&o.models, &o.known_models})
      for (auto& m : *models)
        if (m.name == asked->name) m.context = asked->tokens, found = true;
    if (!found) return bad_param("context", "--context {}: no model is called '{}'", text, asked->name);
  }
  return {};
}

}  // namespace

std::string bundled_model() {
  namespace fs = std::filesystem;
  std::error_code ec;
  const auto installed = fs::read_symlink("/proc/self/exe", ec).parent_path() / "../share/weir/models/rill";
  return (fs::is_directory(installed, ec) ? installed.lexically_normal() : fs::path(WEIR_MODELS_DIR "/rill"))
      .string();
}

core::result<actors::service_options> service_options_of(const core::engine_settings& s,
                                                         const core::queue_settings& queue,
                                                         std::string& why_cpu,
                                                         const std::string& models_dir) {
  auto devices = devices_of(s.device, why_cpu);
  if (!devices) return devices.error();
  auto models = models_of(s, devices->front());
  if (!models) return models.error();
  const auto slo = core::parse_objective(s.slo);
  if (!slo) return slo.error();
  const auto kv = core::parse_kv_type(s.kv_type);
  if (!kv) return kv.error();
  const auto activations = core::parse_activations(s.activations);
  if (!activations) return activations.error();
  for (const auto& device : *devices)
    if (const auto ok = core::check_activations(device, *activations); !ok) return ok.error();
  actors::service_options o;
  o.models = std::move(*models);
  o.owner = {s, queue, devices->front()};
  o.devices = std::move(*devices);
  o.owner.slo = *slo;
  o.owner.kv = *kv;
  o.owner.activations = *activations;
  if (const auto ok = set_chat_template(o.owner, s); !ok) return ok.error();
  if (const auto ok = set_models_dir(o, models_dir); !ok) return ok.error();
  if (const auto ok = set_contexts(o, s.context); !ok) return ok.error();
  return o;
}

core::result<> set_aliases(actors::service_options& o, const std::vector<std::string>& aliases) {
  if (aliases.size() > most_aliases)
    return bad_param("alias", "--alias: {} names, {} are the most", aliases.size(), most_aliases);
  const auto is_model = [&](const std::string& name) {
    return std::ranges::find(o.models, name, &actors::model_spec::name) != o.models.end() ||
           std::ranges::find(o.known_models, name, &actors::model_spec::name) != o.known_models.end();
  };
  for (const auto& text : aliases) {
    const auto equals = text.find('=');
    if (equals == text.npos || equals == 0 || equals + 1 == text.size())
      return bad_param("alias", "--alias {}: NAME=MODEL is wanted", text);
    const std::string name = text.substr(0, equals);
    if (is_model(name)) return bad_param("alias", "--alias {}: a model is called '{}'", text, name);
    if (!o.aliases.emplace(name, text.substr(equals + 1)).second)
      return bad_param("alias", "--alias {}: '{}' is an alias already", text, name);
  }
  for (const auto& [name, model] : o.aliases)
    if (o.aliases.contains(model))
      return bad_param("alias", "--alias {}={}: '{}' is an alias itself", name, model, model);
  return {};
}

core::result<> set_shares(actors::service_options& o, const std::vector<std::string>& shares) {
  std::set<std::string> named;
  for (const auto& text : shares) {
    const auto equals = text.rfind('=');
    const auto weight = equals == text.npos ? std::nullopt : core::parse_weight(text.substr(equals + 1));
    if (!weight || equals == 0)
      return bad_param("share", "--share {}: NAME=WEIGHT is wanted, a weight of {} to {}", text,
                       core::least_weight, core::most_weight);
    const std::string name = text.substr(0, equals);
    if (!named.insert(name).second)
      return bad_param("share", "--share {}: another one is for the same model", text);
    bool found = false;
    for (auto* models : {&o.models, &o.known_models})
      for (auto& m : *models)
        if (m.name == name) m.share = weight, found = true;
    if (!found) return bad_param("share", "--share {}: no model is called '{}'", text, name);
  }
  return {};
}

core::result<> set_limits(actors::service_options& o, const std::vector<std::string>& limits) {
  std::set<std::string> named;
  for (const auto& text : limits) {
    const auto equals = text.rfind('=');
    if (equals == text.npos || equals == 0)
      return bad_param("limit", "--limit {}: NAME=LIMIT:N,LIMIT:N is wanted", text);
    const std::string name = text.substr(0, equals);
    const auto asked = core::parse_limits(text.substr(equals + 1), "limit");
    if (!asked) return bad_param("limit", "--{}", asked.error().message);
    if (!named.insert(name).second)
      return bad_param("limit", "--limit {}: another one is for the same model", text);
    bool found = false;
    for (auto* models : {&o.models, &o.known_models})
      for (auto& m : *models) {
        if (m.name != name) continue;
        m.limits = *asked;
        found = true;
        if (const auto own = actors::options_for(m, o.owner); !own)
          return bad_param("limit", "--limit {}", own.error().message);
      }
    if (!found) return bad_param("limit", "--limit {}: no model is called '{}'", text, name);
  }
  return {};
}

namespace {

// Calls set(model) for the model of this name. False: there is none.
template <class Set>
bool with_model(actors::service_options& o, const std::string& name, const Set& set) {
  bool found = false;
  for (auto* models : {&o.models, &o.known_models})
    for (auto& m : *models)
      if (m.name == name) set(m), found = true;
  return found;
}

std::optional<std::uint32_t> seconds_in(std::string_view text) {
  constexpr std::uint32_t most = 86'400 * 7;
  std::uint32_t s = 0;
  const auto got = std::from_chars(text.data(), text.data() + text.size(), s);
  if (got.ec != std::errc() || got.ptr != text.data() + text.size() || s == 0 || s > most)
    return std::nullopt;
  return s;
}

// Sets times after which models without jobs leave, given as NAME=SECONDS.
core::result<> set_idle(actors::service_options& o, const std::string& option,
                        const std::vector<std::string>& given,
                        std::optional<core::duration> actors::model_spec::*of) {
  std::set<std::string> named;
  for (const auto& text : given) {
    const auto equals = text.rfind('=');
    const auto time =
        equals == text.npos ? std::nullopt : seconds_in(std::string_view(text).substr(equals + 1));
    if (!time || equals == 0)
      return bad_param(option, "--{} {}: NAME=SECONDS is wanted, 1 s to 7 days", option, text);
    if (!o.demand.on) return bad_param(option, "--{} {}: it needs --on-demand", option, text);
    const std::string name = text.substr(0, equals);
    if (!named.insert(name).second)
      return bad_param(option, "--{} {}: another one is for the same model", option, text);
    if (!with_model(o, name, [&](actors::model_spec& m) { m.*of = std::chrono::seconds(*time); }))
      return bad_param(option, "--{} {}: no model is called '{}'", option, text, name);
  }
  return {};
}

}  // namespace

core::result<> set_demand(actors::service_options& o, const core::demand_settings& s, bool has_dir) {
  o.demand.on = s.on_demand || has_dir;
  o.demand.load_wait = s.load_wait;
  o.demand.stay = s.stay;
  o.demand.swap_wait = s.swap_wait;
  o.demand.longest_stay = s.longest_stay;
  o.sleep_bytes = std::uint64_t{s.sleep_mb} << 20;
  for (const auto& name : s.pinned)
    if (!with_model(o, name, [](actors::model_spec& m) { m.pinned = true; }))
      return bad_param("pinned", "--pinned {}: no model is called so", name);
  if (auto ok = set_idle(o, "idle-unload", s.idle_unload, &actors::model_spec::idle_unload); !ok) return ok;
  return set_idle(o, "idle-sleep", s.idle_sleep, &actors::model_spec::idle_sleep);
}

core::result<> set_copies(actors::service_options& o, std::uint32_t copies) {
  if (o.owner.device == "sim") o.devices.assign(copies, "sim");
  if (copies > o.devices.size())
    return bad_param("replicas", "--replicas {}: --device names {} device{}", copies, o.devices.size(),
                     o.devices.size() == 1 ? "" : "s");
  o.copies = copies;
  return {};
}

}  // namespace weir::apps
