// templates.cpp — a conversation of 100 messages with tools, rendered by each published chat template.
//
//   bench_templates
#include <algorithm>
#include <cstdio>

#include "core/text/chat/chat_template.h"
#include "tests/support/published_templates.h"

using namespace weir;
namespace json = boost::json;

namespace {

json::object function_tool(int i) {
  const json::object parameters{
      {"type", "object"},
      {"properties",
       {{"city", {{"type", "string"}, {"description", "Name of a city, with its country"}}},
        {"days", {{"type", "integer"}, {"description", "How many days from today on"}}}}},
      {"required", {"city"}}};
  return {{"type", "function"},
          {"function",
           {{"name", "get_weather_" + std::to_string(i)},
            {"description", "Gives the weather of the coming days at a place."},
            {"parameters", parameters}}}};
}

json::object message(const char* role, std::string content) {
  return {{"role", role}, {"content", std::move(content)}};
}

constexpr const char* words =
    "A sentence of some length, as people and models write them, and one more of the same. ";

core::conversation plain_conversation() {
  core::conversation c;
  for (int i = 0; i < 50; ++i) {
    c.messages.push_back(message("user", words));
    c.messages.push_back(message("assistant", words));
  }
  return c;
}

core::conversation conversation_with_tools() {
  core::conversation c;
  for (int i = 0; i < 25; ++i) {
    c.messages.push_back(message("user", words));
    json::object call = message("assistant", "");
    call["tool_calls"] = json::array{json::object{
        {"id", "call00001"},
        {"type", "function"},
        {"function", {{"name", "get_weather_1"}, {"arguments", {{"city", "Köln"}, {"days", 3}}}}}}};
    c.messages.push_back(std::move(call));
    json::object outcome = message("tool", words);
    outcome["tool_call_id"] = "call00001";
    c.messages.push_back(std::move(outcome));
    c.messages.push_back(message("assistant", words));
  }
  json::array tools;
  for (int i = 0; i < 5; ++i) tools.push_back(function_tool(i));
  c.tools = std::move(tools);
  return c;
}

// The median time of a rendering in ms; negative if the template refuses the conversation.
double render_time(const core::chat_template& chat, const core::conversation& c) {
  std::vector<double> took;
  for (int i = 0; i < 21; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (!chat.render(c, tests::published_now)) return -1;
    took.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(took.begin(), took.begin() + 10, took.end());
  return took[10];
}

}  // namespace

int main() {
  const core::conversation with_calls = conversation_with_tools(), plain = plain_conversation();
  std::printf("%-48s %14s %14s\n", "ms for 100 messages", "calls, tools", "text alone");
  double slowest = 0;
  for (const auto& file : tests::published_templates()) {
    const auto chat =
        core::chat_template::from_source(file.source, {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
    const double calls = render_time(*chat, with_calls), text = render_time(*chat, plain);
    slowest = std::max({slowest, calls, text});
    const auto shown = [](double ms) { return ms < 0 ? std::string("refused") : fmt::format("{:.3f}", ms); };
    std::printf("%-48s %14s %14s\n", file.name.c_str(), shown(calls).c_str(), shown(text).c_str());
  }
  std::printf("slowest: %.3f ms\n", slowest);
}
