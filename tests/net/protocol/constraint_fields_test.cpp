// The fields that say what an answer may be, in each protocol; and schemas, which keep their text.
#include "net/protocol/constraint_fields.h"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>

#include "net/protocol/anthropic.h"
#include "net/protocol/openai.h"
#include "net/protocol/ws_protocol.h"

namespace weir::tests::constraint_fields_test {

using namespace weir::net;
using kind = core::grammar::constraint_text::kind;

namespace {

core::result<actors::request> read(std::string_view fields) {
  const std::string body = R"({"messages":[{"role":"user","content":"x"}],)" + std::string(fields) + "}";
  auto parsed = openai::parse(openai::dialect::chat, body);
  if (!parsed) return parsed.error();
  return std::move(parsed->request);
}

actors::request taken(std::string_view fields) {
  auto r = read(fields);
  if (!r) FAIL(r.error().message);
  return std::move(*r);
}

core::error refused(std::string_view fields) {
  const auto r = read(fields);
  REQUIRE_FALSE(r.has_value());
  CHECK(r.error().code == core::errc::invalid_param);
  return r.error();
}

}  // namespace

TEST_CASE("a schema comes through every field by the text that the client wrote") {
  const std::string schema = R"({"z":1, "a":{"const":0.10}, "b":1e400})";
  const struct {
    std::string fields, param;
    bool strict;
  } rows[] = {
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":)" + schema + "}}",
       "response_format.json_schema.schema", false},
      {R"("response_format":{"json_schema":{"strict":true,"description":"d","schema":)" + schema +
           R"(,"name":"n"},"type":"json_schema"})",
       "response_format.json_schema.schema", true},
      {R"("response_format":{"type":"json_object","schema":)" + schema + "}", "response_format.schema", false},
      {R"("structured_outputs":{"json":)" + schema + "}", "structured_outputs.json", false},
      {R"("json_schema":)" + schema, "json_schema", false},
      {R"("guided_json":)" + schema, "guided_json", false},
  };
  for (const auto& row : rows) {
    INFO(row.fields);
    const auto r = taken(row.fields);
    REQUIRE(r.constraint.has_value());
    CHECK(r.constraint->what == kind::json_schema);
    CHECK(r.constraint->text == schema);
    CHECK(r.constraint->strict == row.strict);
    CHECK(r.constraint_param == row.param);
  }
}

TEST_CASE("each kind of constraint has its fields") {
  CHECK(taken(R"("regex":"a+")").constraint->text == "a+");
  CHECK(taken(R"("guided_regex":"a+")").constraint->what == kind::regex);
  CHECK(taken(R"("structured_outputs":{"regex":"b"})").constraint_param == "structured_outputs.regex");
  CHECK(taken(R"("choice":["x","y"])").constraint->choices == std::vector<std::string>{"x", "y"});
  CHECK(taken(R"("guided_choice":["x"])").constraint->what == kind::choice);
  CHECK(taken(R"("structured_outputs":{"choice":["x"]})").constraint->what == kind::choice);
  const auto grammar = taken(R"("grammar":"root ::= \"a\"","grammar_syntax":"gbnf")");
  CHECK(grammar.constraint->what == kind::grammar);
  CHECK(grammar.constraint->syntax == "gbnf");
  CHECK(taken(R"("response_format":{"type":"json_object"},"whitespace":"compact")").constraint->space ==
        core::grammar::json_space::compact);
  CHECK(taken(R"("regex":"a")").force == core::grammar::forcing::canonical);
  CHECK(taken(R"("regex":"a","force":"single")").force == core::grammar::forcing::single);
  CHECK(taken(R"("structured_outputs":{"json_object":true})").constraint->what == kind::json_object);
  CHECK(taken(R"("response_format":{"type":"json_schema","json_schema":{"name":"n"}})").constraint->text ==
        "true");
  CHECK(taken(R"("json_schema":false)").constraint->text == "false");
}

TEST_CASE("neutral values ask for no constraint") {
  for (const char* fields :
       {R"("response_format":{"type":"text"})", R"("response_format":null)", R"("structured_outputs":{})",
        R"("grammar":"")", R"("regex":null)", R"("structured_outputs":{"json_object":false,"json":null})"}) {
    INFO(fields);
    CHECK_FALSE(taken(fields).constraint.has_value());
  }
}

