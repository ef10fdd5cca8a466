#include "net/load/compare.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>

#include "net/load/page.h"

namespace weir::tests::compare_test {

using namespace weir::load;

TEST_CASE("a ratio is that of the medians, and its interval holds it") {
  const auto r = ratio_of({10, 12, 11, 14}, {5, 6, 5.5, 7});
  REQUIRE(r.has_value());
  CHECK(r->a == 11.5);
  CHECK(r->b == 5.75);
  CHECK(r->value == 2);
  CHECK(r->low == Approx(2));  // each pair says the same
  CHECK(r->high == Approx(2));
}

TEST_CASE("an interval is as wide as the windows differ, and the same each time") {
  const std::vector<double> a{10, 20, 30, 40, 50, 60}, b{30, 30, 30, 30, 30, 30};
  const auto r = ratio_of(a, b).value();
  CHECK(r.low < 1);
  CHECK(r.high > 1);
  CHECK(r.value == Approx(35.0 / 30));
  const auto again = ratio_of(a, b).value();
  CHECK(r.low == again.low);
  CHECK(r.high == again.high);
}

TEST_CASE("the bootstrap covers a known ratio about as often as it says") {
  std::mt19937_64 random(5);
  std::lognormal_distribution<double> noise(0, 0.2);
  int covered = 0;
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<double> a, b;
    for (int i = 0; i < 20; ++i) a.push_back(3 * noise(random)), b.push_back(2 * noise(random));
    const auto r = ratio_of(a, b).value();
    if (r.low <= 1.5 && 1.5 <= r.high) ++covered;
  }
  CHECK(covered >= 51);  // 57 are expected of 60
}

TEST_CASE("too few windows, or nothing to divide by, is no ratio") {
  CHECK(!ratio_of({1}, {1}));
  CHECK(!ratio_of({}, {}));
  CHECK(!ratio_of({1, 2}, {0, 0}));
}

TEST_CASE("windows come in the order A B B A, and what only one server has is not compared") {
  std::string order;
  const auto r = compare(3,
                         [&](bool second) {
                           order += second ? 'B' : 'A';
                           report w;
                           w.url = second ? "b" : "a";
                           w.all.of(figure::itl_ms).add(second ? 10 : 20, 5);
                           if (!second) w.all.of(figure::added_jitter_ms).add(1);
                           w.all.conclude(1);
                           return w;
                         },
                         [] { return false; });
  CHECK(order == "ABBAAB");
  CHECK(r.pairs == 3);
  CHECK(r.a == "a");
  CHECK(r.b == "b");
  for (const auto& c : r.figures) {
    CAPTURE(entry(c.of).name, c.statistic);
    CHECK(c.result.has_value() == (c.of == figure::itl_ms));
    if (c.result) CHECK(c.result->value == Approx(2).epsilon(0.01));
  }
  CHECK(as_json(r).at("ratios").as_array().size() == r.figures.size());
  CHECK_THAT(as_text(r), Catch::Contains("not measured on both"));
}

TEST_CASE("a comparison fails where one server completed nothing in any window") {
  const auto compared_with = [](int good_windows_of_b) {
    return compare(2,
                   [&](bool second) {
                     report w;
                     w.url = second ? "b" : "a";
                     w.all.number(figure::completed) = !second || good_windows_of_b-- > 0 ? 1 : 0;
                     return w;
                   },
                   [] { return false; });
  };
  CHECK_THAT(compared_with(0).failure, Catch::StartsWith("b: nothing completed"));
  CHECK(compared_with(1).failure.empty());
}

TEST_CASE("an interrupted pair is left out") {
  int windows = 0;
  const auto r = compare(5,
                         [&](bool) {
                           report w;
                           w.interrupted = ++windows == 4;
                           return w;
                         },
                         [] { return false; });
  CHECK(r.pairs == 1);
  CHECK(r.interrupted);
}

TEST_CASE("the page holds its data and no link to anywhere") {
  report r;
  r.url = "ws://h</script><script>alert(1)</script>";
  stream_record s;
  s.how = ending::completed;
  for (int i = 0; i < 30; ++i) s.take(100'000 + i * 20'000, 1);
  s.ended = s.frames.back().at;
  pool_options o;
  o.raster_streams = 2;
  r.all = pool(o);
  r.all.add(s);
  r.all.conclude(1);
  const std::string page = as_page(r);
  const auto from = page.find("id=\"data\">") + 10, to = page.find("</script>", from);
  const auto data = boost::json::parse(page.substr(from, to - from)).as_object();
  CHECK(data.at("url").as_string() == r.url.c_str());
  CHECK(data.at("raster").as_array().size() == 1);
  CHECK(data.at("raster").at(0).at("frames").as_array().size() == 30);
  CHECK(page.find("http") == page.npos);
  CHECK(page.find("src=") == page.npos);
  CHECK(page.find("<script>alert") == page.npos);
}

TEST_CASE("the page has one line for a finding of many streams, with their number") {
  report r;
  for (std::uint64_t i = 0; i < 300; ++i) {
    stream_record s;
    s.index = i;
    s.how = i == 250 ? ending::failed : ending::completed;
    s.error = "the connection was lost";
    const auto stall = 300 + static_cast<micros>(i);
    for (int k = 0; k < 20; ++k) s.take(s.ended = 1000 * (k * 20 + (k > 9 ? stall : 0)), 1);
    if (i % 100 == 0) s.repeats = i / 100 + 1;
    r.all.add(s);
  }
  r.all.conclude(1);
  const std::string page = as_page(r);
  const auto from = page.find("id=\"data\">") + 10, to = page.find("</script>", from);
  const auto data = boost::json::parse(page.substr(from, to - from)).as_object();
  std::map<std::string, std::int64_t> lines;
  for (const auto& f : data.at("folded").as_array())
    lines[f.at("name").as_string().c_str()] += f.at("streams").to_number<std::int64_t>();
  CHECK(data.at("folded").as_array().size() == lines.size());
  CHECK(lines["stall"] == 300);  // of which the report keeps the first 200
  CHECK(lines["repeated token"] == 3);
}

}  // namespace weir::tests::compare_test
