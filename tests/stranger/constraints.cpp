#include "tests/stranger/constraints.h"

#include <iterator>

#include "tests/stranger/bytes.h"

namespace weir::stranger {
namespace {

std::string number(std::size_t n) { return std::to_string(n); }

// A count at a limit, or beyond it.
std::size_t large(random_source& draw) {
  static constexpr std::size_t some[] = {16, 64, 65, 1000, 10'000, 100'000, 1'000'000, 4'294'967'296};
  return draw.pick(some);
}

std::string wrapped(std::string inner, std::string_view before, std::string_view after, std::size_t n) {
  return repeated(before, n) + inner + repeated(after, n);
}

// An enum, properties or branches: `n` parts, each with its number in the place of `#`.
std::string listed(std::string_view before, std::string_view part, std::string_view after, std::size_t n) {
  std::string all(before);
  const auto at = part.find('#');
  for (std::size_t i = 0; i < n; ++i) {
    if (i > 0) all += ',';
    all.append(part.substr(0, at)).append(number(i)).append(part.substr(at + 1));
  }
  return all.append(after);
}

std::string nested_one_of(std::size_t depth) {
  std::string s = R"({"type":"object","properties":{"a":{"const":1}}})";
  for (std::size_t d = 0; d < depth; ++d)
    s = R"({"oneOf":[)" + s + R"(,{"type":"object","properties":{"k)" + number(d) + R"(":)" + s + "}}]}";
  return s;
}

std::string chain_of_refs(std::size_t n, std::string_view last) {
  return R"({"$ref":"#/$defs/d0","$defs":{)" +
         listed("", R"("d#":{"anyOf":[{"$ref":"#/$defs/next"}]})", "", n) + R"(,"next":)" +
         std::string(last) + "}}";
}

std::string doubling_refs(std::size_t n) {
  std::string s = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (std::size_t i = 0; i < n; ++i) {
    const std::string next = R"({"$ref":"#/$defs/d)" + number(i + 1) + "\"}";
    s += "\"d" + number(i) + R"(":{"allOf":[)" + next + "," + next + "]},";
  }
  return s + "\"d" + number(n) + R"(":{"type":"string"}}})";
}

std::string counted_schema(random_source& draw) {
  const std::string n = number(large(draw));
  const std::string some[] = {
      R"({"type":"string","minLength":)" + n + "}",
      R"({"type":"string","maxLength":)" + n + R"(,"pattern":"(x+x+)+y"})",
      R"({"type":"array","items":{"type":"integer"},"minItems":)" + n + "}",
      R"({"type":"array","contains":{"type":"null"},"minContains":)" + n + R"(,"maxItems":)" + n + "}",
      R"({"type":"object","minProperties":)" + n + R"(,"additionalProperties":{"type":"null"}})",
      R"({"type":"number","multipleOf":)" + n + R"(,"minimum":-)" + n + R"(,"maximum":)" + n + "}",
      R"({"type":"integer","minimum":1)" + std::string(draw.below(100), '0') + "}"};
  return draw.pick(some);
}

}  // namespace

