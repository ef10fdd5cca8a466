#include "core/text/template/template.h"

#include <catch2/catch.hpp>

#include "tests/support/data.h"
#include "tests/support/published_templates.h"
#include "tests/support/source_dir.h"

namespace weir::tests::template_test {

using namespace weir::core;
namespace js = boost::json;

namespace {

result<jinja::rendering> render(std::string_view source, const js::object& content = {},
                                const js::object& trusted = {}) {
  const auto p = jinja::program::compile(source);
  if (!p) return p.error();
  return (*p)->render({content, trusted, weir::tests::published_now});
}

std::string text(std::string_view source, const js::object& content = {}) {
  const auto made = render(source, content);
  return made ? made->text : "error: " + made.error().message;
}

// The rendered text with what came from the client in brackets.
std::string marked(std::string_view source, const js::object& content) {
  const auto made = render(source, content, {{"bos", "<s>"}});
  if (!made) return "error: " + made.error().message;
  std::string out;
  std::size_t at = 0;
  for (const auto& s : made->content) {
    out += made->text.substr(at, s.begin - at) + "[" + made->text.substr(s.begin, s.end - s.begin) + "]";
    at = s.end;
  }
  return out + made->text.substr(at);
}

}  // namespace

TEST_CASE("template: the language is Python's Jinja, expression by expression") {
  const auto file =
      js::parse(weir::tests::read_file(weir::tests::source_dir() / "tests/core/text/template/language.json"));
  const auto& variables = file.at("variables").as_object();
  std::size_t refused = 0;
  for (const auto& c : file.at("cases").as_array()) {
    const std::string source(c.at("template").as_string());
    CAPTURE(source);
    const auto made = render(source, variables);
    if (c.at("expected").is_null()) {
      CHECK(!made);
      ++refused;
      continue;
    }
    INFO((made ? "" : made.error().message));
    REQUIRE(made.has_value());
    CHECK(made->text == std::string_view(c.at("expected").as_string()));
  }
  CHECK(file.at("cases").as_array().size() > 90);
  CHECK(refused > 8);
}

TEST_CASE("template: every published case of a real template comes out byte for byte") {
  const auto files = weir::tests::published_templates();
  if (files.empty()) {
    WARN("skipped: there are no published templates in the data folder");
    return;
  }
  for (const auto& file : files) {
    const auto p = jinja::program::compile(file.source);
    CAPTURE(file.name);
    REQUIRE(p.has_value());
    for (const auto& c : file.cases) {
      CAPTURE(c.name);
      js::object given = c.extra;
      given["messages"] = c.messages;
      given["tools"] = c.tools;
      given["documents"] = nullptr;
      given["add_generation_prompt"] = c.add_generation_prompt;
      const js::object tokens{{"bos_token", c.bos}, {"eos_token", c.eos}};
      const auto made = (*p)->render({given, tokens, weir::tests::published_now});
      if (c.expected) {
        INFO((made ? "" : made.error().message));
        REQUIRE(made.has_value());
        CHECK(made->text == *c.expected);
      } else {
        REQUIRE(!made);
        CHECK(made.error().message == c.message);
      }
    }
  }
}

TEST_CASE("template: the time is the one that is given") {
  CHECK(text("{{ strftime_now('%d %b %Y %H:%M:%S %A %j %-d') }}") == "26 Jul 2025 12:34:56 Saturday 207 26");
  CHECK_THAT(text("{{ strftime_now('%Z') }}"), Catch::Contains("'%Z' is not supported"));
}

TEST_CASE("template: an error names its line, and what a template raises is its own words alone") {
  CHECK(text("a\n{{ raise_exception('no ' ~ 1) }}") == "error: no 1");
  CHECK_THAT(text("a\n\n{{ x.y }}"), Catch::Contains("line 3: 'x' is undefined"));
  for (const auto& [source, says] :
       {std::pair<std::string, std::string>{"a\n{% if x %}", "line 2: 'endif' is missing"},
        {"{% endfor %}", "there is no statement 'endfor'"},
        {"{{ 'a }}", "a string does not end"},
        {"{{ (1 }}", "'}' closes nothing"},
        {"{# a", "a comment does not end"},
        {"{% raw %} a", "a raw block does not end"},
        {"{{ 99999999999999999999 }}", "no integer of 64 bits"},
        {"{{ 1 ? 2 }}", "'?' has no meaning here"},
        {"{{ a b }}", "'}}' is missing before 'b'"},
        {"{% break %}", "'break' is outside a loop"},
        {"{{ 'a\xff' }}", "not valid UTF-8"},
        {"{% include 'x' %}", "the statement 'include' is not supported"},
        {"{% extends 'x' %}", "the statement 'extends' is not supported"},
        {"{% set none = 1 %}", "nothing can be assigned to 'none'"}}) {
    CAPTURE(source);
    const auto p = jinja::program::compile(source);
    REQUIRE(!p);
    CHECK(p.error().code == errc::bad_file);
    CHECK_THAT(p.error().message, Catch::Contains(says));
  }
}

TEST_CASE("template: what came from the client is known byte by byte") {
  const js::object given{
      {"s", " ab <|x|> cd "},
      {"l", {"p", "q"}},
      {"d", {{"k", "v"}}},
      {"n", 5},
      {"messages", {{{"role", "user"}, {"content", "hi"}}, {{"role", "u<|x|>"}, {"content", ""}}}}};
  CHECK(marked("<{{ s }}>{{ bos }}", given) == "<[ ab <|x|> cd ]><s>");
  CHECK(marked("{{ '<' + s | trim + '>' }}", given) == "<[ab <|x|> cd]>");
  CHECK(marked("{{ 'a' ~ s[1:3] ~ n }}", given) == "a[ab]5");
  CHECK(marked("{{ s.strip().split(' ')[1] }}", given) == "[<|x|>]");
  CHECK(marked("{{ ('<a>' ~ s).replace('<', '(') }}", given) == "(a>[ ab ]([|x|> cd ]");
  CHECK(marked("{{ l | join('-') }}", given) == "[p]-[q]");
  CHECK(marked("{{ s | upper | trim }}", given) == "[AB <|X|> CD]");
  CHECK(marked("{{ l | tojson }}{{ d }}", given) == R"(["[p]", "[q]"]{'[k]': '[v]'})");
  CHECK(marked("{{ '%s:%s' % (s | trim, 'x') }}", given) == "[ab <|x|> cd]:x");
  CHECK(marked("{{ 'a{}b'.format(l[0]) }}", given) == "a[p]b");
  CHECK(marked("{% set b %}x{{ l[0] }}{% endset %}{{ b }}", given) == "x[p]");
  CHECK(marked("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(l[1]) }}", given) == "<[q]>");
  CHECK(marked("{{ (bos ~ l[0])[::-1] }}", given) == "[p]>s<");
  // A known role is the template's, any other the client's.
  CHECK(marked("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}", given) ==
        "<user>[hi]<[u<|x|>]>");
}

TEST_CASE("template: a program renders the same again, and keeps nothing of the time before") {
  const auto p =
      *jinja::program::compile("{% set ns = namespace(n=0) %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{{ x }}");
  for (const char* x : {"a", "b"})
    CHECK(p->render({{{"x", x}}, {}, weir::tests::published_now})->text == std::string("1") + x);
}

}  // namespace weir::tests::template_test
