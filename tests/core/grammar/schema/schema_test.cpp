#include "core/grammar/schema.h"

#include "tests/core/grammar/schema/schema_kit.h"

namespace weir::tests::schema_test {

using namespace weir::core::grammar;

TEST_CASE("schema: types, and white space between the parts of a text") {
  check_schemas({
      {R"({"type":"integer"})", {"0", "-1", "12"}, {"1.0", "1e2", "-0", "01", " 1", "1 ", "\"1\""}},
      {R"({"type":"number"})", {"0", "-0", "1.50", "-2e-3", "1E+5"}, {"1.", ".5", "1e", "+1"}},
      {R"({"type":["null","boolean"]})", {"null", "true", "false"}, {"nul", "True", "0"}},
      {R"({"type":"string"})", {R"("")", R"("é\n\u00e9\ud83d\ude00")"}, {R"("\x")", R"("\ud83d")", "\"\n\""}},
      {R"({"type":"array"})", {"[]", "[1, [\"x\"], {}]", "[\n  1,\n  2\n]"}, {"[1,]", "[,1]", "[1,  2]"}},
      {R"({"type":"object"})", {"{}", R"({"a": 1})", R"({ "a":{"b":[]} })"}, {R"({a:1})", R"({"a":1,})"}},
      {"true", {"1", "[]", "null"}, {""}},
      {R"({"type":"array","items":{"type":"integer"}})", {"[]", "[1,2]"}, {"[1,\"a\"]"}},
  });
}

TEST_CASE("schema: members come in the order in which they are declared") {
  check_schemas({
      {R"({"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"boolean"}},
           "additionalProperties":false})",
       {"{}", R"({"b":1})", R"({"a":true})", R"({"b":1,"a":true})"},
       {R"({"a":true,"b":1})", R"({"b":true})", R"({"c":1})", R"({"b":1,"b":1})"}},
      {R"({"type":"object","properties":{"a":{}},"required":["a","z"],"additionalProperties":{"type":"null"}})",
       {R"({"a":1,"z":null})", R"({"a":1,"z":null,"q":null})"},
       {R"({"a":1})", R"({"a":1,"q":null})", R"({"a":1,"z":1})", R"({"z":null,"a":1})"}},
      {R"({"type":"object","patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false})",
       {"{}", R"({"x":1,"xy":2})"},
       {R"({"y":1})", R"({"x":"a"})"}},
      {R"({"type":"object","properties":{"xa":{"minimum":3}},"patternProperties":{"^x":{"type":"integer"}}})",
       {R"({"xa":3})", R"({"xb":1,"y":"s"})"},
       {R"({"xa":2})", R"({"xa":3.5})", R"({"xb":"s"})"}},
      {R"({"type":"object","minProperties":1,"maxProperties":2,"properties":{"a":{}}})",
       {R"({"a":1})", R"({"z":1,"y":2})", R"({"a":1,"z":2})"},
       {"{}", R"({"a":1,"z":2,"y":3})"}},
      {R"({"type":"object","propertyNames":{"maxLength":2},"properties":{"abc":{},"ab":{}}})",
       {R"({"ab":1,"z":2})"},
       {R"({"abc":1})", R"({"zzz":1})"}},
      {R"({"type":"object","properties":{"a":false},"required":["b"]})",
       {R"({"b":1})"},
       {R"({"a":1,"b":1})"}},
  });
}

