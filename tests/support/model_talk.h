// model_talk.h — what tests say to the routes that load and unload models, and what they look for in the
// answers.
#pragma once

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "tests/support/http_client.h"

namespace weir::tests {

inline constexpr const char* models_route = "/v1/admin/models";

inline std::string text_of(const boost::json::value& v) { return std::string(v.as_string()); }

inline std::string code_of(const http_answer& a) { return text_of(a.error().at("code")); }

// A model of the list of an admin; null: it is not known.
inline boost::json::value model_of(http_client& c, std::string_view name) {
  const auto all = c.get(models_route).json();
  for (const auto& m : all.at("models").as_array())
    if (m.at("name") == json_text(name)) return m;
  return {};
}

inline std::string state_of(http_client& c, std::string_view name) {
  const auto m = model_of(c, name);
  return m.is_null() ? "unknown" : text_of(m.at("state"));
}

// Loads a simulated model. `more`: further fields, with a comma before them.
inline http_answer add_model(http_client& c, const std::string& name, const std::string& more = {}) {
  return c.post(models_route, R"({"name":")" + name + R"(","source":"sim:rate=5000")" + more + "}");
}

inline http_answer change_model(http_client& c, const std::string& name, const std::string& body) {
  return c.post(std::string(models_route) + "/" + name, body);
}

inline http_answer forget_model(http_client& c, const std::string& name) {
  return c.ask("DELETE", std::string(models_route) + "/" + name, {}, {});
}

inline std::string bearer_line(const std::string& key) { return "Authorization: Bearer " + key + "\r\n"; }

}  // namespace weir::tests
