// context_overflow over each wire: that the answer goes on, and what clients are told.
#include <catch2/catch.hpp>

#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/sse.h"
#include "tests/support/ws_talk.h"

namespace weir::tests::context_shift_test {

namespace {

server_options small_context() {
  server_options o;
  o.owner.context = 256;
  return o;
}

// The bodies of each route, without their last bracket.
constexpr struct {
  const char *path, *body;
} routes[] = {
    {"/v1/completions", R"({"prompt":"hi","max_tokens":600)"},
    {"/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":600)"},
    {"/v1/messages", R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":600)"},
    {"/v1/responses", R"({"input":"hi","max_output_tokens":600)"},
};

}  // namespace

TEST_CASE("context_overflow: over each route an answer goes on behind a full context, and says so") {
  server_fixture f(small_context());
  http_client c(f.port());
  for (const auto& r : routes) {
    CAPTURE(r.path);
    const auto post = [&](const std::string& fields) { return c.post(r.path, r.body + fields + "}"); };
    const auto usage = [&](const std::string& fields) {
      const auto a = post(fields);
      REQUIRE(a.status == 200);
      return a.json().at("usage").as_object();
    };
    const auto tokens = [](const boost::json::object& used) {
      const auto* chat = used.if_contains("completion_tokens");
      return (chat ? *chat : used.at("output_tokens")).to_number<int>();
    };
    for (const auto* fields : {"", R"(,"context_overflow":"end")", R"(,"context_overflow":null)"}) {
      const auto ended = usage(fields);
      CHECK(tokens(ended) < 256);
      CHECK_FALSE(ended.contains("context_shifts"));
    }
    const auto shifted = usage(R"(,"context_overflow":"shift")");
    CHECK(tokens(shifted) == 600);
    CHECK(shifted.at("context_shifts").to_number<int>() >= 3);
    for (const auto* wrong : {R"(,"context_overflow":"slide")", R"(,"context_overflow":true)"}) {
      const auto no = post(wrong);
      CHECK(no.status == 400);
      CHECK_THAT(no.text, Catch::Contains(R"(context_overflow must be \"end\" or \"shift\")"));
    }
    const auto streamed =
        post(R"(,"context_overflow":"shift","stream":true,"stream_options":)" +
             std::string(r.path == routes[3].path || r.path == routes[2].path ? "null"
                                                                              : R"({"include_usage":true})"));
    CHECK(streamed.status == 200);
    CHECK_THAT(streamed.text, Catch::Contains(R"("context_shifts":)"));
  }
  CHECK(f.service->stats().engine.shifts > 0);
  CHECK_THAT(c.get("/metrics").text, Catch::Contains("weir_context_shifts_total"));
}

TEST_CASE("context_overflow: over weir.v1 an answer goes on behind a full context, and says so") {
  server_fixture f(small_context());
  ws_client c(f.port());
  c.read("session.created");
  const auto done = [&](const char* id, const char* fields) {
    c.send(create(id, fields));
    for (;;) {
      auto frame = c.read();
      if (frame.at("type") == "response.done") return frame;
    }
  };
  const auto ended = done("a", R"("max_tokens":600)");
  CHECK(ended.at("finish_reason") == "length");
  CHECK_FALSE(ended.at("usage").as_object().contains("context_shifts"));
  const auto shifted = done("b", R"("max_tokens":600,"context_overflow":"shift")");
  CHECK(shifted.at("usage").at("output_tokens") == 600);
  CHECK(shifted.at("usage").at("context_shifts").to_number<int>() >= 3);
  c.send(create("c", R"("context_overflow":"roll")"));
  CHECK(c.read("error").at("param") == "context_overflow");
}

}  // namespace weir::tests::context_shift_test
