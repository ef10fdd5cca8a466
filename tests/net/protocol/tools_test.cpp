// Tools of requests: their schemas as texts, for the grammar, and as values, for the template.
#include "net/protocol/tools.h"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "net/protocol/anthropic.h"
#include "net/protocol/constraint_fields.h"
#include "net/protocol/openai.h"
#include "net/protocol/responses.h"
#include "net/protocol/ws_protocol.h"

namespace weir::tests::tools_test {

using namespace weir::net;
namespace js = boost::json;

namespace {

// A schema whose text is not what a JSON library writes of its value.
constexpr std::string_view schema =
    R"({ "type":"object", "properties":{"z":{"type":"number","maximum":1.50e2},"a":{"const":"\u00f6"}} })";

std::string of_chat(std::string_view parameters) {
  return fmt::format(R"([{{"type":"function","function":{{"description":"d","name":"f","parameters":{},)"
                     R"("return":{{"type":"string"}},"strict":false}}}}])",
                     parameters);
}

std::string of_messages(std::string_view parameters) {
  return fmt::format(R"([{{"name":"f","description":"d","input_schema":{}}}])", parameters);
}

std::string of_responses(std::string_view parameters) {
  return fmt::format(R"([{{"type":"namespace","name":"n","tools":[{{"type":"function","name":"g",)"
                     R"("parameters":{0}}}]}},{{"type":"function","name":"f","parameters":{0}}}])",
                     parameters);
}

core::result<actors::request> over_chat(const std::string& tools) {
  auto p =
      openai::parse(openai::dialect::chat,
                    fmt::format(R"({{"messages":[{{"role":"user","content":"a"}}],"tools":{}}})", tools));
  if (!p) return p.error();
  return std::move(p->request);
}

core::result<actors::request> over_socket(const std::string& tools) {
  auto m = ws::parse(fmt::format(R"({{"type":"response.create","id":"a","tools":{},)"
                                 R"("input":[{{"role":"user","content":"a"}}]}})",
                                 tools),
                     {.depth = 16});
  if (auto* created = std::get_if<ws::response_create>(&m)) return std::move(created->request);
  const auto& why = std::get<ws::protocol_error>(m);
  return core::bad_param(why.param, "{}", why.message);
}

core::result<actors::request> over_messages(const std::string& tools) {
  auto p = anthropic::parse(
      anthropic::route::messages,
      fmt::format(R"({{"max_tokens":5,"messages":[{{"role":"user","content":"a"}}],"tools":{}}})", tools));
  if (!p) return p.error();
  return std::move(p->request);
}

core::result<actors::request> over_responses(const std::string& tools) {
  auto p = responses::parse(fmt::format(R"({{"input":"a","tools":{}}})", tools));
  if (!p) return p.error();
  return std::move(p->request);
}

struct dialect_of_tools {
  const char* name;
  std::string (*list)(std::string_view parameters);
  core::result<actors::request> (*read)(const std::string& tools);
  const char* param;
};

constexpr dialect_of_tools dialects[] = {
    {"chat", of_chat, over_chat, "tools[0].function.parameters"},
    {"weir.v1", of_chat, over_socket, "tools[0].function.parameters"},
    {"messages", of_messages, over_messages, "tools[0].input_schema"},
    {"responses", of_responses, over_responses, "tools[0].tools[0].parameters"},
};

// {"a":{"a":…{}}}
std::string nested(std::size_t depth) {
  std::string out = "{}";
  for (std::size_t i = 1; i < depth; ++i) out = R"({"a":)" + out + "}";
  return out;
}

}  // namespace

TEST_CASE("tools: a schema is its own text for the grammar, and its value for the template") {
  for (const auto& d : dialects) {
    CAPTURE(d.name);
    const auto r = d.read(d.list(schema));
    INFO((r ? "" : r.error().message));
    REQUIRE(r.has_value());
    for (const auto& t : r->tools.tools) CHECK(t.parameters == schema);
    for (const auto& shown : std::get<core::conversation>(r->input).tools.as_array()) {
      CHECK(shown.at("type") == "function");
      CHECK(shown.at("function").at("parameters") ==
            js::parse(js::string_view(schema.data(), schema.size())));
    }
    CHECK(d.read(d.list("{}"))->tools.tools[0].parameters.empty());
    CHECK(d.read(d.list("null"))->tools.tools[0].parameters.empty());
  }
}

TEST_CASE("tools: a template gets a tool of chat completions as it was sent") {
  const std::string sent = of_chat(R"({"type":"object","properties":{"z":{},"a":{}}})");
  for (const auto read : {over_chat, over_socket}) {
    const auto r = read(sent);
    REQUIRE(r.has_value());
    CHECK(js::serialize(std::get<core::conversation>(r->input).tools) == sent);
  }
}

TEST_CASE("tools: a deep schema does not count in a body's bounds, and has its own") {
  for (const auto& d : dialects) {
    CAPTURE(d.name);
    const auto deep = d.read(d.list(nested(60)));
    INFO((deep ? "" : deep.error().message));
    CHECK(deep.has_value());
    const auto deeper = d.read(d.list(nested(deepest_schema + 1)));
    REQUIRE(!deeper);
    CHECK(deeper.error().param == d.param);
    CHECK_THAT(deeper.error().message, Catch::Contains("nested deeper than 64"));
  }
}

TEST_CASE("tools: a schema that is no object, or no JSON, is refused by its place") {
  for (const auto& d : dialects) {
    CAPTURE(d.name);
    for (const auto& [value, says] : {std::pair{"[1]", "must be an object, not an array"},
                                      {"5", "must be an object, not a number"},
                                      {R"({"a":1,"a":2})", "'a' is there twice"}}) {
      const auto r = d.read(d.list(value));
      REQUIRE(!r);
      CHECK_THAT(r.error().message, Catch::Contains(says));
      CHECK(r.error().param == d.param);
    }
  }
}

TEST_CASE("tools: schemas of all tools together have a bound of values") {
  std::string wide = "[0";
  for (std::size_t i = 0; i < most_schema_values / 2; ++i) wide += ",0";
  wide = R"({"enum":)" + wide + "]}";
  const auto one = fmt::format(R"({{"type":"function","name":"a","parameters":{}}})", wide);
  CHECK(over_chat("[" + one + "]").has_value());
  const auto both = over_chat("[" + one + R"(,{"type":"function","name":"b","parameters":)" + wide + "}]");
  REQUIRE(!both);
  CHECK(both.error().param == "tools[1].parameters");
}

TEST_CASE("tools: the response object repeats the tools as they were sent") {
  const auto p = responses::parse(fmt::format(R"({{"input":"a","tools":{}}})", of_responses(schema)));
  REQUIRE(p.has_value());
  const auto echo = js::parse("{" + p->echo + "}");
  const auto sent = of_responses(schema);
  CHECK(echo.at("tools") == js::parse(sent));
}

TEST_CASE("tools: schemas are found in lists of tools alone") {
  const auto found = [](std::string_view body) { return bytes_of_schemas(body); };
  CHECK(found(R"({"tools":[{"parameters":{"a":[1,2]}}]})") == 11);
  CHECK(found(R"({"tools":[1,"]",[{"parameters":{}}],{"function":{"name":"f","parameters":{}}}]})") == 2);
  CHECK(found(R"({"tools":{"\"":{"parameters":{}}}})") == 0);
  CHECK(found(R"({"tools":[{"tools":[{"parameters":{}},{"parameters":{}}]}]})") == 4);
  for (const auto broken :
       {R"({"tools":[)", R"({"tools":[}]})", R"({"tools":[{"parameters":)", R"({"tools":[,,]]})"})
    CHECK(with_schemas_as_text(broken) == broken);
}

TEST_CASE(
    "tools: tools that a provider runs are left out, and tools with a schema of their own are refused") {
  const auto p = anthropic::parse(
      anthropic::route::messages,
      R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],"tools":[{"name":"f","type":"custom"},
          {"type":"web_search_20250305","name":"web_search"},
          {"type":"tool_search_tool_regex_20251119","name":"t"}]})");
  REQUIRE(p.has_value());
  CHECK(p->request.tools.tools.size() == 1);
  REQUIRE(p->warnings.size() == 2);
  CHECK(p->warnings[0].where == "tools[1]");
  for (const auto type : {"bash_20250124", "text_editor_20250728", "computer_20250124"}) {
    const auto r = over_messages(fmt::format(R"([{{"type":"{}","name":"t"}}])", type));
    REQUIRE(!r);
    CHECK_THAT(r.error().message, Catch::Contains(fmt::format("tools of type '{}' are not", type)));
  }
}

}  // namespace weir::tests::tools_test
