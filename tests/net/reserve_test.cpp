// Health where clients have taken all memory or all descriptors.
#include "net/reserve.h"

#include "tests/support/http_client.h"
#include "tests/support/no_descriptors.h"
#include "tests/support/raw_client.h"
#include "tests/support/server_fixture.h"

namespace weir::tests::reserve_test {

namespace {

// A server with a listener for metrics, whose clients may hold a MiB, all of which is held.
struct full_server {
  full_server() : all(f.service->memory()) {
    f.service->memory()->set_limit(1 << 20);
    all.force(1 << 20);
  }
  static server_options options() {
    server_options o;
    o.net.metrics_listen = "0";
    o.net.api_keys = {"key"};
    return o;
  }
  unsigned short metrics() const { return f.server->metrics()->port; }

  server_fixture f{options()};
  core::memory_hold all;
};

// Connects a socket that is there already and asks for a target; returns what the server says until it ends.
std::string answer_on(int fd, unsigned short port, const std::string& target) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return "not connected";
  const std::string asks = "GET " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  ::send(fd, asks.data(), asks.size(), MSG_NOSIGNAL);
  std::string heard;
  char piece[4096];
  for (ssize_t n; (n = ::recv(fd, piece, sizeof piece, 0)) > 0;)
    heard.append(piece, static_cast<std::size_t>(n));
  return heard;
}

}  // namespace

TEST_CASE("reserve: it has four places, and a place that is given back is there again") {
  const auto r = std::make_shared<net::reserve>();
  std::vector<net::reserve::place> taken;
  for (std::size_t i = 0; i < net::reserve::places; ++i) {
    taken.push_back(r->enter());
    CHECK(bool(taken.back()));
  }
  CHECK_FALSE(bool(r->enter()));
  taken.pop_back();
  CHECK(bool(r->enter()));
  CHECK(bool(r->enter()));
}

TEST_CASE("reserve: a place gives its descriptor away, and takes one again") {
  const auto r = std::make_shared<net::reserve>();
  bool with_place = false, without = true, after = true;
  {
    const no_descriptors none;
    without = !net::descriptor::spare().empty();
    {
      const auto place = r->enter();
      with_place = !net::descriptor::spare().empty();
    }
    after = !net::descriptor::spare().empty();
  }
  CHECK_FALSE(without);
  CHECK(with_place);
  CHECK_FALSE(after);
}

TEST_CASE("reserve: health is answered where clients hold all memory, and nothing else is") {
  full_server s;
  for (const char* target : {"/health/live", "/health/ready", "/health"}) {
    CAPTURE(target);
    CHECK(http_client(s.f.port()).get(target).status == 200);
    CHECK(http_client(s.metrics()).get(target).status == 200);
  }
  CHECK(http_client(s.metrics()).get("/metrics").status == 200);
  for (const char* target : {"/v1/models", "/metrics", "/", "/nothing"}) {
    CAPTURE(target);
    http_client c(s.f.port());
    const auto a = c.get(target, "Authorization: Bearer key\r\n");
    CHECK(a.status == 503);
    CHECK(a.error().at("code") == "overloaded");
    CHECK(c.ended());
  }
  s.all.force(0);
  CHECK(http_client(s.f.port()).get("/v1/models", "Authorization: Bearer key\r\n").status == 200);
}

TEST_CASE("reserve: health is answered where the process has no descriptor left") {
  full_server s;
  s.all.force(0);
  const int sockets[] = {::socket(AF_INET, SOCK_STREAM, 0), ::socket(AF_INET, SOCK_STREAM, 0)};
  std::string main, metrics;
  {
    const no_descriptors none;
    main = answer_on(sockets[0], s.f.port(), "/health/live");
    metrics = answer_on(sockets[1], s.metrics(), "/health/live");
  }
  for (const int fd : sockets) ::close(fd);
  CHECK_THAT(main, Catch::StartsWith("HTTP/1.1 200 "));
  CHECK_THAT(metrics, Catch::StartsWith("HTTP/1.1 200 "));
}

}  // namespace weir::tests::reserve_test