std::string hostile_schema(random_source& draw) {
  static constexpr std::size_t depths[] = {8, 31, 63, 64, 65, 5000};
  static constexpr std::size_t lengths[] = {100, 1000, 20'000};
  const std::size_t depth = draw.pick(depths), length = draw.pick(lengths);
  switch (draw.below(14)) {
    case 0:
      return wrapped(R"({"type":"integer"})", R"({"type":"array","items":)", "}", depth);
    case 1:
      return wrapped("{}", R"({"not":)", "}", depth);
    case 2:
      return listed(R"({"enum":[)", "\"v#\"", "]}", length);
    case 3:
      return listed(R"({"properties":{)", R"("p#":{"type":"string"})", "}}", length);
    case 4:
      return nested_one_of(draw.between(2, 12));
    case 5:
      return chain_of_refs(length, R"({"$ref":"#/$defs/d0"})");
    case 6:
      return doubling_refs(draw.between(2, 60));
    case 7:
      return R"({"$ref":"#"})";
    case 8:
      return R"({"allOf":[{"$ref":"#"},{"not":{"$ref":"#"}}]})";
    case 9:
      return listed(R"({"patternProperties":{)", R"("a.*#":{"type":"null"})", "}}", draw.between(2, 40));
    case 10:
      return listed(R"({"oneOf":[)", R"({"type":"object","required":["r#"]})", "]}", draw.between(2, 40));
    case 11:
      return R"({"type":"string","pattern":)" + quoted(repeated("(a|b?)*", draw.between(1, 2000))) + "}";
    case 12:
      return odd_value(draw);
    default:
      return counted_schema(draw);
  }
}

namespace {

std::string hostile_expression(random_source& draw) {
  const std::string n = number(large(draw));
  const std::string some[] = {"([a-z]{1," + n + "}){1," + n + "}",
                              repeated("(a|a)*", draw.between(1, 200)) + "b",
                              repeated("((((a*)*b*)*c*)*d*)*", draw.between(1, 20)),
                              "(.*a.{12}|.*b.{11}|.*c.{13})+",
                              "(.*a.{" + n + "})*",
                              wrapped("a", "(", ")*", draw.between(1, 8000)),
                              "[" + repeated("\\p{L}a-z\\u{1F600}", draw.between(1, 2000)) + "]+",
                              "(a)\\1",
                              "(?=.*a)(?!.*b).*",
                              "(",
                              "",
                              odd_text(draw),
                              std::string(draw.between(60'000, 70'000), 'a')};
  return draw.pick(some);
}

std::string hostile_grammar(random_source& draw) {
  const std::string n = number(large(draw));
  const std::string some[] = {"root ::= root root | \"a\" | \"aa\" | [a-z]",
                              "root ::= root? root? root? \"a\"? [a-z]*",
                              "root ::= a{0," + n + "}\na ::= [a-z]{0," + n + "} | \"b\" a",
                              "root ::= x\nx ::= x",
                              "root ::= " + wrapped("\"a\"", "(", ")*", draw.between(1, 20'000)),
                              listed("root ::= \"end\" ", "| \"w# \" root ", "", draw.between(1, 4000)),
                              "root ::= <[" + n + "]> !<[0]>",
                              "start: (a | b)* \na: \"x\" start? \nb: \"x\" a? start?",
                              "start: X~1.." + n + "\nX: /.*/ & ~/.*foo.*/ & /(.*a.{9})*/",
                              "start: %json " + hostile_schema(draw),
                              "start: A\nA: \"a\" A",
                              "%import common (WS, NUMBER)\n%ignore WS\nstart: NUMBER+",
                              damaged(draw, "root ::= [a-z]+ (\",\" root)*"),
                              "root ::= \"" + std::string(draw.between(200'000, 300'000), 'a') + "\""};
  return draw.pick(some);
}

std::string hostile_choice(random_source& draw) {
  static constexpr std::size_t sizes[] = {0, 1, 9'999, 10'000, 10'001, 50'000};
  if (draw.chance(20)) return "[" + quoted(std::string(draw.between(1'000'000, 1'100'000), 'c')) + "]";
  return listed("[", "\"c#\"", "]", draw.pick(sizes));
}

std::string format_of_schema(std::string schema, bool strict) {
  return R"({"type":"json_schema","json_schema":{"name":"it","strict":)" +
         std::string(strict ? "true" : "false") + R"(,"schema":)" + std::move(schema) + "}}";
}

field schema_field(random_source& draw, std::string schema) {
  static const std::string names[] = {"json_schema", "guided_json"};
  if (draw.chance(40)) return {"response_format", format_of_schema(std::move(schema), draw.chance(50))};
  if (draw.chance(30)) return {"structured_outputs", R"({"json":)" + std::move(schema) + "}"};
  if (draw.chance(20))
    return {"response_format", R"({"type":"json_object","schema":)" + std::move(schema) + "}"};
  return {draw.pick(names), std::move(schema)};
}

// A regex, a choice or a grammar: each has three names, of which one is drawn.
field named(random_source& draw, const std::string& name, std::string value) {
  if (draw.chance(30)) return {"guided_" + name, std::move(value)};
  if (draw.chance(30)) return {"structured_outputs", object({{name, std::move(value)}})};
  return {name, std::move(value)};
}

field anthropic_format(random_source& draw, const std::string& schema) {
  const std::string format = R"({"type":"json_schema","schema":)" + schema + "}";
  if (draw.chance(30)) return {"output_format", format};
  return {"output_config", R"({"format":)" + format + "}"};
}

field hostile_field(random_source& draw) {
  switch (draw.below(5)) {
    case 0:
      return named(draw, "regex", quoted(hostile_expression(draw)));
    case 1:
      return named(draw, "grammar", quoted(hostile_grammar(draw)));
    case 2:
      return named(draw, "choice", hostile_choice(draw));
    default:
      return schema_field(draw, hostile_schema(draw));
  }
}

}  // namespace

std::vector<field> easy_constraint(random_source& draw, constraint_names names) {
  static const std::string schemas[] = {
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x","y"]}},"required":["a"]})",
      R"({"type":"array","items":{"type":"string","maxLength":5},"maxItems":3})",
      R"({"format":"unheard-of"})", "true"};
  if (names == constraint_names::anthropic) return {anthropic_format(draw, schemas[draw.below(2)])};
  static const field others[] = {{"regex", R"("[0-9]{4}-[0-9]{2}")"},
                                 {"choice", R"(["yes","no"])"},
                                 {"grammar", R"("root ::= [a-z]+ (\",\" root)?")"},
                                 {"grammar", R"("start: /[a-z]+/ (\",\" start)?")"},
                                 {"response_format", R"({"type":"json_object"})"},
                                 {"response_format", R"({"type":"text"})"},
                                 {"structured_outputs", R"({"json_object":true})"}};
  if (draw.chance(50)) return {draw.pick(others)};
  static const std::string spaces[] = {R"("bounded")", R"("compact")", R"("any")"};
  return {schema_field(draw, draw.pick(schemas)), {"whitespace", draw.pick(spaces)}};
}

std::vector<field> fresh_constraint(random_source& draw, bool slow) {
  const std::string mark = number(draw.below(1'000'000'000));
  if (!slow) return {{"regex", quoted("[a-z]{1,9}" + mark)}};
  const std::string part = R"("m#":{"type":["integer","null"],"maximum":)" + mark + "}";
  return {{"json_schema", listed(R"({"type":"object","required":["m1"],"properties":{)", part, "}}",
                                 draw.between(1'000, 6'000))}};
}

std::vector<field> hostile_constraint(random_source& draw, constraint_names names) {
  if (names == constraint_names::anthropic) return {anthropic_format(draw, hostile_schema(draw))};
  static const field manners[] = {{"whitespace", R"("wide")"},
                                  {"whitespace", R"("any")"},
                                  {"grammar_syntax", R"("gbnf")"},
                                  {"grammar_syntax", R"("lark")"},
                                  {"grammar_syntax", R"("ebnf")"}};
  std::vector<field> all = {hostile_field(draw)};
  if (draw.chance(5)) all.push_back(hostile_field(draw));
  if (draw.chance(15)) all.push_back(draw.pick(manners));
  if (draw.chance(5)) all[0].value = odd_value(draw);
  return all;
}

}  // namespace weir::stranger
