#include "core/text/chat/template_prober.h"

#include <boost/json/parse.hpp>

namespace weir::core {
namespace {

namespace json = boost::json;

constexpr jinja::limits most_of_a_probe() {
  return {.steps = 1'000'000, .depth = 500, .memory_bytes = 16u << 20, .output_bytes = 1u << 20};
}

constexpr const char* probe_tools = R"([{"type":"function","function":{"name":"weir","description":"d",
  "parameters":{"type":"object","properties":{"weirkey":{"type":"string","description":"d"}},
  "required":["weirkey"]}}}])";

}  // namespace

template_prober::template_prober(const jinja::program& p, const json::object& tokens)
    : program_(p), tokens_(tokens) {
  for (const char* name : {"bos_token", "eos_token"})
    if (!tokens_.contains(name)) tokens_[name] = "";
}

std::string template_prober::prompt_of(json::array messages, bool tools) const {
  const json::object given{{"messages", std::move(messages)},
                           {"tools", tools ? json::parse(probe_tools) : json::value()},
                           {"documents", nullptr},
                           {"add_generation_prompt", true}};
  auto made = program_.render({given, tokens_, {}}, most_of_a_probe());
  return made ? std::move(made->text) : std::string();
}

json::array messages_of(std::string_view text) {
  return json::parse(json::string_view(text.data(), text.size())).as_array();
}

}  // namespace weir::core
