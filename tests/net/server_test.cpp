#include "net/server.h"

#include "net/access/rate.h"
#include "tests/support/server_fixture.h"

namespace weir::tests::server_test {

TEST_CASE("server: an address to listen on is read strictly") {
  const struct {
    const char *text, *host;
    int port;
  } good[] = {
      {"127.0.0.1:8080", "127.0.0.1", 8080}, {"[::1]:0", "::1", 0}, {"localhost:65535", "localhost", 65535}};
  for (const auto& g : good) {
    auto a = net::parse_listen(g.text);
    REQUIRE(a.has_value());
    CHECK(a->host == g.host);
    CHECK(a->port == g.port);
  }
  for (const char* bad : {"", "8080", ":8080", "host:", "host:x", "host:65536", "host:-1", "host:80x"}) {
    CAPTURE(bad);
    auto a = net::parse_listen(bad);
    REQUIRE(!a);
    CHECK(a.error().param == "listen");
  }
}

TEST_CASE("server: it is open to anyone where it has no key and listens beyond the machine") {
  net::server_options o;
  for (const char* local : {"127.0.0.1:8080", "127.9.8.7:1", "[::1]:0", "::1:80", "localhost:80",
                            "LocalHost:80", "[::ffff:127.0.0.1]:80"}) {
    CAPTURE(local);
    o.listen = local;
    CHECK_FALSE(net::open_to_anyone(o));
  }
  for (const char* beyond : {"0.0.0.0:8080", "[::]:8080", "10.0.0.1:80", "[::ffff:10.0.0.1]:80", "box:80",
                             "localhost.example:80", "127.0.0.1.example:80"}) {
    CAPTURE(beyond);
    o.listen = beyond;
    o.api_keys = {};
    CHECK(net::open_to_anyone(o));
    o.api_keys = {"key"};
    CHECK_FALSE(net::open_to_anyone(o));
  }
}

TEST_CASE("server: a port that is taken is an error naming the option") {
  server_fixture f;
  net::server_options o;
  o.listen = "127.0.0.1:" + std::to_string(f.port());
  net::server second(*f.service, f.io, o);
  auto started = second.start();
  REQUIRE(!started);
  CHECK(started.error().param == "listen");
  CHECK_THAT(started.error().message, Catch::Contains("in use"));
}

TEST_CASE("server: it can be stopped before it started, twice, and after a drain that found nothing") {
  server_fixture f;
  net::server_options o;
  o.listen = "127.0.0.1:0";
  { net::server never(*f.service, f.io, o); }
  net::server once(*f.service, f.io, o);
  REQUIRE(once.start().has_value());
  CHECK(once.port() != 0);
  CHECK(once.port() != f.port());
  std::promise<void> idle;
  once.drain([&] { idle.set_value(); });
  idle.get_future().get();
  once.stop();
  once.stop();
}

TEST_CASE("rate: a burst passes, then the rate, and far beyond it is abuse") {
  using verdict = net::rate_meter::verdict;
  net::rate_meter::time_point now{};
  net::rate_meter m(10, 3, 5, now);
  for (int i = 0; i < 3; ++i) CHECK(m.spend(now) == verdict::fine);
  CHECK(m.spend(now) == verdict::too_fast);
  CHECK(m.wait() > std::chrono::milliseconds(0));
  now += m.wait();
  CHECK(m.spend(now) == verdict::fine);
  now += std::chrono::seconds(100);  // no more than the burst is saved up
  for (int i = 0; i < 3; ++i) CHECK(m.spend(now) == verdict::fine);
  for (int i = 0; i < 5; ++i) CHECK(m.spend(now) == verdict::too_fast);
  CHECK(m.spend(now) == verdict::abuse);
}

}  // namespace weir::tests::server_test