TEST_CASE("what is wrong with a constraint's field is named") {
  const struct {
    const char *fields, *param, *says;
  } rows[] = {
      {R"("regex":"a","choice":["b"])", "choice", "not both regex and choice"},
      {R"("structured_outputs":{"regex":"a","json":{}})", "structured_outputs.json", "not both"},
      {R"("response_format":{"type":"xml"})", "response_format.type", "'xml'"},
      {R"("response_format":{"type":"json_schema"})", "response_format.json_schema", "missing"},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":{}}})",
       "response_format.json_schema.name", "missing"},
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"a b"}})",
       "response_format.json_schema.name", "1 to 64"},
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"a","strict":1}})",
       "response_format.json_schema.strict", "true or false"},
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"a","extra":1}})",
       "response_format.json_schema.extra", "unknown field"},
      {R"("structured_outputs":{"whitespace_pattern":"x"})", "structured_outputs.whitespace_pattern",
       "unknown field"},
      {R"("choice":["a",1])", "choice", "choice[1] must be a string"},
      {R"("regex":5)", "regex", "string"},
      {R"("grammar_syntax":"gbnf")", "grammar_syntax", "goes with a grammar"},
      {R"("grammar":"a","grammar_syntax":"ebnf")", "grammar_syntax", "gbnf or lark"},
      {R"("regex":"a","whitespace":"any")", "whitespace", "JSON"},
      {R"("json_schema":{},"whitespace":"none")", "whitespace", "bounded, compact or any"},
      {R"("force":"off")", "force", "goes with a constraint"},
      {R"("regex":"a","force":"no")", "force", "canonical, single or off"},
  };
  for (const auto& row : rows) {
    INFO(row.fields);
    const auto e = refused(row.fields);
    CHECK(e.param == row.param);
    CHECK(e.message.find(row.says) != std::string::npos);
  }
}

TEST_CASE("weir.v1 and Anthropic's messages have constraints, too") {
  const auto m = ws::parse(R"({"type":"response.create","id":"a","input":"x","json_schema":{"a":1.50}})", {});
  const auto* c = std::get_if<ws::response_create>(&m);
  REQUIRE(c);
  CHECK(c->request.constraint->text == R"({"a":1.50})");

  const auto message = [](std::string_view field) {
    return anthropic::parse(
        anthropic::route::messages,
        R"({"max_tokens":5,"messages":[{"role":"user","content":"x"}],)" + std::string(field) + "}");
  };
  for (const char* field : {R"("output_config":{"format":{"type":"json_schema","schema":{"b":2}}})",
                            R"("output_format":{"type":"json_schema","schema":{"b":2}})"}) {
    const auto a = message(field);
    REQUIRE(a.has_value());
    CHECK(a->request.constraint->text == R"({"b":2})");
    CHECK(a->request.constraint->strict);
  }
  CHECK(message(R"("output_config":{})").has_value());
  CHECK(message(R"("output_config":{"task_budget":{}})").error().param == "output_config");
  CHECK(message(R"("regex":"a")").error().param == "regex");
}

TEST_CASE("the bounds of a body do not count inside a schema") {
  std::string deep, wide = "[0";
  for (int i = 0; i < 60; ++i) deep += R"({"not":)";
  deep += "{}" + std::string(60, '}');
  for (int i = 0; i < 1000; ++i) wide += ",0";
  wide += "]";
  const std::string frame =
      R"({"type":"response.create","id":"a","input":"x","json_schema":{"enum":)" + wide + R"(,"not":)" + deep + "}}";
  const auto m = ws::parse(frame, {.depth = 4, .values = 20});
  CHECK(std::holds_alternative<ws::response_create>(m));
  const auto other = ws::parse(R"({"type":"response.create","id":"a","input":"x","metadata":)" + deep + "}",
                               {.depth = 4, .values = 20});
  CHECK(std::holds_alternative<ws::protocol_error>(other));
}

TEST_CASE("a body without a schema, and one that is no JSON, stay what they are") {
  for (const std::string text :
       {R"({"a":{"json_schema":{}}})", R"({"b":["json_schema",{}]})", "", "{", R"({"json_schema":)",
        R"({"json_schema":{"a)", R"(["json_schema"])", R"({"response_format":{"json_schema":5}})",
        R"({"response_format":"{","x":{"schema":{}}})", R"({"json_schema":"{}"})"})
    CHECK(with_schemas_as_text(text) == text);
  CHECK(with_schemas_as_text(R"( { "json_schema" : [ 1 , "]" ] , "b" : {} } )") ==
        R"( { "json_schema" : "[ 1 , \"]\" ]" , "b" : {} } )");
}

}  // namespace weir::tests::constraint_fields_test
