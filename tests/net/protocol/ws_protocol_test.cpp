#include "net/protocol/ws_protocol.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <set>

namespace weir::tests::ws_protocol_test {

using namespace weir::net;

namespace {

template <class T>
T as(std::string_view frame) {
  ws::client_message m = ws::parse(frame);
  if (auto* e = std::get_if<ws::protocol_error>(&m)) INFO(e->message);
  REQUIRE(std::holds_alternative<T>(m));
  return std::get<T>(std::move(m));
}

ws::response_create created_with(const std::string& fields) {
  return as<ws::response_create>(R"({"type":"response.create","id":"a","input":"hi",)" + fields + "}");
}

ws::protocol_error refused_with(const std::string& fields) {
  return as<ws::protocol_error>(R"({"type":"response.create","id":"a","input":"hi",)" + fields + "}");
}

}  // namespace

TEST_CASE("weir.v1: each kind of bad frame has its own code") {
  struct row {
    std::string frame;
    const char *code, *param;
  };
  const std::string deep = R"({"type":"ping","ts":)" + std::string(16, '[') + std::string(16, ']') + "}";
  const row rows[] = {
      {"", "bad_json", ""},
      {"{", "bad_json", ""},
      {"not json", "bad_json", ""},
      {deep, "bad_json", ""},
      {"[]", "bad_message", ""},
      {"\"ping\"", "bad_message", ""},
      {"null", "bad_message", ""},
      {"{}", "bad_message", "type"},
      {R"({"type":5})", "bad_message", "type"},
      {R"({"type":""})", "unknown_type", "type"},
      {R"({"type":"response.created"})", "unknown_type", "type"},
      {R"({"type":"response.resume","id":"a","response_id":"x"})", "invalid_param", "after"},
      {R"({"type":"response.ack","id":"a"})", "invalid_param", "seq"},
      {R"({"type":"response.ack","seq":1})", "invalid_param", "id"},
      {R"({"type":"response.ack","id":"a","seq":-1})", "invalid_param", "seq"},
      {R"({"type":"session.auth"})", "invalid_param", "token"},
      {R"({"type":"session.auth","token":7})", "invalid_param", "token"},
      {R"({"type":"response.cancel"})", "invalid_param", "id"},
      {R"({"type":"response.cancel","id":"a","response_id":"b"})", "invalid_param", "id"},
      {R"({"type":"response.cancel","id":4})", "invalid_param", "id"},
      {R"({"type":"response.cancel","response_id":4})", "invalid_param", "response_id"},
      {R"({"type":"response.create","input":"x"})", "invalid_param", "id"},
      {R"({"type":"response.create","id":"","input":"x"})", "invalid_param", "id"},
      {R"({"type":"response.create","id":"a b","input":"x"})", "invalid_param", "id"},
      {R"({"type":"response.create","id":")" + std::string(65, 'a') + R"(","input":"x"})", "invalid_param",
       "id"},
      {R"({"type":"response.create","id":"a"})", "invalid_param", "input"},
  };
  for (const row& r : rows) {
    CAPTURE(r.frame);
    auto e = as<ws::protocol_error>(r.frame);
    CHECK(e.code == r.code);
    CHECK(e.param == r.param);
    CHECK(!e.message.empty());
    CHECK(!e.fatal);
  }
}

TEST_CASE("weir.v1: a field of the wrong type is invalid_param naming it, with the lane's id") {
  const std::pair<const char*, const char*> rows[] = {
      {"model", "5"},
      {"max_tokens", "\"5\""},
      {"max_tokens", "1.5"},
      {"min_tokens", "[]"},
      {"ignore_eos", "1"},
      {"stop", "5"},
      {"stop", "[5]"},
      {"stop_token_ids", "5"},
      {"stop_token_ids", "[\"5\"]"},
      {"add_special_tokens", "\"yes\""},
      {"skip_special_tokens", "0"},
      {"temperature", "\"hot\""},
      {"top_k", "1.5"},
      {"top_p", "true"},
      {"min_p", "{}"},
      {"repetition_penalty", "[]"},
      {"max_repeats", "1.5"},
      {"frequency_penalty", "\"\""},
      {"presence_penalty", "\"\""},
      {"seed", "0.5"},
      {"logit_bias", "[]"},
      {"logit_bias", "{\"x\":1}"},
      {"logit_bias", "{\"1\":1,\"01\":2}"},
      {"logit_bias", "{\"-0\":1}"},
      {"logit_bias", "{\"5\":\"1\"}"},
      {"priority", "\"high\""},
      {"priority", "99999999999"},
      {"deadline_ms", "\"soon\""},
      {"cache_salt", "5"},
      {"on_disconnect", "\"later\""},
      {"on_disconnect", "true"},
      {"timing", "1"},
      {"return_token_ids", "\"yes\""},
      {"metadata", "\"x\""},
      {"pace", "\"fast\""},
      {"on_lag", "\"drop\""},
      {"pad", "1"},
      {"window", "0"},
      {"window", "16777217"},
      {"window", "\"8\""},
  };
  for (const auto& [name, value] : rows) {
    CAPTURE(name, value);
    auto e = refused_with(std::string("\"") + name + "\":" + value);
    CHECK(e.code == "invalid_param");
    CHECK(e.param == name);
    CHECK(e.id == "a");
    CHECK(e.message.find("not supported yet") == std::string::npos);
  }
}

TEST_CASE("weir.v1: what is not there yet is refused by name, and its default is accepted") {
  const struct {
    const char *name, *wanted, *usual;
  } rows[] = {
      {"prompt_logprobs", "5", "null"},
      {"n", "2", "1"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.name);
    auto e = refused_with(std::string("\"") + r.name + "\":" + r.wanted);
    CHECK(e.code == "invalid_param");
    CHECK(e.param == r.name);
    CHECK(e.message.find("not supported yet") != std::string::npos);
    CHECK(created_with(std::string("\"") + r.name + "\":" + r.usual).ignored.empty());
  }
}

TEST_CASE("weir.v1: response.create carries every field into the request") {
  auto c = as<ws::response_create>(R"({
    "type":"response.create","id":"Lane_1.a-b","input":"Once","model":"m","max_tokens":7,"min_tokens":2,
    "ignore_eos":true,"stop_token_ids":[1,2],"stop":["a","b"],"include_stop_str_in_output":true,"banned_strings":["c","D"],"token_healing":true,"add_special_tokens":false,"skip_special_tokens":false,
    "temperature":0.5,"top_k":40,"top_p":0.9,"min_p":0.1,"repetition_penalty":1.1,"frequency_penalty":-0.5,
    "presence_penalty":1,"seed":18446744073709551615,"logit_bias":{"5":-100,"6":1.5},"priority":-3,"cache_salt":"ours","deadline_ms":1500,
    "on_disconnect":"cancel","timing":true,"return_token_ids":true,"metadata":{"a":1},"typo":1,"other":null})");
  const actors::request& r = c.request;
  CHECK(c.id == "Lane_1.a-b");
  CHECK(std::get<std::string>(r.input) == "Once");
  CHECK(r.input_param == "input");
  CHECK(r.model == "m");
  CHECK(r.max_tokens == 7);
  CHECK(r.min_tokens == 2);
  CHECK(r.ignore_eos);
  CHECK(r.stop_token_ids == std::vector<std::int64_t>{1, 2});
  CHECK(r.stop == std::vector<std::string>{"a", "b"});
  CHECK(r.shows_stop);
  CHECK(r.token_healing);
  CHECK(r.banned_strings == std::vector<std::string>{"c", "D"});
  CHECK(!r.add_special_tokens);
  CHECK(!r.skip_special_tokens);
  CHECK(r.sampling.temperature == 0.5);
  CHECK(r.sampling.top_k == 40);
  CHECK(r.sampling.top_p == 0.9);
  CHECK(r.sampling.min_p == 0.1);
  CHECK(r.sampling.repetition_penalty == 1.1);
  CHECK(r.sampling.frequency_penalty == -0.5);
  CHECK(r.sampling.presence_penalty == 1.0);
  CHECK(r.sampling.seed == 18446744073709551615ull);
  CHECK(r.sampling.logit_bias == std::vector<std::pair<std::int64_t, double>>{{5, -100.0}, {6, 1.5}});
  CHECK(r.priority == -3);
  CHECK(r.cache_salt == "ours");
  CHECK(r.deadline == std::chrono::milliseconds(1500));
  CHECK(c.cancel_on_disconnect);
  CHECK(c.how.timing == true);
  CHECK(c.how.return_token_ids == true);
  CHECK(c.metadata == R"({"a":1})");
  CHECK(c.ignored == std::vector<std::string>{"typo", "other"});
}