TEST_CASE("schema: numbers are compared digit by digit") {
  check_schemas({
      {R"({"type":"integer","minimum":3,"maximum":12})", {"3", "9", "10", "12"}, {"2", "13", "-3", "100"}},
      {R"({"type":"integer","minimum":-12,"maximum":3})", {"-12", "-9", "-1", "0", "3"}, {"-13", "4", "-0"}},
      {R"({"type":"number","minimum":0.1,"exclusiveMaximum":0.3})",
       {"0.1", "0.10", "0.2", "0.29999999999999999999"},
       {"0", "0.0999999999999999999999", "0.3", "0.30", "1", "-0.2"}},
      {R"({"type":"number","exclusiveMinimum":-1.5,"maximum":-0.25})",
       {"-1.4", "-1", "-0.25"},
       {"-1.5", "-0.2", "0"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"integer","minimum":3,
           "exclusiveMinimum":true})",
       {"4"},
       {"3"}},
      {R"({"type":"integer","multipleOf":5})", {"0", "5", "-10", "125"}, {"1", "-3", "52"}},
      {R"({"type":"number","multipleOf":0.01})", {"0.01", "3", "2.5", "2.500"}, {"0.001", "1.234"}},
      {R"({"type":"number","multipleOf":0.25,"maximum":1})",
       {"0.25", "0.5", "0.50", "1", "-7.75"},
       {"0.3", "1.25"}},
      {R"({"type":"integer","multipleOf":20})", {"0", "20", "100", "-60"}, {"10", "30", "2"}},
      {R"({"type":"integer","multipleOf":7,"minimum":0,"maximum":100})",
       {"0", "7", "98"},
       {"8", "105", "-7"}},
      {R"({"type":"number","not":{"type":"integer"}})", {"1.5", "-0.25"}, {"1", "2.0"}},
  });
}

TEST_CASE("schema: lengths, patterns and formats of strings hold together") {
  check_schemas({
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {R"("ab")", R"("äöü")", R"("\n\u00e4")"},
       {R"("a")", R"("abcd")"}},
      {R"({"type":"string","maxLength":1000000})", {R"("")", R"("abc")"}, {"1"}},
      {R"({"type":"string","pattern":"b"})", {R"("abc")", R"("b")"}, {R"("ac")", R"("")"}},
      {R"({"type":"string","pattern":"^[0-9]+$","maxLength":3})", {R"("123")"}, {R"("1234")", R"("12a")"}},
      {R"({"type":"string","pattern":"^(?!x).*z$"})", {R"("abz")"}, {R"("xbz")", R"("ab")"}},
      {R"({"type":"string","pattern":"\"$"})", {R"("a\"")"}, {R"("a")"}},
      {R"({"type":"string","format":"date"})",
       {R"("2024-02-29")", R"("2023-12-31")"},
       {R"("2023-02-29")", R"("1900-02-29")", R"("2023-13-01")"}},
      {R"({"type":"string","format":"ipv4"})", {R"("127.0.0.1")"}, {R"("127.0.0.256")", R"("1.2.3")"}},
      {R"({"type":"string","format":"uuid"})",
       {R"("2eb8aa08-aa98-11ea-b4aa-73b441d16380")"},
       {R"("2eb8aa08")"}},
      {R"({"type":"string","not":{"pattern":"a"}})", {R"("bc")", R"("")"}, {R"("abc")"}},
  });
}

TEST_CASE("schema: constants are filtered by what else is asked") {
  check_schemas({
      {R"({"enum":["a",1,null,[1,2],{"k":"v"}]})",
       {R"("a")", "1", "null", "[1, 2]", R"({"k":"v"})"},
       {R"("b")", "2", "[2,1]"}},
      {R"({"enum":["abc","b",3],"type":"string","maxLength":1})", {R"("b")"}, {R"("abc")", "3"}},
      {R"({"const":"x\"y"})", {R"("x\"y")"}, {R"("xy")"}},
      {R"({"type":"string","not":{"enum":["a","b"]}})", {R"("c")", R"("ab")", R"("")"}, {R"("a")", R"("b")"}},
      {R"({"type":"integer","not":{"const":5}})", {"4", "55", "-5"}, {"5"}},
  });
}

TEST_CASE("schema: and, or, not, if, exactly one") {
  check_schemas({
      {R"({"allOf":[{"type":"integer"},{"minimum":2}],"maximum":4})", {"2", "4"}, {"1", "5", "2.5"}},
      {R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})",
       {"7", R"("a")"},
       {R"("ab")", "1.5"}},
      {R"({"oneOf":[{"type":"integer","minimum":2},{"type":"integer","maximum":4}]})",
       {"1", "5"},
       {"2", "4"}},
      {R"({"not":{"type":["integer","string"]}})", {"null", "[]", "1.5"}, {"1", R"("a")"}},
      {R"({"type":"integer","if":{"minimum":10},"then":{"multipleOf":10},"else":{"maximum":5}})",
       {"10", "20", "5", "-7"},
       {"11", "6"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{}},"dependentRequired":{"a":["b"]}})",
       {"{}", R"({"b":1})", R"({"a":1,"b":2})"},
       {R"({"a":1})"}},
      {R"({"type":"object","not":{"required":["a"]}})",
       {"{}", R"({"b":1})"},
       {R"({"a":1})", R"({"b":1,"a":2})"}},
      {R"({"oneOf":[{"type":"object","properties":{"t":{"const":"x"},"v":{"type":"integer"}},"required":["t","v"],
            "additionalProperties":false},
           {"type":"object","properties":{"t":{"const":"y"},"v":{"type":"string"}},"required":["t","v"],
            "additionalProperties":false}]})",
       {R"({"t":"x","v":1})", R"({"t":"y","v":"s"})"},
       {R"({"t":"x","v":"s"})", R"({"t":"z","v":1})"}},
  });
}

