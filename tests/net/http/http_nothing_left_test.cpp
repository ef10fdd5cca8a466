// Requests that leave no token to draw, sent to a model that computes.
#include <catch2/catch.hpp>

#include "core/text/tokenizer/tokenizer.h"
#include "tests/support/golden.h"
#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"

namespace weir::tests::http_nothing_left_test {

using namespace weir::net;

namespace {

server_options computing() {
  server_options o;
  o.model_dir = bundled_models().back().string();
  o.owner.kv_tokens = 2048;
  return o;
}

// A body whose stop ids are all tokens but the last `but`, which min_tokens forbids.
std::string forbidding(std::uint32_t vocab, std::uint32_t but, const std::string& more) {
  std::string ids;
  for (std::uint32_t id = 0; id + but < vocab; ++id) ids += (id ? "," : "") + std::to_string(id);
  return R"({"prompt":"x","max_tokens":4,"min_tokens":1,"stop_token_ids":[)" + ids + "]" + more + "}";
}

}  // namespace

TEST_CASE("http: eight requests that forbid every token are 400 by name, and the server stays ready") {
  server_fixture f(computing());
  http_client c(f.port());
  const auto vocab = f.service->models().front().vocab_size;
  for (int i = 0; i < 8; ++i) {
    for (const char* more : {"", R"(,"choice":["yes","no"])", R"(,"n":2)"}) {
      const auto answer = c.post("/v1/completions", forbidding(vocab, 0, more));
      CHECK(answer.status == 400);
      CHECK(answer.error().at("param") == "stop_token_ids");
      const std::string message(answer.error().at("message").as_string());
      CHECK(message.find("min_tokens") != message.npos);
    }
  }
  CHECK(c.get("/health/ready").status == 200);
  CHECK(c.post("/v1/completions", R"({"prompt":"x","max_tokens":4})").status == 200);
}

TEST_CASE("http: eight jobs whose constraint meets stop ids alone are 400, and the server stays ready") {
  const auto dir = bundled_models().back();
  const auto words = core::load_tokenizer(dir.string()).value();
  std::string letters;
  for (core::token_id id = 0; id < static_cast<core::token_id>(words->vocab_size()); ++id) {
    const auto bytes = words->token_bytes(id);
    if (bytes == "a" || bytes == "b") letters += (letters.empty() ? "" : ",") + std::to_string(id);
  }
  server_fixture f(computing());
  http_client c(f.port());
  for (int i = 0; i < 8; ++i) {
    const auto answer =
        c.post("/v1/completions", R"({"prompt":"x","max_tokens":4,"min_tokens":1,"regex":"[ab]","n":2,)"
                                  R"("stop_token_ids":[)" +
                                      letters + "]}");
    INFO(answer.body());
    CHECK(answer.status == 400);
    CHECK(answer.error().at("param") == "min_tokens");
  }
  CHECK(c.get("/health/ready").status == 200);
}

}  // namespace weir::tests::http_nothing_left_test
