// Templates that want to take all time, all memory or all of the stack end with an error.
#include <catch2/catch.hpp>

#include "core/text/template/template.h"
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

std::string outcome(const std::string& source, const js::object& given = {}) {
  const auto p = jinja::program::compile(source);
  if (!p) return p.error().message;
  const auto made = (*p)->render({given, {}, weir::tests::published_now}, most());
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
