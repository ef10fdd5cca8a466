#include "apps/options.h"

#include <spdlog/spdlog.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "apps/log.h"

namespace weir::apps {
namespace {

std::string variable(std::string name) {
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
  return "WEIR_" + name;
}

// Adds one option for each setting that it is called with. The type of the field decides the kind of option.
struct adder {
  CLI::App& app;

  void operator()(const core::setting& s, bool& field) const {
    finish(app.add_flag(flag(s), field, s.meaning), s);
  }
  void operator()(const core::setting& s, std::string& field) const {
    finish(app.add_option(flag(s), field, s.meaning)->capture_default_str(), s);
  }
  void operator()(const core::setting& s, std::vector<std::string>& field) const {
    const auto add = [&field](const std::vector<std::string>& more) {
      field.insert(field.end(), more.begin(), more.end());
    };
    finish(app.add_option_function<std::vector<std::string>>(flag(s), add, s.meaning)
               ->take_all()
               ->allow_extra_args(false),
           s);
  }
  template <class T>
  void operator()(const core::setting& s, T& field) const {
    const auto take = [s, &field](std::uint32_t n) { core::set_number(s, field, n); };
    const auto read = [s, &field](const std::string& text) {
      const auto n = core::parse_number(s, text);
      if (!n) throw CLI::ValidationError(n.error().message);
      core::set_number(s, field, *n);
    };
    auto* o = s.has_range() ? app.add_option_function<std::uint32_t>(flag(s), take, s.meaning)
                            : app.add_option_function<std::string>(flag(s), read, s.meaning);
    if (s.has_range()) o->check(CLI::Range(s.low, s.high));
    finish(o->default_str(core::text_of(s, core::number_of(s, field))), s);
  }

  static std::string flag(const core::setting& s) { return std::string("--") + s.name; }
  static void finish(CLI::Option* o, const core::setting& s) {
    o->envname(variable(s.name))->group(s.group);
    if (*s.unit) o->type_name(s.unit);
  }
};

}  // namespace

void add_settings(CLI::App& app, core::engine_settings& s) { core::visit_settings(s, adder{app}); }
void add_settings(CLI::App& app, core::server_settings& s) { core::visit_settings(s, adder{app}); }
void add_settings(CLI::App& app, core::join_settings& s) { core::visit_settings(s, adder{app}); }
void add_settings(CLI::App& app, core::member_settings& s) { core::visit_settings(s, adder{app}); }
void add_settings(CLI::App& app, core::worker_settings& s) { core::visit_settings(s, adder{app}); }
void add_settings(CLI::App& app, core::gateway_settings& s) { core::visit_settings(s, adder{app}); }

void add_common(CLI::App& app) {
  app.add_option("--config", "a TOML file with any of these options")
      ->type_name("FILE")
      ->envname("WEIR_CONFIG")
      ->configurable(false);
  core::log_settings log;
  core::visit_settings(log, [&](const core::setting& s, const std::string& usual) {
    const bool is_level = &usual == &log.level;
    const auto take = [is_level](const std::string& given) {
      if (is_level) return spdlog::set_level(spdlog::level::from_str(given));
      set_log_format(given == "json" ? log_format::json : log_format::text);
    };
    const auto values = is_level ? std::vector<std::string>{"trace", "debug", "info", "warn", "error", "off"}
                                 : std::vector<std::string>{"text", "json"};
    auto* o = app.add_option_function<std::string>(adder::flag(s), take, s.meaning);
    adder::finish(o->check(CLI::IsMember(values).description(""))->default_str(usual), s);
  });
}

void name_variables(CLI::App& app) {
  for (auto* o : app.get_options())
    if (!o->get_lnames().empty() && o->get_lnames().front() != "help")
      o->envname(variable(o->get_lnames().front()));
}

// CLI11 itself reads a configuration file only for the topmost command, with a section for each subcommand.
// weir's configuration files have no sections.
void apply_config(CLI::App& app) {
  const auto* given = app.get_option_no_throw("--config");
  if (!given || given->count() == 0) return;
  const auto file = given->as<std::string>();
  std::ifstream in(file);
  if (!in) throw CLI::FileError("--config " + file + ": cannot be read");
  std::map<CLI::Option*, std::vector<std::string>> values;
  for (const auto& item : CLI::ConfigTOML().from_config(in)) {
    auto* option = item.parents.empty() ? app.get_option_no_throw("--" + item.name) : nullptr;
    if (!option || !option->get_configurable())
      throw CLI::ConfigError("--config " + file + ": '" + item.fullname() + "' is no option");
    auto& all = values[option];
    all.insert(all.end(), item.inputs.begin(), item.inputs.end());
  }
  for (auto& [option, inputs] : values) {
    if (option->count() != 0) continue;
    const bool flag = option->get_expected_max() == 0;
    if (flag && inputs == std::vector<std::string>{"false"}) continue;
    if (flag && inputs != std::vector<std::string>{"true"})
      throw CLI::ConfigError("--config " + file + ": " + option->get_name() + " is true or false");
    for (const auto& i : inputs) option->add_result(i);
    option->run_callback();
  }
}

core::given_values given_to(const CLI::App& app) {
  return [&app](const core::setting& s) -> std::vector<std::string> {
    const auto* o = app.get_option(adder::flag(s));
    if (o->count() == 0) return {};
    if (o->get_expected_max() == 0) return {o->as<bool>() ? "true" : "false"};
    return o->results();
  };
}

void refuse(CLI::App& app, std::initializer_list<const char*> names) {
  for (const char* name : names)
    app.add_option_function<std::vector<std::string>>(
           std::string("--") + name,
           [name](const std::vector<std::string>&) {
             throw CLI::ValidationError(std::string("--") + name, "not supported yet");
           },
           "not supported yet")
        ->expected(0, 1)
        ->envname(variable(name))
        ->group("");
}

void warn_of_unknown_variables(const CLI::App& app) {
  std::set<std::string> known{"WEIR_CUDA_PATH", "WEIR_CUDA_BLAS"};  // kernels/cuda/backend.h
  for (const auto* o : app.get_options()) known.insert(o->get_envname());
  for (char** v = environ; *v; ++v) {
    const std::string_view entry = *v;
    if (!entry.starts_with("WEIR_")) continue;
    const std::string name(entry.substr(0, entry.find('=')));
    if (!known.contains(name)) spdlog::warn("{} is set, and no option reads it", name);
  }
}

}  // namespace weir::apps