TEST_CASE("weir.v1: null is the same as a field left out") {
  auto c = created_with(R"("max_tokens":null,"temperature":null,"stop":null,"seed":null,"timing":null,
                           "on_disconnect":null,"model":null)");
  CHECK(!c.request.max_tokens);
  CHECK(!c.request.sampling.temperature);
  CHECK(c.request.stop.empty());
  CHECK(!c.request.sampling.seed);
  CHECK(!c.cancel_on_disconnect);
  CHECK(c.ignored.empty());
}

TEST_CASE("weir.v1: input is text, messages or token ids") {
  auto input = [](const std::string& json) {
    return as<ws::response_create>(R"({"type":"response.create","id":"a","input":)" + json + "}")
        .request.input;
  };
  CHECK(std::get<std::string>(input("\"\"")).empty());
  CHECK(std::get<actors::prompt_ids>(input("[]")).empty());
  CHECK(std::get<actors::prompt_ids>(input("[1,2,300]")) == actors::prompt_ids{1, 2, 300});
  const auto said = std::get<core::conversation>(input(
      R"([{"role":"user","content":"hi"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])"));
  REQUIRE(said.messages.size() == 2);
  CHECK(said.messages[0].at("role") == "user");
  CHECK(said.messages[0].at("content") == "hi");
  CHECK(said.messages[1].at("content").as_array().size() == 2);
  for (const char* bad : {"5", "{}", "null", "[\"a\"]", "[1,\"a\"]", "[-1]", "[99999999999]", "[{}]",
                          "[{\"role\":\"user\"}]", "[{\"role\":5,\"content\":\"x\"}]",
                          "[{\"role\":\"user\",\"content\":5}]", "[{\"role\":\"user\",\"content\":\"x\"},5]",
                          "[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]",
                          "[{\"role\":\"user\",\"content\":null}]",
                          "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[]}]"}) {
    CAPTURE(bad);
    auto e =
        as<ws::protocol_error>(std::string(R"({"type":"response.create","id":"a","input":)") + bad + "}");
    CHECK(e.code == "invalid_param");
    CHECK(e.param == "input");
  }
}