TEST_CASE("schema: items, their counts, and what an array contains") {
  check_schemas({
      {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"}})",
       {"[]", "[1]", R"([1,"a"])", R"([1,"a",null,null])"},
       {R"(["a"])", R"([1,"a",1])"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","type":"array","items":[{"type":"integer"}],
           "additionalItems":false})",
       {"[]", "[1]"},
       {"[1,2]", "[null]"}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})",
       {"[1,2]", "[1,2,3]"},
       {"[1]", "[1,2,3,4]", "[]"}},
      {R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"}},
      {R"({"type":"array","items":{"type":"integer"},"contains":{"minimum":5}})",
       {"[5]", "[1,7]", "[7,1]"},
       {"[]", "[1,2]"}},
      {R"({"type":"array","items":{"type":"integer"},"contains":{"minimum":5},"minContains":1,"maxContains":2})",
       {"[5]", "[1,7,8]"},
       {"[1]", "[5,6,7]"}},
  });
}

TEST_CASE("schema: references, recursion and parts with names") {
  check_schemas({
      {R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}},
           "additionalProperties":false}}})",
       {"{}", R"({"next":{"next":{}}})"},
       {R"({"next":1})", R"({"next":{)"}},
      {R"({"definitions":{"a b/c%":{"type":"null"}},"$ref":"#/definitions/a%20b~1c%25"})", {"null"}, {"1"}},
      {R"({"$id":"http://x/y","items":{"$ref":"z"},"type":"array","$defs":{"q":{"$id":"z","type":"boolean"}}})",
       {"[true]"},
       {"[1]"}},
      {R"({"$ref":"#here","$defs":{"q":{"$anchor":"here","type":"boolean"}}})", {"true"}, {"1"}},
  });
}

TEST_CASE("schema: an $id below an unknown keyword takes no name from a schema") {
  const schema_under_test s(R"({"x-old":[{"$id":"http://a/s","type":"null"}],
      "$defs":{"new":{"$id":"http://a/s","type":"string"},"enum":{"$id":"http://a/t","type":"boolean"}},
      "components":{"c":{"$id":"http://a/c","type":"integer"}},
      "anyOf":[{"$ref":"http://a/s"},{"$ref":"http://a/t"},{"$ref":"http://a/c"}]})");
  CHECK(s.accepts(R"("x")"));
  CHECK(s.accepts("true"));
  CHECK(s.accepts("7"));
  CHECK_FALSE(s.accepts("null"));
}

TEST_CASE("schema: what cannot be enforced is refused by name where strict is asked, and else warned of") {
  const struct {
    const char *schema, *pointer, *message;
  } cases[] = {
      {R"({"type":"array","uniqueItems":true})", "/uniqueItems", "uniqueItems is not supported"},
      {R"({"properties":{"a":{"contains":{},"unevaluatedItems":false}}})", "/properties/a/unevaluatedItems",
       "unevaluatedItems is not supported"},
      {R"({"type":"string","pattern":"(a)\\1"})", "/pattern", "pattern"},
      {R"({"type":"integer","multipleOf":10007})", "/multipleOf", "multipleOf"},
  };
  for (const auto& c : cases) check_not_enforced(c.schema, c.pointer, c.message);
}

