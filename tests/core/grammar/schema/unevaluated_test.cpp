// unevaluatedProperties and unevaluatedItems: which members and items a schema speaks of.
#include "tests/core/grammar/schema/schema_kit.h"

namespace weir::tests::unevaluated_test {

TEST_CASE("schema: members that no schema speaks of", "[grammar]") {
  check_schemas({
      {R"({"type":"object","properties":{"a":{}},"patternProperties":{"^x":{}},"unevaluatedProperties":false})",
       {"{}", R"({"a":1})", R"({"a":1,"xy":2})"},
       {R"({"b":1})"}},
      {R"({"type":"object","unevaluatedProperties":{"type":"integer"},"allOf":[{"properties":{"a":{}}}]})",
       {R"({"a":"s","b":1})"},
       {R"({"b":"s"})"}},
      {R"({"type":"object","allOf":[{"properties":{"a":{}}},{"additionalProperties":{"type":"null"}}],
           "unevaluatedProperties":false})",
       {R"({"a":null,"b":null})"},
       {R"({"b":1})"}},
      {R"({"type":"object","$ref":"#/$defs/r","properties":{"b":{}},"unevaluatedProperties":false,
           "$defs":{"r":{"properties":{"a":{}}}}})",
       {R"({"b":1,"a":1})"},
       {R"({"c":1})"}},
      {R"({"type":"object","allOf":[{"properties":{"a":{}}},{"unevaluatedProperties":false}]})",
       {"{}"},
       {R"({"a":1})"}},
      {R"({"type":"object","allOf":[{"properties":{"a":{}},"unevaluatedProperties":true}],
           "unevaluatedProperties":false})",
       {R"({"a":1,"b":1})"},
       {}},
      {R"({"type":"object","not":{"not":{"properties":{"a":{}}}},"unevaluatedProperties":false})",
       {"{}"},
       {R"({"a":1})"}},
  });
}

TEST_CASE("schema: members of which the schemas speak that hold", "[grammar]") {
  check_schemas({
      {R"({"type":"object","anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},
             {"properties":{"b":{"const":1}},"required":["b"]},{"properties":{"c":{}},"required":["c"]}],
           "unevaluatedProperties":false})",
       {R"({"a":1})", R"({"b":1})", R"({"a":1,"b":1})", R"({"a":1,"b":1,"c":0})", R"({"c":0})"},
       {R"({"a":2})", R"({"a":1,"b":2})", R"({"a":1,"d":1})", "{}"}},
      {R"({"type":"object","oneOf":[{"properties":{"a":{}},"required":["a"]},
             {"properties":{"b":{}},"required":["b"]}],"unevaluatedProperties":false})",
       {R"({"a":1})", R"({"b":1})"},
       {R"({"a":1,"b":1})", "{}"}},
      {R"({"type":"object","if":{"properties":{"k":{"const":1}},"required":["k"]},
           "then":{"properties":{"a":{}}},"else":{"properties":{"b":{}}},"unevaluatedProperties":false})",
       {R"({"k":1,"a":1})", R"({"b":1})"},
       {R"({"k":1,"b":1})", R"({"k":2})", R"({"a":1})"}},
      {R"({"type":"object","if":{"properties":{"k":{"const":1}},"required":["k"]},"unevaluatedProperties":false})",
       {R"({"k":1})", "{}"},
       {R"({"k":2})", R"({"k":1,"a":1})"}},
      {R"({"type":"object","properties":{"a":{}},"dependentSchemas":{"a":{"properties":{"b":{}}}},
           "unevaluatedProperties":false})",
       {R"({"a":1,"b":1})", R"({"a":1})"},
       {R"({"b":1})"}},
      {R"({"type":"object","properties":{"c":{"$ref":"#"}},"unevaluatedProperties":false})",
       {R"({"c":{"c":{}}})"},
       {R"({"c":{"d":1}})"}},
  });
}

TEST_CASE("schema: items that no schema speaks of", "[grammar]") {
  check_schemas({
      {R"({"type":"array","prefixItems":[{"type":"integer"}],"unevaluatedItems":false})",
       {"[]", "[1]"},
       {"[1,2]", R"(["a"])"}},
      {R"({"type":"array","allOf":[{"prefixItems":[true,{"type":"null"}]},{"prefixItems":[{"type":"integer"}]}],
           "unevaluatedItems":{"type":"boolean"}})",
       {"[1,null,true]", "[1]"},
       {"[1,2]", "[1,null,2]"}},
      {R"({"type":"array","anyOf":[{"prefixItems":[{"const":1}]},{"prefixItems":[true,{"const":2}]}],
           "unevaluatedItems":false})",
       {"[1]", "[1,2]", "[3,2]"},
       {"[1,3]", "[1,2,3]"}},
      {R"({"type":"array","contains":{"const":1},"items":{"type":"integer"},"unevaluatedItems":false})",
       {"[1,2]"},
       {"[2]"}},
      {R"({"type":"array","allOf":[{"items":{"type":"integer"}}],"unevaluatedItems":false})",
       {"[1,2]"},
       {"[null]"}},
  });
}

TEST_CASE("schema: constants are judged by what their schema speaks of", "[grammar]") {
  check_schemas({
      {R"({"enum":[{"a":1},{"b":1},{"a":1,"b":1}],"anyOf":[{"properties":{"a":{}},"required":["a"]},true],
           "unevaluatedProperties":false})",
       {R"({"a":1})"},
       {R"({"b":1})", R"({"a":1,"b":1})"}},
      {R"({"enum":[[1],[1,2],[2,2]],"prefixItems":[{"const":1}],"unevaluatedItems":{"const":2}})",
       {"[1]", "[1,2]"},
       {"[2,2]"}},
  });
}

TEST_CASE("schema: what cannot be told of members and items is refused by name", "[grammar]") {
  const struct {
    const char *schema, *pointer, *message;
  } cases[] = {
      {R"({"type":"array","contains":{"const":1},"unevaluatedItems":false})", "/unevaluatedItems",
       "unevaluatedItems is not supported beside contains"},
      {R"({"type":"object","anyOf":[{},{},{},{},{},{}],"unevaluatedProperties":false})",
       "/unevaluatedProperties", "an anyOf of many schemas"},
      {R"({"not":{"type":"object","unevaluatedProperties":false}})", "/not/unevaluatedProperties",
       "the opposite of unevaluatedProperties"},
  };
  for (const auto& c : cases) check_not_enforced(c.schema, c.pointer, c.message);
}

}  // namespace weir::tests::unevaluated_test
