#include "tests/stranger/tools.h"

#include "tests/stranger/constraints.h"

namespace weir::stranger {
namespace {

constexpr std::string_view usual_schema =
    R"({"type":"object","properties":{"place":{"type":"string","maxLength":9},"n":{"enum":[1,2]}},)"
    R"("required":["n"],"additionalProperties":false})";

std::string schema(random_source& draw, bool hard) {
  if (hard) return hostile_schema(draw);
  if (draw.chance(10)) return odd_value(draw);
  return std::string(usual_schema);
}

std::string tool(random_source& draw, tool_names names, const std::string& name, bool hard) {
  std::vector<field> f = {{"name", quoted(name)}};
  if (draw.chance(80)) f.push_back({"description", quoted("what it does")});
  f.push_back({names == tool_names::messages ? "input_schema" : "parameters", schema(draw, hard)});
  if (draw.chance(40)) f.push_back({"strict", draw.chance(80) ? "true" : "false"});
  if (names == tool_names::messages) return object(f);
  if (names == tool_names::chat) return object({{"type", "\"function\""}, {"function", object(f)}});
  f.push_back({"type", "\"function\""});
  return object(f);
}

std::string choice(random_source& draw, tool_names names) {
  if (names == tool_names::messages) {
    static const std::string all[] = {R"({"type":"auto"})",
                                      R"({"type":"any"})",
                                      R"({"type":"none"})",
                                      R"({"type":"tool","name":"t0"})",
                                      R"({"type":"tool","name":"?"})",
                                      R"({"type":"any","disable_parallel_tool_use":true})"};
    return draw.pick(all);
  }
  static const std::string all[] = {
      R"("auto")",
      R"("none")",
      R"("required")",
      R"({"type":"function","name":"t0"})",
      R"({"type":"function","function":{"name":"t0"}})",
      R"({"type":"function","function":{"name":"?"}})",
      R"({"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"t0"}]})"};
  return draw.pick(all);
}

}  // namespace

std::vector<field> tool_fields(random_source& draw, tool_names names) {
  const bool hard = draw.chance(33);
  const std::size_t many = hard && draw.chance(30) ? draw.between(100, 2'001) : draw.between(1, 4);
  std::string list = "[";
  for (std::size_t i = 0; i < many; ++i) {
    if (i > 0) list += ',';
    list += tool(draw, names, "t" + std::to_string(draw.chance(5) ? 0 : i), hard && i % 50 == 0);
  }
  std::vector<field> fields = {{"tools", list + ']'}};
  if (draw.chance(70)) fields.push_back({"tool_choice", choice(draw, names)});
  if (draw.chance(30) && names != tool_names::messages) fields.push_back({"parallel_tool_calls", "false"});
  if (draw.chance(30))
    fields.push_back(
        {"max_reasoning_tokens", draw.chance(80) ? std::to_string(draw.below(50)) : "4294967295"});
  return fields;
}

std::string called_turns(random_source& draw) {
  std::string out;
  for (std::size_t n = draw.between(1, 3); n > 0; --n) {
    const std::string id = draw.chance(80) ? "\"c" + std::to_string(n) + '"' : odd_value(draw);
    const std::string arguments = draw.chance(80) ? R"("{\"n\":1}")" : odd_value(draw);
    const std::string function = object({{"name", "\"t0\""}, {"arguments", arguments}});
    out += object({{"role", "\"assistant\""},
                   {"content", draw.chance(50) ? "null" : "\"I look.\""},
                   {"reasoning_content", draw.chance(50) ? "\"hm\"" : "null"},
                   {"tool_calls",
                    '[' + object({{"id", id}, {"type", "\"function\""}, {"function", function}}) + ']'}}) +
           ',';
    out += object({{"role", "\"tool\""}, {"tool_call_id", id}, {"content", "\"18\""}}) + ',';
    if (draw.chance(20)) out += object({{"role", "\"system\""}, {"content", "\"be brief\""}}) + ',';
  }
  return out;
}

std::string_view calling_template() {
  return "{% for m in messages %}{{ m.role }}: {% if m.reasoning_content %}<think>\n{{ m.reasoning_content "
         "}}\n"
         "</think>\n\n{% endif %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}\n<tool_call>\n"
         "{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}\n"
         "</tool_call>{% endfor %}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}";
}

}  // namespace weir::stranger