TEST_CASE("weir.v1: cancel, auth, ping and pong are understood") {
  CHECK(as<ws::response_cancel>(R"({"type":"response.cancel","id":"a"})").id == "a");
  CHECK(as<ws::response_cancel>(R"({"type":"response.cancel","response_id":"x"})").response_id == "x");
  CHECK(as<ws::session_auth>(R"({"type":"session.auth","token":"k"})").token == "k");
  CHECK(as<ws::ping>(R"({"type":"ping"})").ts.empty());
  CHECK(as<ws::ping>(R"({"type":"ping","ts":12.5,"more":1})").ts == "12.5");
  as<ws::pong>(R"({"type":"pong","ts":1})");
}

TEST_CASE("weir.v1: a ping's ts is a number of at most 32 digits, and comes back as it was written") {
  const auto ping = [](const std::string& ts) {
    return ws::parse(R"({"ts":)" + ts + R"(,"type":"ping","in":{"ts":7}})");
  };
  for (const std::string ts : {"0", "-0", "1e3", "1700000000000.123", "12345678901234567890123456789012",
                               "-1.2345678901234567890123456789e-12"}) {
    CAPTURE(ts);
    const auto m = ping(ts);
    REQUIRE(std::holds_alternative<ws::ping>(m));
    CHECK(std::get<ws::ping>(m).ts == ts);
  }
  CHECK(as<ws::ping>(R"({"type":"ping","\u0074s":5})").ts == "5");
  CHECK(as<ws::ping>(R"({"type":"ping","in":{"ts":7}})").ts.empty());
  for (const std::string ts :
       {"\"1\"", "null", "true", "[1]", "{\"ts\":1}", "123456789012345678901234567890123",
        "0.00000000000000000000000000000000001"}) {
    CAPTURE(ts);
    const auto m = ping(ts);
    REQUIRE(std::holds_alternative<ws::protocol_error>(m));
    CHECK(std::get<ws::protocol_error>(m).code == "bad_message");
    CHECK(std::get<ws::protocol_error>(m).param == "ts");
  }
  CHECK(as<ws::protocol_error>(R"({"type":"ping","ts":1e400})").code == "bad_json");
}