TEST_CASE("schema: what no schema can say is refused, strict or not") {
  const struct {
    const char *schema, *pointer, *message;
  } cases[] = {
      {R"({"$ref":"http://elsewhere/x"})", "", "another document"},
      {R"({"$ref":"#/nowhere"})", "", "refers to nothing"},
      {R"({"$ref":"#"})", "", "leads only to itself"},
      {R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"items":{"$ref":"#/$defs/a"}})",
       "/items", "leads only to itself"},
      {R"({"$schema":"http://example.com/mine"})", "/$schema", "$schema"},
      {R"({"type":"text"})", "/type", "type \"text\""},
      {R"({"type":12})", "/type", "type a number is not one of"},
      {R"({"type":["string","strin"]})", "/type/1", "type \"strin\""},
      {R"({"properties":5})", "/properties", "properties must be an object, not a number"},
      {R"({"type":"object","properties":{"a":{"items":"b"}}})", "/properties/a/items", "must be a schema"},
      {R"({"required":["a",5]})", "/required/1", "a list of names holds a number"},
      {R"({"anyOf":{}})", "/anyOf", "anyOf must be an array"},
      {R"({"minimum":"1"})", "/minimum", "minimum must be a number"},
      {R"({"multipleOf":0})", "/multipleOf", "multipleOf must be above 0"},
      {R"({"not":{"enum":1}})", "/not/enum", "enum must be an array"},
      {R"({"minLength":-1})", "/minLength", "minLength must be a whole number"},
      {R"([1])", "", "a schema must be an object or a boolean, not an array"},
      {R"({"a":1,"a":2})", "", "occurs twice"},
      {R"({"a":)", "", "no valid JSON"},
      {"false", "", ""},
      {R"({"type":"integer","minimum":3,"maximum":2})", "", ""},
  };
  for (const auto& c : cases) {
    INFO(c.schema);
    const schema_under_test s(c.schema);
    REQUIRE(s.refusal);
    CHECK(s.refusal->param == c.pointer);
    CHECK(s.refusal->message.find(c.message) != std::string::npos);
  }
}

TEST_CASE("an object may have more than a thousand members that can be left out", "[grammar]") {
  std::string schema = R"({"type":"object","additionalProperties":false,"properties":{)";
  for (int i = 0; i < 1'200; ++i) {
    if (i > 0) schema += ',';
    schema.append("\"m").append(std::to_string(i)).append("\":{\"type\":\"null\"}");
  }
  const weir::tests::schema_under_test s(schema + "}}");
  CHECK_FALSE(s.refused_at(R"({"m7":null,"m450":null,"m1199":null})"));
  CHECK(s.refused_at(R"({"m450":null,"m7":null})") == 16u);
}

TEST_CASE("a schema that takes too much to search is never called one that nothing satisfies", "[grammar]") {
  const schema_under_test far(R"({"type":"string","minLength":1000,"pattern":"(ab|a.{5})*"})");
  REQUIRE(far.constraint);
  const schema_under_test whole(R"re({"type":"string","minLength":1000,"pattern":"^(ab|a.{5})*$"})re");
  REQUIRE(whole.constraint);
  CHECK(whole.accepts('"' + std::string(1'002, 'a') + '"'));
  CHECK_FALSE(whole.accepts('"' + std::string(996, 'a') + '"'));
  const schema_under_test late(R"re({"type":"string","minLength":1,"pattern":"^(a|b)*a(a|b){18}$"})re");
  REQUIRE(late.constraint);
  CHECK(late.accepts("\"ba" + std::string(18, 'b') + '"'));
  CHECK_FALSE(late.accepts("\"ab" + std::string(18, 'b') + '"'));
  for (
      const char* hard :
      {R"re({"type":"string","allOf":[{"pattern":"^(a|b)*a(a|b){24}$"},{"pattern":"^(a|b)*b(a|b){24}$"}]})re",
       R"re({"type":"object","minProperties":1,"additionalProperties":false,"patternProperties":
                {"^(a|b)*a(a|b){24}$":{}},"propertyNames":{"pattern":"^(a|b)*b(a|b){24}$"}})re"}) {
    const schema_under_test unknown(hard);
    REQUIRE(unknown.refusal);
    CHECK(unknown.refusal->message.find("too large") != std::string::npos);
    CHECK(unknown.refusal->message.find("no text") == std::string::npos);
  }
}

}  // namespace weir::tests::schema_test
