#include "core/text/chat/message_forms.h"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

namespace weir::tests::message_forms_test {

using namespace weir::core;
namespace js = boost::json;
using content = message_forms::content;

namespace {

message_forms learnt(std::string_view source) {
  const auto p = jinja::program::compile(source);
  REQUIRE(p.has_value());
  return forms_of(**p, {});
}

std::string fitted(const message_forms& forms, std::string_view messages) {
  js::array all = js::parse(js::string_view(messages.data(), messages.size())).as_array();
  fit(all, forms);
  return js::serialize(all);
}

// A call with these arguments, as JSON of an assistant's message.
std::string calling(std::string_view arguments, std::string_view head = R"("content":"")") {
  return fmt::format(
      R"([{{"role":"assistant",{},"tool_calls":[{{"function":{{"name":"f","arguments":{}}}}}]}}])", head,
      arguments);
}

constexpr const char* plain = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";
constexpr const char* with_parts =
    "{% for m in messages %}{{ m.role }}: {% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}\n{% endfor %}";
constexpr const char* parts_alone =
    "{% for m in messages %}{{ m.role }}: {% for p in m.content %}{{ p['text'] }}{% endfor %}\n{% endfor %}";

}  // namespace

TEST_CASE("message forms: a template that prints a list of parts gets them joined by line feeds") {
  const auto forms = learnt(plain);
  for (const auto role : message_forms::roles) CHECK(forms.of(role) == content::text);
  CHECK(fitted(forms, R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
                          {"role":"user","content":[]}])") ==
        R"([{"role":"user","content":"a\nb"},{"role":"user","content":""}])");
}

TEST_CASE("message forms: a template that reads parts gets what was sent") {
  const auto forms = learnt(with_parts);
  for (const auto role : message_forms::roles) CHECK(forms.of(role) == content::either);
  CHECK(forms.of("ipython") == content::text);
  const std::string sent =
      R"([{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"tool","content":"b"}])";
  CHECK(fitted(forms, sent) == sent);
}

TEST_CASE("message forms: a template that reads parts alone gets a text as one part") {
  const auto forms = learnt(parts_alone);
  CHECK(forms.of("user") == content::parts);
  CHECK(fitted(forms, R"([{"role":"user","content":"a"}])") ==
        R"([{"role":"user","content":[{"type":"text","text":"a"}]}])");
}

TEST_CASE("message forms: each role has its own") {
  const auto forms = learnt(
      "{% for m in messages %}{% if m.role == 'user' and m.content is not string %}"
      "{% for p in m.content %}{{ p.text }}{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}");
  CHECK(forms.of("user") == content::either);
  CHECK(forms.of("system") == content::text);
  CHECK(forms.of("tool") == content::text);
}

TEST_CASE("message forms: a template that reads the first part alone gets all of them joined") {
  const auto forms = learnt(
      "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{{ m.content[0].text }}"
      "{% endif %}{% endfor %}");
  CHECK(forms.of("user") == content::text);
}

TEST_CASE("message forms: parts that are read in one place alone are joined") {
  const auto forms = learnt(
      "{% for m in messages %}{% if loop.last and m.content is not string %}{{ m.content[0].text }}"
      "{% else %}{{ m.content }}{% endif %}{% endfor %}");
  CHECK(forms.of("user") == content::text);
}

TEST_CASE("message forms: a template that writes a call as JSON gets the object, whatever was sent") {
  const auto forms = learnt(
      "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}{{ c.function | tojson }}"
      "{% endfor %}{% endfor %}");
  CHECK_FALSE(forms.arguments_as_text);
  CHECK(fitted(forms, calling(R"("{\"a\": [1, \"x\"]}")")) == calling(R"({"a":[1,"x"]})"));
  CHECK(fitted(forms, calling(R"({"a":1})")) == calling(R"({"a":1})"));
  CHECK(fitted(forms, calling(R"(" ")")) == calling("{}"));
  CHECK(fitted(forms, R"([{"content":"","tool_calls":[{"name":"f","arguments":"{\"a\":1}"}]}])") ==
        R"([{"content":"","tool_calls":[{"name":"f","arguments":{"a":1}}]}])");
}

TEST_CASE("message forms: a template that wants the text of the arguments gets text") {
  const auto forms = learnt(
      "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}"
      "{{ '<call>' + c.function.arguments }}{% endfor %}{% endfor %}");
  CHECK(forms.arguments_as_text);
  CHECK(fitted(forms, calling(R"({"a":[1,18.5,"ö"]})")) == calling(R"("{\"a\": [1, 18.5, \"ö\"]}")"));
  CHECK(fitted(forms, calling(R"("{\"a\":1}")")) == calling(R"("{\"a\":1}")"));
}

TEST_CASE("message forms: text that is no object stays text") {
  const message_forms forms;
  std::string deep, wide = "[0";
  for (std::size_t i = 0; i <= deepest_arguments; ++i) deep += R"({\"a\":)";
  for (std::size_t i = 0; i < most_argument_values; ++i) wide += ",0";
  for (const std::string& text :
       {std::string("hello"), std::string("[1]"), std::string("5"), std::string("{"),
        std::string(R"({\"a\":1,\"a\":2})"), deep + "1" + std::string(deepest_arguments + 1, '}'),
        R"({\"a\":)" + wide + "]}"}) {
    const std::string sent = calling('"' + text + '"');
    CHECK(fitted(forms, sent) == sent);
  }
}

TEST_CASE("message forms: the values of all arguments of a conversation are bounded together") {
  std::string list = "0";
  for (std::size_t i = 0; i < most_argument_values / 3; ++i) list += ",0";
  const std::string call = fmt::format(R"({{"function":{{"arguments":"{{\"a\":[{}]}}"}}}})", list);
  js::array all =
      js::parse(fmt::format(R"([{{"tool_calls":[{},{}]}},{{"tool_calls":[{},{}]}}])", call, call, call, call))
          .as_array();
  fit(all, {});
  const auto arguments = [&](int message, int i) {
    return all[message].at("tool_calls").at(i).at("function").at("arguments");
  };
  CHECK(arguments(0, 0).is_object());
  CHECK(arguments(0, 1).is_object());
  CHECK(arguments(1, 0).is_string());
  CHECK(arguments(1, 1).is_string());
}

TEST_CASE("message forms: a content that is null or missing is empty") {
  CHECK(fitted({}, calling("{}", R"("content":null)")) == calling("{}"));
  CHECK(fitted({}, R"([{"role":"assistant"},5])") == R"([{"role":"assistant","content":""},5])");
}

TEST_CASE("message forms: a template that refuses every probe has texts and objects") {
  for (const char* source :
       {"{{ raise_exception('no') }}", "{{ x.y }}", "hello",
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}"}) {
    const auto forms = learnt(source);
    CHECK_FALSE(forms.arguments_as_text);
    CHECK(forms.contents == message_forms().contents);
  }
}

}  // namespace weir::tests::message_forms_test
