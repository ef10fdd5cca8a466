// The writer of Prometheus' text format: its lines byte for byte, and through a strict reader.
#include "net/metrics/prometheus.h"

#include "tests/support/prometheus_reader.h"

namespace weir::tests::prometheus_test {

using namespace weir::net;
using type = prometheus_text::type;

namespace {

constexpr auto bounds = core::bounds_in_s({0.0001, 0.0025, 1, 2560});
constexpr auto sizes = core::bounds_of({1, 8});

}  // namespace

TEST_CASE("prometheus: each metric has its help, its type and its samples") {
  std::string text;
  prometheus_text out(text);
  out.family("weir_a_total", type::counter, "How many \"a\".\nTwo lines, and a \\.");
  out.sample({{"model_name", "m"}, {"why", "x"}}, std::uint64_t{18446744073709551615u});
  out.sample({{"model_name", "m"}, {"why", ""}}, std::uint64_t{0});
  out.family("weir_b", type::gauge, "B.");
  out.sample({}, -2.5);
  CHECK(text ==
        "# HELP weir_a_total How many \"a\".\\nTwo lines, and a \\\\.\n"
        "# TYPE weir_a_total counter\n"
        "weir_a_total{model_name=\"m\",why=\"x\"} 18446744073709551615\n"
        "weir_a_total{model_name=\"m\",why=\"\"} 0\n"
        "# HELP weir_b B.\n"
        "# TYPE weir_b gauge\n"
        "weir_b -2.5\n");
  const prometheus_reader read(text);
  CHECK(read.families.at("weir_a_total").help == "How many \"a\".\nTwo lines, and a \\.");
}

TEST_CASE("prometheus: a label's value may be any text, and comes back as it was") {
  const struct {
    const char *value, *written, *read;
  } rows[] = {
      {"plain", "plain", "plain"},
      {"quo\"te", "quo\\\"te", "quo\"te"},
      {"back\\slash", "back\\\\slash", "back\\slash"},
      {"line\nfeed", "line\\nfeed", "line\nfeed"},
      {"\\n", "\\\\n", "\\n"},
      {"{a=\"b\"} 1", "{a=\\\"b\\\"} 1", "{a=\"b\"} 1"},
      {"größer 模型 🙂", "größer 模型 🙂", "größer 模型 🙂"},
      {"\xff", "?", "?"},                    // no character begins so
      {"a\xc3", "a?", "a?"},                 // the rest is missing
      {"\xc3(", "?(", "?("},                 // another character instead
      {"\xc0\xaf", "??", "??"},              // longer than it need be
      {"\xe0\x80\xaf", "???", "???"},        // the same
      {"\xed\xa0\x80", "???", "???"},        // half of a pair of UTF-16
      {"\xf4\x90\x80\x80", "????", "????"},  // beyond Unicode
      {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.value);
    std::string text;
    prometheus_text out(text);
    out.family("weir_a", type::gauge, "A.");
    out.sample({{"x", r.value}}, 1.0);
    CHECK(text == std::string("# HELP weir_a A.\n# TYPE weir_a gauge\nweir_a{x=\"") + r.written + "\"} 1\n");
    CHECK(prometheus_reader(text).value("weir_a", {{"x", r.read}}) == 1);
  }
}

TEST_CASE("prometheus: a histogram's buckets add up, with bounds in the published unit") {
  core::histogram<bounds> h;
  for (const auto d : {0, 100, 101, 2500, 1'000'000, 1'000'001}) h.add(std::chrono::microseconds(d));
  h.add(std::chrono::hours(1));
  std::string text;
  prometheus_text out(text);
  out.family("weir_h_seconds", type::histogram, "H.");
  out.sample({{"model_name", "m"}}, h.view());
  CHECK(text ==
        "# HELP weir_h_seconds H.\n"
        "# TYPE weir_h_seconds histogram\n"
        "weir_h_seconds_bucket{model_name=\"m\",le=\"0.0001\"} 2\n"
        "weir_h_seconds_bucket{model_name=\"m\",le=\"0.0025\"} 4\n"
        "weir_h_seconds_bucket{model_name=\"m\",le=\"1\"} 5\n"
        "weir_h_seconds_bucket{model_name=\"m\",le=\"2560\"} 6\n"
        "weir_h_seconds_bucket{model_name=\"m\",le=\"+Inf\"} 7\n"
        "weir_h_seconds_sum{model_name=\"m\"} 3602.002702\n"
        "weir_h_seconds_count{model_name=\"m\"} 7\n");
  const prometheus_reader read(text);
  CHECK(read.value("weir_h_seconds_count", {{"model_name", "m"}}) == 7);

  core::histogram<sizes> of_numbers;
  of_numbers.add(std::int64_t{8});
  text.clear();
  out.family("weir_n", type::histogram, "N.");
  out.sample({}, of_numbers.view());
  CHECK_THAT(text, Catch::Contains("weir_n_bucket{le=\"1\"} 0\nweir_n_bucket{le=\"8\"} 1\n"
                                   "weir_n_bucket{le=\"+Inf\"} 1\nweir_n_sum 8\nweir_n_count 1\n"));
}

}  // namespace weir::tests::prometheus_test
