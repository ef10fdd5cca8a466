#include "apps/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <vector>

#include "core/config.h"

namespace weir::apps {
namespace {

constexpr const char* head =
    "# The settings of `weir serve`, for `weir serve --config FILE`. The command line (--max-batch) and the\n"
    "# environment (WEIR_MAX_BATCH) come before this file. A setting that is commented out has no value.\n";

// A string of TOML. The reader (CLI11) knows no escapes, so that text with a quote stands in quotes of the
// other kind.
std::string quoted(const std::string& text) {
  const char quote = text.find_first_of("\"\\") == text.npos ? '"' : '\'';
  return quote + text + quote;
}

// A number of TOML, or a string where the value is a word or has a letter: auto, 512M.
std::string number(const std::string& text) {
  return text.find_first_not_of("0123456789") == text.npos ? text : quoted(text);
}

// Collects the lines of the settings that it is called with. The fields have the defaults.
class config_text {
 public:
  explicit config_text(const CLI::App& app) : app_(app) {}

  void operator()(const core::setting& s, const bool& otherwise) {
    const auto* o = option(s);
    const bool value = o->count() ? o->as<bool>() : otherwise;
    add(s, fmt::format("true or false, default {}", otherwise), fmt::format("{}", value), true);
  }
  void operator()(const core::setting& s, const std::string& otherwise) {
    const auto value = given(s, otherwise);
    const auto form = otherwise.empty() ? s.unit : fmt::format("{}, default {}", s.unit, otherwise);
    add(s, form, quoted(value.empty() ? s.unit : value), !value.empty());
  }
  // Given values are added to the default ones, so the file has only the given ones.
  void operator()(const core::setting& s, const std::vector<std::string>&) {
    std::vector<std::string> items;
    for (const auto& item : option(s)->results()) items.push_back(quoted(item));
    const bool none = items.empty();
    if (none) items.push_back(quoted(s.unit));
    add(s, fmt::format("list of {}", s.unit), fmt::format("[{}]", fmt::join(items, ", ")), !none);
  }
  template <class T>
  void operator()(const core::setting& s, const T& otherwise) {
    const auto usual = core::text_of(s, core::number_of(s, otherwise));
    const auto range = s.has_range() ? fmt::format(", {} to {}", s.low, s.high) : std::string();
    add(s, fmt::format("{}{}, default {}", s.unit, range, usual), number(given(s, usual)), true);
  }

  // The settings by group, in the order in which the groups came first.
  std::string text() const {
    std::string out = head;
    for (const auto& [name, lines] : groups_) out += fmt::format("\n# ---- {}\n{}", name, lines);
    return out;
  }

 private:
  struct group {
    std::string name, lines;
  };

  const CLI::Option* option(const core::setting& s) const {
    return app_.get_option(std::string("--") + s.name);
  }
  std::string given(const core::setting& s, const std::string& otherwise) const {
    const auto* o = option(s);
    return o->count() ? o->results().back() : otherwise;
  }

  // `form`: unit, range and default of a value. `value`: as TOML has it.
  void add(const core::setting& s, const std::string& form, const std::string& value, bool has_value) {
    auto at = std::ranges::find(groups_, s.group, &group::name);
    if (at == groups_.end()) at = groups_.insert(at, group{s.group, {}});
    at->lines +=
        fmt::format("\n# {}\n# {}\n{}{} = {}\n", s.meaning, form, has_value ? "" : "#", s.name, value);
  }

  const CLI::App& app_;
  std::vector<group> groups_;
};

}  // namespace

std::string config_file_of(const CLI::App& app) {
  config_text file(app);
  core::engine_settings engine;
  core::server_settings server;
  core::log_settings log;
  core::visit_settings(engine, file);
  core::visit_settings(server, file);
  core::visit_settings(log, file);
  return file.text();
}

}  // namespace weir::apps
