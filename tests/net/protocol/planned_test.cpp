// Every name of the table in net/protocol/planned.h is refused as its row says.
#include "net/protocol/planned.h"

#include <catch2/catch.hpp>
#include <set>

#include "net/protocol/anthropic.h"
#include "net/protocol/openai.h"
#include "net/protocol/ws_protocol.h"

namespace weir::tests::planned_test {

using namespace weir::net;

namespace {

std::string member(std::string_view name, std::string_view value) {
  return fmt::format(R"("{}":{})", name, value);
}

ws::client_message create(std::string_view members, std::string_view input = R"("hi")") {
  return ws::parse(fmt::format(R"({{"type":"response.create","id":"a","input":{},{}}})", input, members));
}
core::result<openai::parsed_request> completion(std::string_view members) {
  return openai::parse(openai::dialect::completion, fmt::format(R"({{"prompt":"hi",{}}})", members));
}
core::result<openai::parsed_request> chat(std::string_view members, std::string_view more_of_message = "") {
  return openai::parse(openai::dialect::chat,
                       fmt::format(R"({{"messages":[{{"role":"user","content":"hi"{}}}],{}}})",
                                   more_of_message, members));
}

core::result<anthropic::parsed_request> anthropic_message(std::string_view members) {
  return anthropic::parse(
      anthropic::route::messages,
      fmt::format(R"({{"messages":[{{"role":"user","content":"hi"}}],"max_tokens":1,{}}})", members));
}

void check_refused(const ws::client_message& m, const std::string& code, const std::string& param,
                   const std::string& message) {
  REQUIRE(std::holds_alternative<ws::protocol_error>(m));
  const auto& e = std::get<ws::protocol_error>(m);
  CHECK(e.id == "a");
  CHECK(e.code == code);
  CHECK(e.param == param);
  CHECK(e.message == message);
  CHECK_FALSE(e.retry_after_ms);
  CHECK_FALSE(e.fatal);
}
template <class Parsed>
void check_refused(const core::result<Parsed>& r, const std::string& param, const std::string& message) {
  REQUIRE(!r);
  CHECK(r.error().code == core::errc::invalid_param);
  CHECK(r.error().param == param);
  CHECK(r.error().message == message);
}

void check_taken(const ws::client_message& m) {
  REQUIRE(std::holds_alternative<ws::response_create>(m));
  CHECK(std::get<ws::response_create>(m).ignored.empty());
}

// A value of the field that is refused because the field is planned, and what is said.
struct refused_value {
  std::string json, message;
};
refused_value refused_value_of(const planned_name& p) {
  const std::string name(p.name), plain = name + " is not supported yet";
  switch (p.kind) {
    case planned_name::value::any: return {R"("~")", plain};
    case planned_name::value::count: return {"2", plain};
  }
  return {};
}

void check_field(const planned_name& p, bool over_socket, bool over_http) {
  const std::string name(p.name);
  const auto refused = refused_value_of(p);
  if (over_socket) check_refused(create(member(name, refused.json)), "invalid_param", name, refused.message);
  if (over_http) {
    check_refused(completion(member(name, refused.json)), name, refused.message);
    check_refused(chat(member(name, refused.json)), name, refused.message);
  }
  for (const std::string_view usual : {p.neutral, p.also_neutral, std::string_view("null")}) {
    CAPTURE(usual);
    if (over_socket) check_taken(create(member(name, usual)));
    if (over_http) {
      CHECK(completion(member(name, usual)).has_value());
      CHECK(chat(member(name, usual)).has_value());
    }
  }
}

void check_row(const planned_name& p) {
  const std::string name(p.name), message = name + " is not supported yet";
  switch (p.where) {
    case place::request_field: return check_field(p, true, true);
    case place::create_field: return check_field(p, true, false);
    case place::openai_field: return check_field(p, false, true);
    case place::anthropic_field:
      check_refused(anthropic_message(member(name, R"("~")")), name, refused_value_of(p).message);
      for (const std::string_view usual : {p.neutral, std::string_view("null")})
        CHECK(anthropic_message(member(name, usual)).has_value());
      return;
    case place::stream_option: {
      const auto with = [&](std::string_view value) {
        return completion(R"("stream":true,"stream_options":{)" + member(name, value) + "}");
      };
      check_refused(with(R"("~")"), "stream_options." + name, "stream_options." + message);
      CHECK(with(p.neutral).has_value());
      CHECK(with("null").has_value());
      return;
    }
    case place::message_member: {
      const std::string odd = member(name, R"("~")");
      check_refused(chat(member("n", "1"), "," + odd), "messages", "messages[0]." + message);
      check_refused(
          create(member("timing", "true"), fmt::format(R"([{{"role":"user","content":"hi",{}}}])", odd)),
          "invalid_param", "input", "input[0]." + message);
      CHECK(chat(member("n", "1"), "," + member(name, p.neutral)).has_value());
      CHECK(chat(member("n", "1"), "," + member(name, "null")).has_value());
    }
  }
}

}  // namespace

TEST_CASE("planned: each name of the table is refused where a client uses it, and its neutral value is not") {
  std::set<std::pair<place, std::string_view>> seen;
  for (const planned_name& p : planned_names) {
    CAPTURE(p.name);
    CHECK(seen.insert({p.where, p.name}).second);
    CHECK(find_planned(p.where, p.name) == &p);
    check_row(p);
  }
  CHECK(find_planned(place::create_field, "temperature") == nullptr);
}

TEST_CASE("planned: refusals of response.create say what they always said") {
  const struct {
    const char *name, *value, *message;
  } rows[] = {
      {"pace", R"("fast")", R"(pace must be "live" or "even")"},
      {"on_lag", "5", R"(on_lag must be "buffer" or "pause")"},
      {"pad", "1", "pad must be true or false, not a number"},
      {"n", "2", "n is not supported yet"},
      {"n", "0", "n must be at least 1, not 0"},
      {"best_of", "-3", "best_of must be at least 1, not -3"},
      {"prompt_logprobs", "0", "prompt_logprobs is not supported yet"},
      {"guidance_scale", "2", "guidance_scale is not supported yet"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.name, r.value);
    check_refused(create(member(r.name, r.value)), "invalid_param", r.name, r.message);
  }
  check_taken(create(R"("guidance_scale":1,"best_of":1.0,"prompt_logprobs":null)"));
}

TEST_CASE("planned: refusals of frames and of OpenAI's bodies say what they always said") {
  check_refused(ws::parse(R"({"type":"response.nack","id":"a"})"), "unknown_type", "type",
                "unknown type 'response.nack'");
  check_refused(completion(R"("best_of":2)"), "best_of",
                "best_of is not supported yet, unless it is n, which is 1");
  check_refused(completion(R"("best_of":0)"), "best_of", "best_of must be at least 1, not 0");
  check_refused(completion(R"("suffix":"x")"), "suffix", "suffix is not supported yet");
  check_refused(chat(R"("function_call":"auto")"), "function_call", "function_call is not supported yet");
  check_refused(chat(R"("n":1)", R"(,"function_call":{})"), "messages",
                "messages[0].function_call is not supported yet");
  // Only a socket has these.
  CHECK(completion(R"("pace":"live","window":1)")->ignored.told() ==
        std::vector<std::string>{"pace", "window"});
  const auto ignored = create(R"("echo":true)");
  REQUIRE(std::holds_alternative<ws::response_create>(ignored));
  CHECK(std::get<ws::response_create>(ignored).ignored == std::vector<std::string>{"echo"});
}

}  // namespace weir::tests::planned_test
