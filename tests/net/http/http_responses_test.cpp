// /v1/responses over HTTP: what is kept and for whom, responses that go on with others, answers in the
// background, and events that are read again.
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <random>

#include "tests/support/http_client.h"
#include "tests/support/plain_http.h"
#include "tests/support/raw_client.h"
#include "tests/support/seed.h"
#include "tests/support/server_fixture.h"
#include "tests/support/sse.h"

namespace weir::tests::http_responses_test {

namespace json = boost::json;
using std::chrono::milliseconds;

namespace {

constexpr const char* path = "/v1/responses";

std::string text_at(const json::value& v, const char* key) { return std::string(v.at(key).as_string()); }

std::string code_in(const http_answer& a) {
  const auto code = a.error().at("code");
  return code.is_string() ? std::string(code.as_string()) : std::string();
}

std::string body(std::string_view input, std::string_view more = {}) {
  return fmt::format(R"({{"input":"{}","max_output_tokens":5{}{}}})", input, more.empty() ? "" : ",", more);
}

// A response that was made, and answered with 200.
json::object make(http_client& c, const std::string& text, std::string_view headers = {}) {
  const auto a = c.post(path, text, headers);
  INFO(a.body());
  REQUIRE(a.status == 200);
  return a.json().as_object();
}

std::string at(const json::object& response) { return std::string(path) + "/" + text_at(response, "id"); }

std::string going_on(const json::object& with) {
  return fmt::format(R"("previous_response_id":"{}")", text_at(with, "id"));
}

json::value items_of(http_client& c, const json::object& response, std::string_view query = {}) {
  const auto a = c.get(fmt::format("{}/input_items{}", at(response), query));
  INFO(a.body());
  REQUIRE(a.status == 200);
  return a.json();
}

constexpr const char* endless = R"("max_output_tokens":100000,"seed":4)";

std::string without_end(std::string_view more) {
  return fmt::format(R"({{"input":"x",{},{}}})", endless, more);
}

// Polls as clients do.
json::object until_ended(server_fixture& f, http_client& c, const std::string& target) {
  json::object last;
  f.until([&] {
    const auto a = c.get(target);
    REQUIRE(a.status == 200);
    last = a.json().as_object();
    return last.at("status") != "queued" && last.at("status") != "in_progress";
  });
  return last;
}

std::string plain_post(const std::string& text) { return plain_request("POST", path, {}, text); }

std::string plain_follow(const std::string& id, std::int64_t after) {
  return plain_request("GET", fmt::format("{}/{}?stream=true&starting_after={}", path, id, after));
}

// The whole events of a stream that may be cut.
std::string whole_part(const std::string& stream) {
  const auto end = stream.rfind("\n\n");
  return end == stream.npos ? std::string() : stream.substr(0, end + 2);
}

}  // namespace

TEST_CASE("responses: a response is kept, read again, gone on with and deleted") {
  server_fixture f;
  http_client c(f.port());
  const auto first = make(c, body("hello", R"("instructions":"be brief","metadata":{"a":"b"})"));
  const auto again = c.get(at(first));
  CHECK(again.status == 200);
  CHECK(again.json() == json::value(first));
  CHECK(first.at("store") == true);

  const auto second = make(c, body("and then?", going_on(first)));
  CHECK(second.at("previous_response_id") == first.at("id"));
  const auto said = first.at("output").at(0);
  const auto whole_history =
      json::object{{"store", false},
                   {"max_output_tokens", 5},
                   {"input", json::array{json::object{{"role", "user"}, {"content", "hello"}}, said,
                                         json::object{{"role", "user"}, {"content", "and then?"}}}}};
  const auto same = make(c, json::serialize(whole_history));
  CHECK(second.at("usage").at("input_tokens") == same.at("usage").at("input_tokens"));
  CHECK(c.get(at(same)).status == 404);  // store was false

  const auto third = make(c, body("go on", going_on(second)));
  CHECK(third.at("usage").at("input_tokens").as_int64() > second.at("usage").at("input_tokens").as_int64());

  const auto deleted = c.ask("DELETE", at(second), {}, {});
  CHECK(deleted.status == 200);
  CHECK(deleted.json().at("deleted") == true);
  CHECK(c.ask("DELETE", at(second), {}, {}).status == 404);
  CHECK(c.get(at(second)).status == 404);
  CHECK(code_in(c.get(at(second))) == "not_found");
  CHECK(c.get(at(second) + "?stream=true").status == 404);
  const auto orphan = c.post(path, body("x", going_on(third)));  // what it went on with has gone
  CHECK(orphan.status == 400);
  CHECK(code_in(orphan) == "previous_response_not_found");
  CHECK(orphan.error().at("param") == "previous_response_id");
}

TEST_CASE("responses: a kept response is its key's alone, and no admin's") {
  server_options o;
  o.net.api_keys = {"alice", "bob", net::api_key("root", {.admin = true})};
  server_fixture f(o);
  http_client c(f.port());
  const auto by = [](const char* key) { return fmt::format("Authorization: Bearer {}\r\n", key); };
  const auto kept = make(c, body("a secret"), by("alice"));
  const auto runs = make(c, without_end(R"("background":true)"), by("alice"));
  for (const char* other : {"bob", "root"}) {
    CAPTURE(other);
    for (const auto& response : {kept, runs}) {
      CHECK(c.get(at(response), by(other)).status == 404);
      CHECK(c.get(at(response) + "?stream=true", by(other)).status == 404);
      CHECK(c.get(at(response) + "/input_items", by(other)).status == 404);
      CHECK(c.ask("DELETE", at(response), {}, by(other)).status == 404);
      CHECK(c.post(at(response) + "/cancel", "{}", by(other)).status == 404);
    }
    CHECK(c.post(path, body("x", going_on(kept)), by(other)).status == 400);
    const auto reference = fmt::format(R"({{"input":[{{"type":"item_reference","id":"{}"}}]}})",
                                       text_at(kept.at("output").at(0), "id"));
    CHECK(c.post(path, reference, by(other)).status == 400);
  }
  CHECK(c.get(at(kept), by("alice")).status == 200);
  CHECK(c.get(at(runs), by("alice")).json().at("status") == "in_progress");
  CHECK(c.post(at(runs) + "/cancel", "{}", by("alice")).status == 200);
  CHECK(c.get(at(kept)).status == 401);
}

TEST_CASE("responses: input items come in pages") {
  server_fixture f;
  http_client c(f.port());
  const auto r =
      make(c, R"({"max_output_tokens":2,"input":[{"role":"user","content":"1"},{"id":"mine","role":"user",)"
              R"("content":"2"},{"role":"user","content":"3"}]})");
  const auto newest = items_of(c, r);
  REQUIRE(newest.at("data").as_array().size() == 3);
  CHECK(newest.at("data").at(0).at("content") == "3");
  CHECK(newest.at("has_more") == false);
  const auto page = items_of(c, r, "?order=asc&limit=1&after=mine");
  REQUIRE(page.at("data").as_array().size() == 1);
  CHECK(page.at("data").at(0).at("content") == "3");
  CHECK(items_of(c, r, "?order=asc&limit=2").at("has_more") == true);
  const struct {
    const char *query, *param;
  } wrong[] = {{"?limit=0", "limit"},  {"?limit=101", "limit"}, {"?limit=x", "limit"},
               {"?limit=-1", "limit"}, {"?order=up", "order"},  {"?after=nothing", "after"}};
  for (const auto& w : wrong) {
    CAPTURE(w.query);
    const auto a = c.get(at(r) + "/input_items" + w.query);
    CHECK(a.status == 400);
    CHECK(a.error().at("param") == w.param);
  }
  CHECK(c.get(std::string(path) + "/resp_00000000000000000000000000000000/input_items").status == 404);
}

TEST_CASE("responses: an item is named by its id, in the conversation or in another response") {
  server_fixture f;
  http_client c(f.port());
  const auto first = make(c, body("hello"));
  const auto id = text_at(first.at("output").at(0), "id");
  const auto refer = [&](const std::string& name, const std::string& more) {
    return fmt::format(
        R"({{"max_output_tokens":2,"input":[{{"type":"item_reference","id":"{}"}},{{"role":"user",)"
        R"("content":"y"}}]{}}})",
        name, more);
  };
  const auto by_output = make(c, refer(id, ""));
  const auto items = items_of(c, by_output, "?order=asc");
  CHECK(items.at("data").at(0) == first.at("output").at(0));
  const auto own = text_at(items_of(c, first).at("data").at(0), "id");
  CHECK(c.post(path, refer(own, "," + going_on(first))).status == 200);
  for (const auto& unknown : {own, std::string("msg_00000000000000000000000000000000_0"), std::string("x")}) {
    CAPTURE(unknown);
    const auto a = c.post(path, refer(unknown, ""));
    CHECK(a.status == 400);
    CHECK(a.error().at("param") == "input[0].id");
  }
}

TEST_CASE("responses: what is not kept cannot be gone on with") {
  SECTION("an unknown id") {
    server_fixture f;
    http_client c(f.port());
    for (const char* id : {"resp_00000000000000000000000000000000", "x", "resp_"}) {
      const auto a = c.post(path, body("x", fmt::format(R"("previous_response_id":"{}")", id)));
      CHECK(a.status == 400);
      CHECK(code_in(a) == "previous_response_not_found");
    }
  }
  SECTION("its time is over") {
    server_options o;
    o.net.limits.store = milliseconds(1);
    server_fixture f(o);
    http_client c(f.port());
    const auto first = make(c, body("x"));
    f.until([&] { return c.get(at(first)).status == 404; });
    CHECK(code_in(c.post(path, body("x", going_on(first)))) == "previous_response_not_found");
  }
  SECTION("nothing is kept") {
    server_options o;
    o.net.limits.store_mb = 0;
    server_fixture f(o);
    http_client c(f.port());
    const auto first = make(c, body("x"));
    CHECK(c.get(at(first)).status == 404);
    CHECK(c.post(path, body("x", R"("background":true)")).error().at("param") == "background");
  }
  SECTION("the conversation is longer than a body may be") {
    server_options o;
    o.net.limits.body_bytes = 20'000;
    server_fixture f(o);
    http_client c(f.port());
    const auto first = make(c, body(std::string(15'000, 'a')));
    const auto second = make(c, body(std::string(15'000, 'b'), going_on(first)));
    const auto a = c.post(path, body("x", going_on(second)));
    CHECK(a.status == 400);
    CHECK(a.error().at("param") == "previous_response_id");
    CHECK(text_at(a.error(), "message").find("over 20000") != std::string::npos);
  }
}

TEST_CASE("responses: a long conversation is made in the text pool, and its memory is given back") {
  server_fixture f;
  std::uint64_t before = 0;
  {
    http_client c(f.port());
    CHECK(c.get("/health/live").status == 200);
    before = f.service->memory()->used();
    const auto first = make(c, body(std::string(60'000, 'a')));
    const auto second = make(c, body(std::string(60'000, 'b'), going_on(first)));
    CHECK(f.service->memory()->used() > before + 120'000);
    for (const auto& r : {first, second}) CHECK(c.ask("DELETE", at(r), {}, {}).status == 200);
    f.until([&] { return f.service->memory()->used() <= before; });
  }
  f.until_quiet();
}

TEST_CASE("responses: an answer in the background is polled, and cancelled") {
  server_fixture f(slow());
  http_client c(f.port());
  const auto begun = make(c, without_end(R"("background":true)"));
  CHECK(begun.at("status") == "in_progress");
  CHECK(begun.at("background") == true);
  CHECK(begun.at("output").as_array().empty());
  CHECK(c.get(at(begun)).json().at("status") == "in_progress");
  CHECK(items_of(c, begun).at("data").as_array().size() == 1);
  const auto busy = c.ask("DELETE", at(begun), {}, {});
  CHECK(busy.status == 409);
  CHECK(code_in(c.post(path, body("x", going_on(begun)))) == "previous_response_not_found");

  f.until([&] { return f.service->stats().engine.decoding == 1; });
  const auto cancelled = c.ask("POST", at(begun) + "/cancel", {}, {});
  INFO(cancelled.body());
  CHECK(cancelled.status == 200);
  CHECK(cancelled.json().at("status") == "cancelled");
  CHECK(c.get(at(begun)).json() == cancelled.json());
  CHECK(c.post(at(begun) + "/cancel", "{}").json() == cancelled.json());
  CHECK(c.post(std::string(path) + "/resp_00000000000000000000000000000000/cancel", "{}").status == 404);
  f.until_quiet();
}

TEST_CASE("responses: an answer in the background ends by itself, like one that is waited for") {
  server_fixture f;
  http_client c(f.port());
  const auto begun = make(c, body("x", R"("background":true,"seed":3)"));
  const auto ended = until_ended(f, c, at(begun));
  const auto waited = make(c, body("x", R"("seed":3)"));
  CHECK(ended.at("output").at(0).at("content") == waited.at("output").at(0).at("content"));
  CHECK(ended.at("status") == waited.at("status"));
  CHECK(ended.at("usage").at("output_tokens") == 5);
  const auto next = make(c, body("y", going_on(begun)));
  CHECK(next.at("usage").at("input_tokens").as_int64() > 5);
  const auto refused = c.post(path, R"({"input":"x","background":true,"temperature":9})");
  CHECK(refused.status == 400);
  CHECK(refused.error().at("param") == "temperature");
}

TEST_CASE("responses: a background answer that nobody asks for is cancelled after the grace, and is kept") {
  auto o = slow();
  o.net.limits.detach_grace = milliseconds(200);
  server_fixture f(o);
  http_client c(f.port());
  const auto left = make(c, without_end(R"("background":true)"));
  f.until([&] {
    const auto jobs = f.list_jobs();
    return jobs.size() == 1 && jobs.front().finish_reason == "cancel";
  });
  CHECK(until_ended(f, c, at(left)).at("status") == "cancelled");
}

TEST_CASE("responses: fields that go together") {
  server_fixture f;
  http_client c(f.port());
  const struct {
    const char *fields, *param;
  } rows[] = {{R"("background":true,"store":false)", "background"},
              {R"("on_disconnect":"continue","store":false)", "on_disconnect"}};
  for (const auto& r : rows) {
    CAPTURE(r.fields);
    const auto a = c.post(path, body("x", r.fields));
    CHECK(a.status == 400);
    CHECK(a.error().at("param") == r.param);
  }
}

TEST_CASE("responses: cut at any byte again and again, a stream goes on without gap or repeat") {
  const char* how = GENERATE(R"("on_disconnect":"continue")", R"("background":true)");
  server_options o;
  o.sim = "rate=700,prefill=100000000";
  o.shards = 3;
  server_fixture f(o);
  std::mt19937_64 draw(drawn_seed(7));
  const auto asked = fmt::format(R"({{"input":"x","max_output_tokens":250,"stream":true,{}}})", how);
  const auto cut = [&] { return 1000 + draw() % 6000; };
  std::string all = whole_part(plain_body(f.port(), plain_post(asked), cut()));
  REQUIRE(all.find("\"id\":\"") != all.npos);
  const auto id = all.substr(all.find("resp_"), 37);
  const auto count = [&] { return static_cast<std::int64_t>(whole_events(all).size()); };
  int cuts = 0;
  for (; all.find("event: response.incomplete") == all.npos; ++cuts) {
    std::string more = plain_body(f.port(), plain_follow(id, count() - 1), cut());
    if (more.starts_with(": begun\n\n")) more.erase(0, 9);
    all += whole_part(more);
  }
  CHECK(cuts > 3);
  std::int64_t number = 0;
  std::string text;
  for (const auto& e : whole_events(all)) {
    const auto said = json::parse(e.data);
    CHECK(said.at("sequence_number") == number++);
    if (e.type == "response.output_text.delta") text += text_at(said, "delta");
  }
  CHECK(text.size() == 5 * 250);
  http_client c(f.port());
  const auto again = c.get(fmt::format("{}/{}?stream=true", path, id));
  CHECK(again.header("Content-Type") == "text/event-stream");
  CHECK(again.body() == all);
  const auto kept = c.get(fmt::format("{}/{}", path, id)).json();
  CHECK(json::parse(whole_events(all).back().data).at("response") == kept);
  const auto tail =
      event_data(c.get(fmt::format("{}/{}?stream=true&starting_after={}", path, id, number - 2)).body());
  CHECK(tail.size() == 1);
  CHECK(c.ask("HEAD", fmt::format("{}/{}?stream=true", path, id), {}, {}).status == 200);
  CHECK(c.get("/health/live").status == 200);  // the connection goes on
}

TEST_CASE("responses: what cannot be followed is refused, and the refusal says why") {
  auto o = slow();
  o.net.limits.followers = 2;
  server_fixture f(o);
  http_client c(f.port());
  const auto runs = make(c, without_end(R"("background":true)"));
  const auto ended = make(c, R"({"input":"x","max_output_tokens":1})");
  for (const char* wrong : {"x", "1x", "-1", "99999999999999999999"}) {
    CAPTURE(wrong);
    const auto a = c.get(fmt::format("{}?stream=true&starting_after={}", at(runs), wrong));
    CHECK(a.status == 400);
    CHECK(a.error().at("param") == "starting_after");
  }
  const auto gone = c.get(at(ended) + "?stream=true");  // its connection waited for it, and has its answer
  CHECK(gone.status == 404);
  CHECK(code_in(gone) == "resume_expired");
  CHECK(c.get("/v1/jobs/" + text_at(runs, "id") + "/events").status == 404);
  raw_client one(f.port()), other(f.port());
  for (auto* follower : {&one, &other}) {
    follower->send("GET " + at(runs) + "?stream=true HTTP/1.1\r\nHost: localhost\r\n\r\n");
    follower->read_until("data: ");
  }
  const auto crowded = c.get(at(runs) + "?stream=true");
  CHECK(crowded.status == 429);
  CHECK(code_in(crowded) == "too_many_jobs");
  REQUIRE(c.post(at(runs) + "/cancel", "{}").status == 200);  // who ends it is not one more
  CHECK(one.read_until("event: response.incomplete").find("\"cancelled\"") != std::string::npos);
}

}  // namespace weir::tests::http_responses_test