TEST_CASE("weir.v1: a key that is there twice is bad JSON, and named") {
  const auto e = as<ws::protocol_error>(R"({"type":"ping","a":[{"seed":1,"se\u0065d":2}]})");
  CHECK(e.code == "bad_json");
  CHECK(e.param == "seed");
  CHECK(e.message == "'seed' is there twice");
}

TEST_CASE("weir.v1: names that come back in a message are no longer than 64 bytes, and not many") {
  const std::string longest(100000, 'n');
  const std::string cut = std::string(61, 'n') + "…";
  CHECK(as<ws::protocol_error>(R"({"type":")" + longest + "\"}").message == "unknown type '" + cut + "'");
  CHECK(refused_with(R"("logit_bias":{")" + longest + "\":1}").message ==
        "logit_bias: \"" + cut + "\" is not a token id");
  const auto messages = [&](const std::string& content) {
    return as<ws::protocol_error>(R"({"type":"response.create","id":"a","input":[{"role":"user","content":)" +
                                  content + "}]}");
  };
  CHECK(messages(R"([{"type":")" + longest + "\"}]").message ==
        "input[0].content: parts of type '" + cut + "' are not supported yet");
  CHECK(created_with("\"" + longest + "\":1").ignored == std::vector<std::string>{cut});
  std::string many;
  for (int i = 0; i < 20; ++i) many += (i ? ",\"f" : "\"f") + std::to_string(i) + "\":1";
  const auto names = created_with(many).ignored;
  REQUIRE(names.size() == 17);
  CHECK(names[15] == "f15");
  CHECK(names[16] == "and 4 more");
}

TEST_CASE("weir.v1: server frames have the fields of the wire page") {
  std::string out;
  const std::vector<std::string> models{"m", "n\""};
  ws::append_session_created(out, "s1", "weir/0", models, {32, 262144, 4096, 30000, 120000, 3600000});
  CHECK(out ==
        R"({"type":"session.created","session_id":"s1","server":"weir/0","models":["m","n\""],"limits":{)"
        R"("max_jobs":32,"max_frame":262144,"max_tokens":4096,"detach_grace_ms":30000,"retain_ms":120000,)"
        R"("max_age_ms":3600000}})");
  out.clear();
  ws::append_created(out, {"a", "r1"}, "m", 0, {});
  CHECK(out == R"({"type":"response.created","id":"a","response_id":"r1","seq":0,"model":"m"})");
  out.clear();
  const std::vector<std::string> ignored{"typo"};
  ws::append_created(out, {"a", "r1", R"({"n":1})"}, "m", 2, ignored);
  CHECK(out ==
        R"({"type":"response.created","id":"a","response_id":"r1","seq":0,"model":"m","queue_position":2,)"
        R"("ignored":["typo"],"metadata":{"n":1}})");
  out.clear();
  ws::append_pong(out, "");
  CHECK(out == R"({"type":"pong"})");
  out.clear();
  ws::append_pong(out, "[1,\"a\"]");
  CHECK(out == R"({"type":"pong","ts":[1,"a"]})");
  out.clear();
  ws::append_error(out, ws::protocol_error{"a", "invalid_param", "no", "top_k", 1000, false});
  CHECK(out == R"({"type":"error","id":"a","code":"invalid_param","message":"no","param":"top_k",)"
               R"("retry_after_ms":1000,"fatal":false})");
  out.clear();
  ws::append_closing(out, "shutdown", 30000);
  CHECK(out == R"({"type":"session.closing","reason":"shutdown","deadline_ms":30000})");
}

