#include "net/bus/join_plan.h"

#include <catch2/catch.hpp>

#include "net/bus/nats_bus.h"

namespace weir::tests::join_plan_test {

TEST_CASE("join: URLs are read strictly") {
  const struct {
    const char *text, *host;
    int port;
    bool tls, loopback;
    const char* again;
  } good[] = {{"nats://a", "a", 4222, false, false, "nats://a:4222"},
              {"tls://a.example:1", "a.example", 1, true, false, "tls://a.example:1"},
              {"nats://127.0.0.1:65535", "127.0.0.1", 65535, false, true, "nats://127.0.0.1:65535"},
              {"nats://LocalHost", "LocalHost", 4222, false, true, "nats://LocalHost:4222"},
              {"nats://[::1]", "::1", 4222, false, true, "nats://[::1]:4222"},
              {"tls://[fe80::1]:99", "fe80::1", 99, true, false, "tls://[fe80::1]:99"}};
  for (const auto& g : good) {
    CAPTURE(g.text);
    const auto urls = net::parse_join_urls(g.text);
    REQUIRE(urls.has_value());
    REQUIRE(urls->size() == 1);
    CHECK(urls->front().host == g.host);
    CHECK(urls->front().port == g.port);
    CHECK(urls->front().tls == g.tls);
    CHECK(urls->front().is_loopback() == g.loopback);
    CHECK(urls->front().text() == g.again);
  }
  const auto three = net::parse_join_urls("nats://a:1,tls://b,nats://[::1]:3");
  REQUIRE(three.has_value());
  CHECK(three->size() == 3);
  for (const char* bad : {"",
                          "a",
                          "a:4222",
                          "nats:/a",
                          "nats://",
                          "nats://:4222",
                          "nats://a:",
                          "nats://a:0",
                          "nats://a:65536",
                          "nats://a:1x",
                          "nats://a:-1",
                          "nats://a/b",
                          "nats://a?b",
                          "nats://a b",
                          "nats://[::1",
                          "nats://[a]:1",
                          "nats://[::1]x",
                          "nats://a,",
                          ",nats://a",
                          "nats://a,,nats://b",
                          "http://a",
                          "nats://a:1:2"}) {
    CAPTURE(bad);
    const auto urls = net::parse_join_urls(bad);
    REQUIRE(!urls);
    CHECK(urls.error().param == "join");
  }
  std::string many = "nats://a";
  for (int i = 1; i < 64; ++i) many += ",nats://a";
  CHECK(net::parse_join_urls(many).has_value());
  CHECK(!net::parse_join_urls(many + ",nats://a"));
}

TEST_CASE("join: a password in a URL is refused, and not repeated") {
  for (const char* text :
       {"nats://me:secret@a:4222", "nats://secret@a", "me:secret@a", "nats://a,nats://secret@b"}) {
    const auto urls = net::parse_join_urls(text);
    REQUIRE(!urls);
    CHECK(urls.error().message.find("--join-nkey") != std::string::npos);
    CHECK(urls.error().message.find("secret") == std::string::npos);
  }
}

TEST_CASE("join: beyond the machine, TLS and a key are required by name") {
  core::join_settings s;
  const auto param = [&] {
    const auto plan = net::join_plan_of(s);
    return plan ? std::string(plan->tls ? "tls" : "plain") : plan.error().param;
  };
  s.join = "nats://127.0.0.1,nats://localhost:1,nats://[::1]:2";
  CHECK(param() == "plain");
  s.join_nkey = "seed";
  CHECK(param() == "plain");
  s.join += ",nats://10.0.0.1";
  CHECK(param() == "join-ca");
  s.join_ca = "ca.pem";
  CHECK(param() == "tls");
  s.join_nkey.clear();
  CHECK(param() == "join-nkey");
  CHECK(net::join_plan_of(s).error().message.find("nats://10.0.0.1:4222") != std::string::npos);
  s.join_nkey = "seed";
  s.join_cert = "c.pem";
  CHECK(param() == "join-key");
  std::swap(s.join_cert, s.join_key);
  CHECK(param() == "join-cert");
  s.join_cert = "c.pem";
  CHECK(param() == "tls");
}

TEST_CASE("join: TLS is also used on the machine where a URL or a file asks for it") {
  core::join_settings s;
  s.join = "tls://localhost";
  auto plan = net::join_plan_of(s);
  REQUIRE(!plan);
  CHECK(plan.error().param == "join-ca");
  s.join_ca = "ca.pem";
  plan = net::join_plan_of(s);
  REQUIRE(plan.has_value());
  CHECK(plan->tls);
  s.join = "nats://localhost";
  plan = net::join_plan_of(s);
  REQUIRE(plan.has_value());
  CHECK(plan->tls);
}

TEST_CASE("join: a cell's name is one word of a subject") {
  for (const char* good : {"weir", "west-1", "a", "x_y"}) CHECK(net::check_cell(good).has_value());
  for (const char* bad : {"", "a.b", "a b", "*", ">", "a*", "a\n", "012345678901234567890123456789012"}) {
    CAPTURE(bad);
    REQUIRE(!net::check_cell(bad));
    CHECK(net::check_cell(bad).error().param == "cell");
  }
}

TEST_CASE("join: a wrong option is named before anything is connected") {
  core::join_settings s;
  s.join = "nats://10.255.255.1:4222";
  const auto b = net::join_nats(s, {});
  REQUIRE(!b);
  if (net::has_nats())
    CHECK(b.error().param == "join-ca");
  else
    CHECK(b.error().message == "--join: this build has no NATS: libnats-dev was missing");
}

}  // namespace weir::tests::join_plan_test
