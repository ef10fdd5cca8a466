#include "net/load/trace.h"

#include <catch2/catch.hpp>

namespace weir::tests::trace_test {

using namespace weir::load;

namespace {

trace read(std::string_view text) {
  auto t = parse_trace(text);
  INFO((t ? "" : t.error().message));
  REQUIRE(t.has_value());
  return std::move(*t);
}

}  // namespace

TEST_CASE("a trace of our own: seconds, prompt tokens, answer tokens, sorted and from its first request") {
  const auto t = read("t,in,out\n10.5,100,20\n10,30,4\r\n\n12,1,1\n");
  REQUIRE(t.requests.size() == 3);
  CHECK(t.timed);
  CHECK(t.requests[0].at_s == 0);
  CHECK(t.requests[0].in == 30);
  CHECK(t.requests[1].at_s == Approx(0.5));
  CHECK(t.requests[1].out == 20);
  CHECK(t.requests[2].at_s == Approx(2));
}

TEST_CASE("Azure's traces, whose times are dates, across midnight") {
  const auto t = read(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-11-16 23:59:59.5000000,4808,10\n"
      "2023-11-17 00:00:00.7500000,3180,8\n"
      "2024-05-10 00:00:00.009930+00:00,110,27\n");
  REQUIRE(t.requests.size() == 3);
  CHECK(t.requests[1].at_s == Approx(1.25));
  CHECK(t.requests[1].in == 3180);
  CHECK(t.requests[1].out == 8);
}

TEST_CASE("BurstGPT's traces, of which a request without an answer is left out") {
  const auto t = read(
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,ChatGPT,472,18,490,Conversation log\n"
      "45,ChatGPT,1087,0,1087,Conversation log\n"
      "118,GPT-4,417,276,693,Conversation log\n");
  REQUIRE(t.requests.size() == 2);
  CHECK(t.requests[1].at_s == 113);
  CHECK(t.requests[1].in == 417);
  CHECK(t.requests[1].out == 276);
}

TEST_CASE("Mooncake's traces are JSON, with milliseconds") {
  const auto t = read(
      "{\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 500, \"hash_ids\": [0, 1]}\n"
      "{\"timestamp\": 3052, \"input_length\": 7322, \"output_length\": 490, \"hash_ids\": []}\n");
  REQUIRE(t.requests.size() == 2);
  CHECK(t.requests[1].at_s == Approx(3.052));
  CHECK(t.requests[1].in == 7322);
}

TEST_CASE("a file of lengths alone has no times") {
  const auto t = read(
      "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n74,918,992,0.08\n290,905,1195,0.3\n");
  CHECK(!t.timed);
  REQUIRE(t.requests.size() == 2);
  CHECK(t.requests[0].in == 74);
  CHECK(t.requests[1].out == 905);
}

TEST_CASE("what is no trace is refused, naming the line") {
  const auto message = [](std::string_view text) {
    const auto t = parse_trace(text);
    REQUIRE(!t);
    CHECK(t.error().param == "trace");
    return t.error().message;
  };
  CHECK_THAT(message(""), Catch::Contains("no request"));
  CHECK_THAT(message("t,in,out\n"), Catch::Contains("no request"));
  CHECK_THAT(message("1,2,3\n"), Catch::Contains("first line"));
  CHECK_THAT(message("t,in,out\n1,2,3\n1,2\n"), Catch::Contains("line 3"));
  CHECK_THAT(message("t,in,out\n1,-2,3\n"), Catch::Contains("line 2"));
  CHECK_THAT(message("t,in,out\n1,x,3\n"), Catch::Contains("line 2"));
  CHECK_THAT(message("{\"timestamp\":0}\n"), Catch::Contains("line 1"));
  CHECK_THAT(message("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-16 18:17:03,1,1\n"),
             Catch::Contains("line 2"));
  CHECK_THAT(message("t,in,out\n4e78--0-16 18:17:9=,4,2\n"), Catch::Contains("line 2"));
}

}  // namespace weir::tests::trace_test
