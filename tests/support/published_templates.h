// published_templates.h — the chat templates of real models in the data folder, with what Python makes of
// them.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/data.h"

namespace weir::tests {

struct published_case {
  std::string name, bos, eos;
  boost::json::array messages;
  boost::json::value tools;  // null: none
  boost::json::object extra;
  bool add_generation_prompt = false;
  std::optional<std::string> expected;  // nullopt: the template refuses the conversation
  std::string message;                  // what it says then
};

struct published_template {
  std::string name, source;
  std::vector<published_case> cases;
};

// The time that every case was made with: 2025-07-26T12:34:56.
inline constexpr std::chrono::local_seconds published_now =
    std::chrono::local_days(std::chrono::year(2025) / 7 / 26) + std::chrono::hours(12) +
    std::chrono::minutes(34) + std::chrono::seconds(56);

inline published_case published_case_of(const boost::json::object& o) {
  const auto text = [&](const char* name) {
    const auto* v = o.if_contains(name);
    return v && v->is_string() ? std::string(v->get_string()) : std::string();
  };
  published_case c;
  c.name = text("name");
  c.bos = text("bos");
  c.eos = text("eos");
  c.messages = o.at("messages").as_array();
  if (const auto* tools = o.if_contains("tools")) c.tools = *tools;
  if (const auto* extra = o.if_contains("extra"); extra && extra->is_object()) c.extra = extra->get_object();
  c.add_generation_prompt = o.at("add_generation_prompt").as_bool();
  if (o.contains("expected")) c.expected = text("expected");
  c.message = text("message");
  return c;
}

// Empty where the data is missing.
inline std::vector<published_template> published_templates() {
  std::vector<published_template> out;
  std::error_code ec;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(data_dir() / "templates", ec))
    if (entry.path().extension() == ".jinja") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (auto file : files) {
    published_template& t = out.emplace_back();
    t.name = file.stem().string();
    t.source = read_file(file);
    const auto cases = boost::json::parse(read_file(file.replace_extension(".cases.json")));
    for (const auto& c : cases.at("cases").as_array()) t.cases.push_back(published_case_of(c.as_object()));
  }
  return out;
}

}  // namespace weir::tests