TEST_CASE("weir.v1: a delta says n only where it is not 1, and t and ids only where asked") {
  std::string out;
  ws::append_delta(out, {.id = "a", .text = "O\n", .seq = 1});
  CHECK(out == R"({"type":"response.delta","id":"a","seq":1,"delta":"O\n"})");
  out.clear();
  const core::token_id ids[] = {5, 6, 7};
  ws::append_delta(out, {.id = "a", .text = "", .seq = 4, .n = 3, .t_us = 1234, .token_ids = ids});
  CHECK(out == R"({"type":"response.delta","id":"a","seq":4,"n":3,"delta":"","t":1234,"token_ids":[5,6,7]})");
}

TEST_CASE("weir.v1: a padded delta has a multiple of 64 bytes, whatever its text") {
  std::set<std::size_t> sizes;
  std::string text;
  for (std::uint32_t i = 0; i < 300; ++i) {
    std::string out = "before";
    ws::append_delta(out, {.id = "a", .text = text, .seq = i + 1, .more_padding = i});
    const auto size = out.size() - 6;
    CHECK(size % 64 == 0);
    sizes.insert(size);
    CHECK(boost::json::parse(out.substr(6)).at("delta").as_string() == text);
    text += i % 7 ? "x" : "\n";
  }
  CHECK(sizes.size() > 5);
}

TEST_CASE("weir.v1: metadata is an object of at most 4 KiB, and no other field of a frame") {
  CHECK(created_with(R"("metadata":{"user":"x","n":[1,2]})").metadata == R"({"user":"x","n":[1,2]})");
  CHECK(created_with(R"("metadata":null)").metadata.empty());
  CHECK(refused_with(R"("metadata":{"a":")" + std::string(4096, 'x') + "\"}").param == "metadata");
}

TEST_CASE("weir.v1: done carries status, reason, usage, timing and the fault") {
  actors::outcome how;
  how.reason = core::finish_reason::timeout;
  how.input_tokens = 3;
  how.output_tokens = 5;
  how.cached_tokens = 1;
  how.queue_ms = 0.25;
  how.decode_ms = 100;
  std::string out;
  ws::append_done(out, {"a", "r"}, 4, how);
  CHECK(out == R"({"type":"response.done","id":"a","response_id":"r","seq":4,"status":"incomplete",)"
               R"("finish_reason":"timeout","usage":{"input_tokens":3,"output_tokens":5,"cached_tokens":1},)"
               R"("timing":{"queue_ms":0.25,"prefill_ms":0,"ttft_ms":0,"decode_ms":100,"max_gap_ms":0}})");
  how.reason = core::finish_reason::error;
  how.fault = core::error{core::errc::internal, "the device failed", ""};
  out.clear();
  ws::append_done(out, {"a", "r"}, 4, how);
  auto done = boost::json::parse(out).as_object();
  CHECK(done.at("status") == "failed");
  CHECK(done.at("error").at("code") == "internal");
  CHECK(done.at("error").at("message") == "the device failed");
}

