// Banned strings and token healing over HTTP.
#include <catch2/catch.hpp>
#include <string>

#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/sim_text.h"

namespace weir::tests::http_banned_test {

namespace {

std::string body(const std::string& input, const std::string& banned) {
  return "{" + input + R"(,"model":"sim","seed":7,"max_tokens":12,"banned_strings":)" + banned + "}";
}

// Every text of the simulated model has one of these.
std::string all_words() {
  std::string out = "[";
  for (char c = '0'; c <= '9'; ++c) out += std::string(out.size() > 1 ? ",\"w" : "\"w") + c + '"';
  return out + "]";
}

}  // namespace

TEST_CASE("http: an answer has no banned string, and goes on behind what was written before") {
  server_fixture f;
  http_client c(f.port());
  const std::string usual = sim_text(7, 12), word = usual.substr(15, 4);  // the fourth of "w123 w456 …"
  const auto got = c.post("/v1/completions", body(R"("prompt":"x")", "[\"W" + word.substr(1) + "\"]"));
  REQUIRE(got.status == 200);
  const auto answer = got.json();
  const auto& choice = answer.at("choices").at(0);
  const std::string text(choice.at("text").as_string());
  CHECK(text.starts_with(usual.substr(0, 15)));
  CHECK(text.find(word) == text.npos);
  CHECK(text.size() == usual.size());
  CHECK(choice.at("finish_reason") == "length");
  CHECK(answer.at("usage").at("completion_tokens") == 12);
  const auto counted = [&](const char* what) {
    return c.get("/v1/stats").json().at("banned").at(what).to_number<int>() >= 1;
  };
  f.until([&] { return counted("times") && counted("tokens"); });  // the picture is that of some step
}

TEST_CASE("http: with token_healing the answer's text begins behind the prompt, not in it") {
  server_fixture f;
  http_client c(f.port());
  const std::string all = sim_text(7, 12);
  const std::string rest = all.substr(all.find(' ') + 1);  // the first token is the prompt's "b"
  const auto completion = c.post("/v1/completions", R"({"prompt":"ab","model":"sim","seed":7,"max_tokens":12,
      "token_healing":true,"echo":true})");
  REQUIRE(completion.status == 200);
  const auto answer = completion.json();
  CHECK(answer.at("choices").at(0).at("text").as_string() == "ab" + rest);
  CHECK(answer.at("usage").at("prompt_tokens") == 1);
  CHECK(answer.at("usage").at("completion_tokens") == 12);
}

TEST_CASE("http: an answer without any other way ends with what it has, and says so in each protocol") {
  server_fixture f;
  http_client c(f.port());
  const std::string chat = R"("messages":[{"role":"user","content":"x"}])";
  const auto completion = c.post("/v1/completions", body(R"("prompt":"x")", all_words()));
  REQUIRE(completion.status == 200);
  CHECK(completion.json().at("choices").at(0).at("finish_reason") == "content_filter");
  CHECK(completion.json().at("choices").at(0).at("text") == "");
  const auto answer = c.post("/v1/chat/completions", body(chat, all_words()));
  REQUIRE(answer.status == 200);
  CHECK(answer.json().at("choices").at(0).at("finish_reason") == "content_filter");
  const auto message = c.post("/v1/messages", body(chat, all_words()));
  REQUIRE(message.status == 200);
  CHECK(message.json().at("stop_reason") == "refusal");
  const auto response = c.post("/v1/responses", body(R"("input":"x")", all_words()));
  REQUIRE(response.status == 200);
  CHECK(response.json().at("status") == "incomplete");
  CHECK(response.json().at("incomplete_details").at("reason") == "content_filter");
}

}  // namespace weir::tests::http_banned_test
