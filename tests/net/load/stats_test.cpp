#include "net/load/stats.h"

#include <catch2/catch.hpp>

namespace weir::tests::stats_test {

TEST_CASE("a weir server's statistics are read, and another server's page is none") {
  const auto s = weir::load::read_stats(
      R"({"jobs":{"queued":1,"prefilling":2,"decoding":3,"paused":0,"finished":9},"rss_bytes":1000,"closed":{"4440":7},"sampled_to_sent_ms":{"p99":1.5}})");
  REQUIRE(s.has_value());
  CHECK(s->jobs == 6);
  CHECK(s->rss_bytes == 1000);
  CHECK(s->slow_closed == 7);
  CHECK(s->sent_p99_ms == 1.5);
  CHECK(!weir::load::read_stats("{}"));
  CHECK(!weir::load::read_stats("<html>"));
  CHECK(!weir::load::read_stats(R"({"jobs":4,"rss_bytes":1})"));
}

}  // namespace weir::tests::stats_test
