#include "core/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/join_config.h"

namespace weir::core {
namespace {

constexpr const char* file_head =
    "# The settings of `weir serve`, for `weir serve --config FILE`. The command line (--max-batch) and the\n"
    "# environment (WEIR_MAX_BATCH) come before this file. A setting that is commented out has no value.\n";

// A string of TOML. The reader (CLI11) knows no escapes, so that text with a quote stands in quotes of the
// other kind.
std::string toml_string(const std::string& text) {
  const char quote = text.find_first_of("\"\\") == text.npos ? '"' : '\'';
  return quote + text + quote;
}

// A number of TOML, or a string where the value is a word or has a letter: auto, 512M.
std::string toml_number(const std::string& text) {
  return text.find_first_not_of("0123456789") == text.npos ? text : toml_string(text);
}

// Collects the lines of the settings that it is called with. The fields have the defaults.
class config_text {
 public:
  explicit config_text(const given_values& given) : given_(given) {}

  void operator()(const setting& s, const bool& otherwise) {
    const auto value = given(s, fmt::format("{}", otherwise));
    add(s, fmt::format("true or false, default {}", otherwise), value, true);
  }
  void operator()(const setting& s, const std::string& otherwise) {
    const auto value = given(s, otherwise);
    const auto form = otherwise.empty() ? s.unit : fmt::format("{}, default {}", s.unit, otherwise);
    add(s, form, toml_string(value.empty() ? s.unit : value), !value.empty());
  }
  // Given values are added to the default ones, so the file has only the given ones.
  void operator()(const setting& s, const std::vector<std::string>&) {
    std::vector<std::string> items;
    for (const auto& item : given_(s)) items.push_back(toml_string(item));
    const bool none = items.empty();
    if (none) items.push_back(toml_string(s.unit));
    add(s, fmt::format("list of {}", s.unit), fmt::format("[{}]", fmt::join(items, ", ")), !none);
  }
  template <class T>
  void operator()(const setting& s, const T& otherwise) {
    const auto usual = text_of(s, number_of(s, otherwise));
    const auto range = s.has_range() ? fmt::format(", {} to {}", s.low, s.high) : std::string();
    add(s, fmt::format("{}{}, default {}", s.unit, range, usual), toml_number(given(s, usual)), true);
  }

  // The settings by group, in the order in which the groups came first.
  std::string text() const {
    std::string out = file_head;
    for (const auto& [name, lines] : groups_) out += fmt::format("\n# ---- {}\n{}", name, lines);
    return out;
  }

 private:
  struct group {
    std::string name, lines;
  };

  std::string given(const setting& s, const std::string& otherwise) const {
    const auto values = given_(s);
    return values.empty() ? otherwise : values.back();
  }

  // `form`: unit, range and default of a value. `value`: as TOML has it.
  void add(const setting& s, const std::string& form, const std::string& value, bool has_value) {
    auto at = std::ranges::find(groups_, s.group, &group::name);
    if (at == groups_.end()) at = groups_.insert(at, group{s.group, {}});
    at->lines +=
        fmt::format("\n# {}\n# {}\n{}{} = {}\n", s.meaning, form, has_value ? "" : "#", s.name, value);
  }

  const given_values& given_;
  std::vector<group> groups_;
};

}  // namespace

std::string config_file_of(const given_values& given) {
  config_text file(given);
  engine_settings engine;
  server_settings server;
  member_settings fleet;
  log_settings log;
  visit_settings(engine, file);
  visit_settings(server, file);
  visit_settings(fleet, file);
  visit_settings(log, file);
  return file.text();
}

}  // namespace weir::core
