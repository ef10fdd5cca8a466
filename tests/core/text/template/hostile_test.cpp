// Templates that want to take all time, all memory or all of the stack end with an error.
#include <catch2/catch.hpp>

#include "core/text/template/template.h"
#include "tests/support/free_turn.h"
#include "tests/support/manual_clock.h"
#include "tests/support/published_templates.h"

namespace weir::tests::hostile_test {

using namespace weir::core;
namespace js = boost::json;

namespace {

std::string repeated(std::string_view what, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += what;
  return out;
}

// Under a sanitizer every step takes ten times as long, and shows the same with fewer.
jinja::limits most() {
  jinja::limits l;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  l.steps /= 16;
#endif
  return l;
}

std::string outcome(const std::string& source, const js::object& given = {},
                    const jinja::limits& limits = most()) {
  const auto p = jinja::program::compile(source);
  if (!p) return p.error().message;
  const auto made = (*p)->render({given, {}, weir::tests::published_now}, limits);
  return made ? "done" : made.error().message;
}

}  // namespace

TEST_CASE("hostile template: endless work ends by steps") {
  const std::string loops = "{% for a in range(99999) %}{% for b in range(99999) %}";
  const std::string list = "{% set l = range(99999) | list %}", often = "{% for a in range(9999) %}";
  const std::string long_text = "{% set s = 'ab ' * 500000 %}";
  for (const std::string& source : {
           loops + "{% endfor %}{% endfor %}",
           loops + "{% set x = a ~ b %}{% endfor %}{% endfor %}",
           list + "{% for a in l %}{% if a in l[::-1] %}{% endif %}{% endfor %}",
           list + often + "{% set x = l | sort %}{% endfor %}",
           list + "{{ l | unique | list }}",
           long_text + often + "{% set x = s.replace('c', 'd') %}{% endfor %}",
           long_text + often + "{% set x = s.split() %}{% endfor %}",
           long_text + often + "{% for c in s %}{% endfor %}{% endfor %}",
           "{% set ns = namespace(s='A') %}" + often +
               "{% set ns.s = (ns.s ~ ns.s) | upper | title | trim | indent %}{% endfor %}",
           "{% macro m(n) %}" + often + "{{ m(n) }}{% endfor %}{% endmacro %}{{ m(1) }}",
       }) {
    CAPTURE(source);
    CHECK_THAT(outcome(source), Catch::Contains("more than") || Catch::Contains("deeper than"));
  }
}

TEST_CASE("hostile template: a search is charged by what it looks at") {
  // Each place of `t` agrees with half of `u`: the search looks at a billion bytes.
  const std::string texts = "{% set t = 'a' * 65536 %}{% set u = 'a' * 32768 ~ 'b' %}";
  for (const char* use : {"{{ t.find(u) }}", "{{ t.rfind(u) }}", "{{ t.count(u) }}", "{{ t.split(u) }}",
                          "{{ t.rsplit(u) }}", "{{ t.replace(u, 'c') }}", "{{ t | replace(u, 'c') }}",
                          "{{ u in t }}", "{{ u is in t }}", "{{ t.partition(u) }}", "{{ t.rpartition(u) }}",
                          "{{ ('\u00e9' * 65536).strip('\u00e8' * 65536 ~ '\u00e9') }}"}) {
    CAPTURE(use);
    CHECK_THAT(outcome(texts + use), Catch::Contains("more than"));
  }
}

TEST_CASE("hostile template: a look at every character is charged wherever it is taken") {
  const std::string text = "{% set t = ' ' * 4000000 %}{% for i in range(9999) %}{% set x = ";
  for (const char* use :
       {"t | length", "t[5000000]", "t | int", "t | float", "t | wordcount", "t | truncate(9)", "t.ljust(1)",
        "t.zfill(1)", "t.isalpha()", "t.removeprefix(t ~ 'x')", "t.find('x')", "t.find('x', 3)", "t is upper",
        "t.splitlines()", "{t: 1}[t]", "{1: 2} | tojson(indent=t)"}) {
    CAPTURE(use);
    CHECK_THAT(outcome(text + use + " %}{% endfor %}"), Catch::Contains("more than"));
  }
}

TEST_CASE("hostile template: names and members are found at a cost") {
  std::string many;
  for (int i = 0; i < 30'000; ++i) many += "{% set a" + std::to_string(i) + " = 1 %}";
  CHECK_THAT(outcome(many), Catch::Contains("steps"));
  auto small = most();
  small.memory_bytes = 1 << 20;
  CHECK_THAT(outcome("{% macro m(n, l) %}{% set c = cycler(*l) %}{{ m(n, l) if n else '' }}{% endmacro %}"
                     "{{ m(1, range(9999) | list) }}",
                     {}, small),
             Catch::Contains("more than 1048576 bytes"));
}

TEST_CASE("hostile template: a rendering ends with its time, and when nobody waits for it") {
  const auto p = jinja::program::compile("{% for i in range(9999) %}{{ i }}{% endfor %}");
  REQUIRE(p.has_value());
  const js::object nothing;
  const jinja::variables given{nothing, nothing, weir::tests::published_now};
  weir::tests::manual_clock time;
  weir::tests::free_turn at(time);
  jinja::limits timed = most();
  timed.at = &at;
  timed.deadline = time.now() + std::chrono::seconds(1);
  CHECK((*p)->render(given, timed).has_value());
  time.advance(std::chrono::seconds(1));
  REQUIRE((*p)->render(given, timed).has_error());
  CHECK_THAT((*p)->render(given, timed).error().message, Catch::Contains("too long"));
  weir::tests::free_turn left;
  left.looked = [&] { left.unwanted = left.looks == 3; };
  jinja::limits watched = most();
  watched.at = &left;
  REQUIRE((*p)->render(given, watched).has_error());
  CHECK(left.looks == 3);
}

TEST_CASE("hostile template: huge values and outputs end by bytes") {
  for (const char* source :
       {"{{ 'x' * 99999999999 }}", "{% set s = 'x' * 999999999 %}", "{{ [1] * 999999999 }}",
        "{{ 'a'.ljust(9999999999) }}", "{{ 'a'.zfill(9999999999) }}", "{{ '%99999999999d' % 1 }}",
        "{% set s = 'x' * 60000000 %}{{ s }}{{ s }}",
        "{% set ns = namespace(l=['x' * 999999]) %}{% for i in range(999) %}{% set ns.l = ns.l + ['x' * "
        "999999 ~ i] %}"
        "{% endfor %}",
        "{% for i in range(99999) %}{{ 'x' * 99999 }}{% endfor %}", "{{ ('x\\n' * 9999999) | indent(9999) }}",
        "{{ ('x,' * 9999999).split(',') | join('yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy') }}",
        "{{ range(99999) | batch(1) | list | tojson(indent=100) }}{{ ([[[[[[[[1]]]]]]]] * 999999) | "
        "tojson(indent=100) }}"}) {
    CAPTURE(source);
    CHECK_THAT(outcome(source), Catch::Contains("more than") || Catch::Contains("is above"));
  }
}

TEST_CASE("hostile template: depth ends by levels") {
  CHECK_THAT(outcome("{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}"),
             Catch::Contains("deeper than"));
  CHECK_THAT(outcome("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
             Catch::Contains("deeper than"));
  CHECK_THAT(
      outcome("{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% endfor %}"),
      Catch::Contains("deeper than"));
  CHECK_THAT(outcome("{{ " + repeated("(", 100'000) + "1" + repeated(")", 100'000) + " }}"),
             Catch::Contains("deeper than"));
  CHECK_THAT(outcome("{{ " + repeated("[", 100'000) + repeated("]", 100'000) + " }}"),
             Catch::Contains("deeper than"));
  CHECK_THAT(outcome("{{ " + repeated("not ", 100'000) + "1 }}"), Catch::Contains("deeper than"));
  CHECK_THAT(outcome("{{ " + repeated("-", 100'000) + "1 }}"), Catch::Contains("deeper than"));
  CHECK_THAT(outcome("{{ 1" + repeated(" + 1", 100'000) + " }}"), Catch::Contains("deeper than"));
  CHECK_THAT(outcome("{{ a" + repeated(".b", 100'000) + " }}"), Catch::Contains("deeper than"));
  CHECK_THAT(outcome("{{ a" + repeated(" | upper", 100'000) + " }}"), Catch::Contains("deeper than"));
  CHECK_THAT(outcome("{{ 1" + repeated(" if 1 else 1", 100'000) + " }}"), Catch::Contains("deeper than"));
  CHECK_THAT(outcome(repeated("{% if 1 %}", 100'000)), Catch::Contains("deeper than"));
  CHECK_THAT(outcome("{% for " + repeated("(", 100'000)),
             Catch::Contains("deeper than") || Catch::Contains("does not end"));
  js::value deep = 1;
  for (int i = 0; i < 300; ++i) deep = js::array{std::move(deep)};
  CHECK_THAT(outcome("{{ x }}", {{"x", deep}}), Catch::Contains("deeper than"));
}

TEST_CASE("hostile template: values of a template form no cycle, so none stays behind") {
  CHECK_THAT(outcome("{% set ns = namespace() %}{% set ns.me = ns %}"),
             Catch::Contains("cannot be a Namespace"));
  CHECK_THAT(outcome("{% set ns = namespace() %}{% set ns.me = [{'a': ns}] %}"),
             Catch::Contains("member of a namespace"));
  CHECK_THAT(outcome("{% macro m() %}{% endmacro %}{% set ns = namespace(m=m) %}"),
             Catch::Contains("cannot be a Macro"));
  CHECK_THAT(outcome("{% for x in [1] %}{% set ns = namespace(l=loop.cycle) %}{% endfor %}"),
             Catch::Contains("member of a namespace"));
  CHECK(outcome("{% macro m() %}{{ m }}{% endmacro %}{% set a = [m] %}{{ m() }}") == "done");
}

TEST_CASE("hostile template: what the sandbox of Python hides is hidden") {
  for (const char* source : {"{{ ''.__class__.__mro__ }}", "{{ messages.__init__.x }}", "{{ [].append(1) }}",
                             "{{ {}.update({}) }}", "{{ (1).__add__(2) }}", "{{ [].__len__() }}"}) {
    CAPTURE(source);
    CHECK_THAT(outcome(source), Catch::Contains("fails in line 1"));
  }
}

TEST_CASE("hostile template: numbers that overflow are errors") {
  for (const char* source :
       {"{{ 9223372036854775807 + 1 }}", "{{ -9223372036854775807 - 2 }}", "{{ 2 ** 64 }}",
        "{{ 4611686018427387904 * 2 }}", "{{ (-9223372036854775807 - 1) // -1 }}"}) {
    CAPTURE(source);
    CHECK_THAT(outcome(source), Catch::Contains("more than 64 bits"));
  }
  CHECK(outcome("{{ (-9223372036854775807 - 1) % -1 }}") == "done");
  CHECK(outcome("{{ 'abc'[-9223372036854775807:9223372036854775807:9223372036854775807] }}") == "done");
  CHECK(outcome("{{ 'abc'[::-9223372036854775807 - 1] }}") == "done");
  CHECK(outcome("{{ range(9223372036854775806, 9223372036854775807, 5) | list }}") == "done");
}

}  // namespace weir::tests::hostile_test
