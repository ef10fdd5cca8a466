// GET /models/sse: who hears what of models that come and go, how slow readers fare, and when streams end.
#include <memory>

#include "tests/support/model_talk.h"
#include "tests/support/raw_client.h"
#include "tests/support/server_fixture.h"

namespace weir::tests::model_events_test {
namespace {

// Names and values of the events in a text, in order.
std::vector<std::pair<std::string, std::string>> events_in(const std::string& heard) {
  std::vector<std::pair<std::string, std::string>> out;
  constexpr std::string_view begin = "data: ";
  for (auto at = heard.find(begin); at != heard.npos; at = heard.find(begin, at + 1)) {
    const auto end = heard.find("\n\n", at);
    if (end == heard.npos) break;
    const auto e = boost::json::parse(heard.substr(at + begin.size(), end - at - begin.size()));
    const bool removed = e.at("event") == "model_remove";
    if (!removed) CHECK(e.at("data").at("status") == e.at("value"));
    out.emplace_back(text_of(e.at("model")), removed ? "removed" : text_of(e.at("value")));
  }
  return out;
}

constexpr const char* follow = "GET /models/sse HTTP/1.1\r\nHost: localhost\r\n";

}  // namespace

TEST_CASE("model events: a follower hears of every model, of each change, and of what is forgotten") {
  server_fixture f;
  http_client c(f.port()), eye(f.port());
  eye.send(std::string(follow) + "\r\n");
  std::string heard = eye.read_until("\n\n");
  CHECK(heard.find("text/event-stream") != heard.npos);
  CHECK(add_model(c, "second").status == 201);
  heard += eye.read_until(R"("model":"second","value":"loaded")");
  CHECK(forget_model(c, "second").status == 200);
  heard += eye.read_until("\"event\":\"model_remove\",\"model\":\"second\"}\n\n");
  const auto events = events_in(heard);
  REQUIRE(events.size() >= 3);
  CHECK(events.front() == std::pair<std::string, std::string>("sim", "loaded"));
  CHECK(events.back() == std::pair<std::string, std::string>("second", "removed"));
}

TEST_CASE("model events: a follower that reads slowly gets the latest states, and no backlog") {
  server_fixture f;
  http_client c(f.port());
  raw_client slow_reader(f.port(), 2048);
  slow_reader.send_without_reading(std::string(follow) + "\r\n");
  const std::string name(200, 'n');
  constexpr int rounds = 200;
  for (int i = 0; i < rounds; ++i) {
    REQUIRE(add_model(c, name).status == 201);
    REQUIRE(forget_model(c, name).status == 200);
  }
  REQUIRE(add_model(c, "last").status == 201);
  const auto events = events_in(
      slow_reader.read_until("\"last\",\"value\":\"loaded\",\"data\":{\"status\":\"loaded\"}}\n\n"));
  CHECK(events.size() < 2 * rounds);
  CHECK(c.get("/health/ready").status == 200);
}

TEST_CASE("model events: followers see their key's models alone") {
  server_options o;
  o.net.api_keys = *net::parse_api_keys("root admin\nother models=second\n", "F");
  server_fixture f(o);
  http_client c(f.port()), eye(f.port());
  eye.send(std::string(follow) + bearer_line("other") + "\r\n");
  eye.read_until("\r\n\r\n");
  CHECK(c.post(models_route, R"({"name":"third","source":"sim"})", bearer_line("root")).status == 201);
  CHECK(c.post(models_route, R"({"name":"second","source":"sim"})", bearer_line("root")).status == 201);
  const auto heard = eye.read_until(R"("model":"second","value":"loaded")");
  CHECK(heard.find("sim") == heard.npos);
  CHECK(heard.find("third") == heard.npos);
}

TEST_CASE("model events: followers are bounded, leave no trace, and end with the server") {
  server_options o;
  o.net.limits.model_followers = 2;
  o.net.limits.sse_keep_alive = std::chrono::milliseconds(50);
  server_fixture f(o);
  http_client c(f.port());
  const auto follows = [&](http_client& eye) {
    eye.send(std::string(follow) + "\r\n");
    return eye.read_until("\n\n").find("\"sim\"") != std::string::npos;
  };
  {
    http_client first(f.port()), second(f.port());
    CHECK(follows(first));
    CHECK(follows(second));
    CHECK_FALSE(first.read_until(": keep-alive\n\n").empty());  // or it waits in vain
    CHECK(c.get("/models/sse").status == 429);
  }
  std::unique_ptr<http_client> eye;
  f.until([&] {
    eye = std::make_unique<http_client>(f.port());
    eye->send(std::string(follow) + "\r\n");
    return eye->read_until("\r\n").find("200") != std::string::npos;
  });
  f.until([&] { return c.ask("HEAD", "/models/sse", {}, {}).status == 200; });
  f.server->drain([] {});
  while (!eye->ended()) {
  }
}

}  // namespace weir::tests::model_events_test