TEST_CASE("weir.v1: every error of ours has one of the wire's codes") {
  using core::errc;
  const std::pair<errc, const char*> rows[] = {
      {errc::invalid_param, "invalid_param"},
      {errc::not_supported, "invalid_param"},
      {errc::prompt_too_long, "prompt_too_long"},
      {errc::does_not_fit, "prompt_too_long"},
      {errc::model_not_found, "model_not_found"},
      {errc::not_found, "not_found"},
      {errc::overloaded, "overloaded"},
      {errc::unavailable, "overloaded"},
      {errc::bad_file, "internal"},
      {errc::internal, "internal"},
  };
  for (const auto& [code, name] : rows) CHECK(ws::code_of(code) == name);
  const std::pair<errc, std::string_view> of_model[] = {{errc::unavailable, "model_loading"},
                                                        {errc::does_not_fit, "does_not_fit"},
                                                        {errc::overloaded, "model_line_full"},
                                                        {errc::busy, "other_model_loading"}};
  for (const auto& [code, name] : of_model) {
    CHECK(ws::refusal("a", core::error{code, "no", "model"}).code == name);
    CHECK(ws::refusal("a", core::error{code, "no", "prompt"}).code == ws::code_of(code));
  }
  CHECK(!ws::refusal("a", core::error{errc::does_not_fit, "no", "model"}).retry_after_ms.has_value());
  CHECK(ws::refusal("a", core::error{errc::does_not_fit, "no", "model", 10'000}).retry_after_ms == 10'000);
  CHECK(ws::refusal("a", core::error{errc::overloaded, "full", ""}).retry_after_ms == 1000);
  CHECK(ws::refusal("a", core::error{errc::overloaded, "full", "", 2300}).retry_after_ms == 2300);
  CHECK(!ws::refusal("a", core::error{errc::invalid_param, "no", "x"}).retry_after_ms.has_value());
}

TEST_CASE("weir.v1: response.resume names its lane, its job and the last seq that was seen") {
  const auto frame = [](std::string_view fields) {
    return R"({"type":"response.resume",)" + std::string(fields) + "}";
  };
  const auto read = [&](std::string_view fields) { return as<ws::response_resume>(frame(fields)); };
  const auto least = read(R"("id":"a","response_id":"r1","after":0)");
  CHECK(least.id == "a");
  CHECK(least.response_id == "r1");
  CHECK(least.after == 0);
  const ws::follow_options created{.timing = true, .pad = true, .window = 7};
  CHECK(least.how.over(created).timing);
  CHECK(least.how.over(created).window == 7);
  CHECK_FALSE(least.how.over(created).even);
  const auto all = read(R"("id":"a","response_id":"r1","after":5000000000,"timing":false,)"
                        R"("return_token_ids":true,"window":9,"pace":"even","pad":false,"unknown":1)");
  CHECK(all.after == 5'000'000'000);
  const auto how = all.how.over(created);
  CHECK_FALSE(how.timing);
  CHECK(how.return_token_ids);
  CHECK_FALSE(how.pad);
  CHECK(how.even);
  CHECK(how.window == 9);
  const auto as_null = read(R"("id":"a","response_id":"r1","after":1,"timing":null,"window":null)");
  CHECK(as_null.how.over(created).timing);
  CHECK(as_null.how.over(created).window == 7);
  const std::pair<const char*, const char*> wrong[] = {
      {R"("response_id":"r1","after":0)", "id"},
      {R"("id":"a b","response_id":"r1","after":0)", "id"},
      {R"("id":"a","after":0)", "response_id"},
      {R"("id":"a","response_id":7,"after":0)", "response_id"},
      {R"("id":"a","response_id":"r1")", "after"},
      {R"("id":"a","response_id":"r1","after":-1)", "after"},
      {R"("id":"a","response_id":"r1","after":"1")", "after"},
      {R"("id":"a","response_id":"r1","after":1.5)", "after"},
      {R"("id":"a","response_id":"r1","after":null)", "after"},
      {R"("id":"a","response_id":"r1","after":0,"timing":1)", "timing"},
      {R"("id":"a","response_id":"r1","after":0,"return_token_ids":"yes")", "return_token_ids"},
      {R"("id":"a","response_id":"r1","after":0,"window":0)", "window"},
      {R"("id":"a","response_id":"r1","after":0,"pace":"odd")", "pace"},
      {R"("id":"a","response_id":"r1","after":0,"pad":1)", "pad"},
  };
  for (const auto& [fields, param] : wrong) {
    CAPTURE(fields);
    const auto e = as<ws::protocol_error>(frame(fields));
    CHECK(e.code == "invalid_param");
    CHECK(e.param == param);
  }
}

TEST_CASE("weir.v1: response.resumed says where the client is and where the job is") {
  std::string out;
  ws::append_resumed(out, {"a2", "r1"}, 4, 31, "in_progress");
  CHECK(out == R"({"type":"response.resumed","id":"a2","response_id":"r1","after":4,"seq":31,)"
               R"("status":"in_progress"})");
}

}  // namespace weir::tests::ws_protocol_test
