// The WebSocket mode of /v1/responses: the events of one response after the other, what a connection
// remembers, and how it ends.
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "net/ws/response_frames.h"
#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/ws_client.h"

namespace weir::tests::response_socket_test {

namespace json = boost::json;
using std::chrono::milliseconds;

namespace {

std::string text_at(const json::value& v, const char* key) { return std::string(v.at(key).as_string()); }

ws_options plain(std::string authorization = {}) {
  ws_options o;
  o.path = "/v1/responses";
  o.protocols.clear();
  o.authorization = std::move(authorization);
  return o;
}

std::string ask(std::string_view input, std::string_view more = {}) {
  return fmt::format(R"({{"type":"response.create","input":"{}","max_output_tokens":5{}{}}})", input,
                     more.empty() ? "" : ",", more);
}

// Reads the events of one response to the end of it, and returns the response object.
json::object read_response(ws_client& c, std::size_t* events = nullptr) {
  for (std::int64_t number = 0;; ++number) {
    const auto event = c.read();
    INFO(json::serialize(event));
    REQUIRE(event.at("type") != "error");
    CHECK(event.at("sequence_number") == number);
    if (events) ++*events;
    const std::string type = text_at(event, "type");
    if (type == "response.completed" || type == "response.incomplete" || type == "response.failed")
      return event.at("response").as_object();
  }
}

json::object read_error(ws_client& c) {
  const auto event = c.read();
  INFO(json::serialize(event));
  REQUIRE(event.at("type") == "error");
  CHECK(event.at("error").at("code") == event.at("code"));
  CHECK(event.at("error").at("message") == event.at("message"));
  return event;
}

std::string going_on(const json::object& with, std::string_view more = {}) {
  return fmt::format(R"("previous_response_id":"{}"{}{})", text_at(with, "id"), more.empty() ? "" : ",",
                     more);
}

constexpr const char* unstored = R"("store":false)";
constexpr const char* endless =
    R"({"type":"response.create","input":"x","max_output_tokens":100000,"store":false})";

}  // namespace

TEST_CASE("response socket: frames of events") {
  std::string out;
  net::append_event_frames(out, ": begun\n\nevent: a\ndata: {\"x\":1}\n\n: k\n\nevent: b\ndata: {}\n\n");
  CHECK(out == "\x81\x07{\"x\":1}\x81\x02{}");
  for (const std::size_t size : {0, 125, 126, 65535, 65536}) {
    out.clear();
    net::append_text_frame(out, std::string(size, 'a'));
    CHECK(out.size() == size + (size < 126 ? 2 : size <= 65535 ? 4 : 10));
    CHECK(static_cast<unsigned char>(out[1]) == (size < 126 ? size : size <= 65535 ? 126 : 127));
  }
}

TEST_CASE("response socket: responses follow one another, and are those of a POST") {
  server_fixture f;
  ws_client c(f.port(), plain());
  CHECK(c.status() == 101);
  http_client h(f.port());
  std::size_t events = 0;
  c.send(ask("hello", R"("seed":3,"stream":true)"));
  const auto first = read_response(c, &events);
  CHECK(events > 8);
  const auto posted = h.post("/v1/responses", R"({"input":"hello","max_output_tokens":5,"seed":3})").json();
  CHECK(first.at("output").at(0).at("content") == posted.at("output").at(0).at("content"));
  CHECK(h.get("/v1/responses/" + text_at(first, "id")).json() == json::value(first));

  c.send(ask("and then?", going_on(first)));
  c.send(ask("go on"));  // waits for its turn
  const auto second = read_response(c);
  CHECK(second.at("usage").at("input_tokens").as_int64() > first.at("usage").at("input_tokens").as_int64());
  read_response(c);
  c.close();
  f.until_quiet();
}

TEST_CASE("response socket: the last response is remembered, though it is not stored") {
  server_fixture f;
  ws_client c(f.port(), plain());
  http_client h(f.port());
  c.send(ask("one", unstored));
  const auto one = read_response(c);
  CHECK(h.get("/v1/responses/" + text_at(one, "id")).status == 404);
  c.send(ask("two", going_on(one, unstored)));
  const auto two = read_response(c);
  c.send(ask("three", going_on(two, unstored)));
  const auto three = read_response(c);
  const auto user = [](const char* said) { return json::object{{"role", "user"}, {"content", said}}; };
  const json::object whole{{"store", false},
                           {"max_output_tokens", 5},
                           {"input", json::array{user("one"), one.at("output").at(0), user("two"),
                                                 two.at("output").at(0), user("three")}}};
  const auto same = h.post("/v1/responses", json::serialize(whole)).json();
  CHECK(three.at("usage").at("input_tokens") == same.at("usage").at("input_tokens"));
  SECTION("the one before it is not") {
    c.send(ask("x", going_on(one, unstored)));
    const auto no = read_error(c);
    CHECK(no.at("status") == 400);
    CHECK(no.at("code") == "previous_response_not_found");
    c.send(ask("x", going_on(three, unstored)));  // a refusal forgets nothing
    read_response(c);
  }
  SECTION("items are named by their ids") {
    const auto id = text_at(one.at("output").at(0), "id");
    c.send(fmt::format(R"({{"type":"response.create","input":[{{"type":"item_reference","id":"{}"}}],)"
                       R"("max_output_tokens":2,{}}})",
                       id, going_on(three, unstored)));
    read_response(c);
  }
  SECTION("another connection knows nothing of it") {
    ws_client other(f.port(), plain());
    other.send(ask("x", going_on(three, unstored)));
    CHECK(read_error(other).at("code") == "previous_response_not_found");
  }
  SECTION("it may go on with one that is stored") {
    const auto stored =
        h.post("/v1/responses", R"({"input":"hello","max_output_tokens":5})").json().as_object();
    c.send(ask("x", going_on(stored, unstored)));
    const auto next = read_response(c);
    c.send(ask("y", going_on(next, unstored)));
    CHECK(read_response(c).at("usage").at("input_tokens").as_int64() >
          next.at("usage").at("input_tokens").as_int64());
  }
}

TEST_CASE("response socket: generate false prepares what later responses go on with") {
  const std::string store = GENERATE(R"("store":false)", R"("store":true)");
  server_fixture f;
  ws_client c(f.port(), plain());
  http_client h(f.port());
  std::size_t events = 0;
  c.send(ask("a long context", R"("generate":false,)" + store));
  const auto prepared = read_response(c, &events);
  CHECK(events == 3);
  CHECK(prepared.at("status") == "completed");
  CHECK(prepared.at("output").as_array().empty());
  CHECK(prepared.at("usage").at("total_tokens") == 0);
  c.send(ask("and a question", going_on(prepared, store)));
  const auto answer = read_response(c);
  const auto same =
      h.post("/v1/responses",
             R"({"store":false,"max_output_tokens":5,"input":[{"role":"user","content":"a long context"},)"
             R"({"role":"user","content":"and a question"}]})")
          .json();
  CHECK(answer.at("usage").at("input_tokens") == same.at("usage").at("input_tokens"));
  const bool is_stored = store.ends_with("true");
  CHECK(h.get("/v1/responses/" + text_at(prepared, "id")).status == (is_stored ? 200 : 404));

  c.send(R"({"type":"response.create","instructions":"be brief","input":[],"generate":false})");
  const auto empty = read_response(c);
  c.send(ask("hello", going_on(empty)));
  read_response(c);
}

TEST_CASE("response socket: what is refused is one event, and the connection goes on") {
  server_fixture f;
  ws_client c(f.port(), plain());
  const struct {
    const char *message, *code, *param;
  } rows[] = {
      {"{", "invalid_param", nullptr},
      {"[]", "invalid_param", nullptr},
      {R"({"input":"x"})", "invalid_param", "type"},
      {R"({"type":"response.cancel"})", "invalid_param", "type"},
      {R"({"type":"response.create"})", "invalid_param", "input"},
      {R"({"type":"response.create","input":"x","generate":1})", "invalid_param", "generate"},
      {R"({"type":"response.create","input":"x","background":true})", "invalid_param", "background"},
      {R"({"type":"response.create","input":"x","temperature":9})", "invalid_param", "temperature"},
      {R"({"type":"response.create","input":"x","model":"none"})", "model_not_found", "model"},
      {R"({"type":"response.create","input":"x","previous_response_id":"resp_1"})",
       "previous_response_not_found", "previous_response_id"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.message);
    c.send(r.message);
    const auto no = read_error(c);
    CHECK(no.at("code") == r.code);
    CHECK((r.param ? no.at("error").at("param") == r.param : no.at("error").at("param").is_null()));
  }
  c.send_binary("x");
  CHECK(read_error(c).at("code") == "bad_message");
  c.send(ask("x"));
  read_response(c);
}

TEST_CASE("response socket: who may come in") {
  server_options o;
  o.net.api_keys = {"secret"};
  server_fixture f(o);
  const struct {
    const char *authorization, *origin, *protocols;
    unsigned status;
  } rows[] = {{"", "", "", 401},
              {"Bearer wrong", "", "", 401},
              {"Bearer secret", "", "", 101},
              {"Bearer secret", "https://elsewhere.example", "", 403},
              {"Bearer secret", "", "weir.v1", 400}};
  for (const auto& r : rows) {
    CAPTURE(r.authorization, r.origin, r.protocols);
    auto how = plain(r.authorization);
    how.origin = r.origin;
    how.protocols = r.protocols;
    ws_client c(f.port(), how);
    CHECK(c.status() == r.status);
    if (r.status != 101) continue;
    c.send(ask("x"));
    read_response(c);
    const auto none = f.server->set_keys(std::vector<net::api_key>{"secret", "other"});
    CHECK(none.removed == 0);
    c.send(ask("x"));
    read_response(c);
  }
  auto how = plain("Bearer secret");
  how.path = "/responses";
  ws_client c(f.port(), how);
  CHECK(c.status() == 101);
  f.server->set_keys(std::vector<net::api_key>{"other"});
  CHECK(c.until_closed() == 4401);
}

TEST_CASE("response socket: a client that leaves cancels its job, unless that is to go on") {
  server_fixture f(slow());
  http_client h(f.port());
  {
    ws_client c(f.port(), plain());
    c.send(endless);
    c.read("response.in_progress");
    f.until([&] { return f.service->stats().engine.decoding == 1; });
    GENERATE(0, 1) == 0 ? c.close() : c.drop();
  }
  f.until_quiet();
  std::string id;
  {
    ws_client c(f.port(), plain());
    c.send(R"({"type":"response.create","input":"x","max_output_tokens":100000,"on_disconnect":"continue"})");
    id = text_at(c.read("response.created").at("response"), "id");
    c.drop();
  }
  CHECK(h.get("/v1/responses/" + id).json().at("status") == "in_progress");
  CHECK(h.post("/v1/responses/" + id + "/cancel", "{}").json().at("status") == "cancelled");
}

TEST_CASE("response socket: messages are bounded in size, number and rate") {
  SECTION("a message is as long as a body may be") {
    server_options o;
    o.net.limits.body_bytes = 10'000;
    server_fixture f(o);
    ws_client c(f.port(), plain());
    c.send(ask(std::string(9'000, 'a')));
    read_response(c);
    c.send(ask(std::string(10'000, 'a')));
    CHECK(c.until_closed() == 1009);
  }
  SECTION("nine wait") {
    server_fixture f(slow());
    ws_client c(f.port(), plain());
    c.send(endless);
    c.read("response.in_progress");
    for (int i = 0; i < 9; ++i) c.send(ask("x"));
    CHECK(c.until_closed() == 4429);
  }
  SECTION("as many bytes wait as one message may have") {
    auto o = slow();
    o.net.limits.body_bytes = 10'000;
    server_fixture f(o);
    ws_client c(f.port(), plain());
    c.send(endless);
    c.read("response.in_progress");
    for (int i = 0; i < 2; ++i) c.send(ask(std::string(6'000, 'a')));
    CHECK(c.until_closed() == 4429);
  }
  SECTION("its age ends it, after the answer under way") {
    server_options o;
    o.net.limits.max_age = milliseconds(1500);
    o.net.limits.closing_notice = milliseconds(1300);
    server_fixture f(o);
    ws_client c(f.port(), plain());
    c.send(ask("x"));
    read_response(c);
    CHECK(read_error(c).at("code") == "websocket_connection_limit_reached");
    CHECK(c.until_closed() == 4441);
  }
}

TEST_CASE("response socket: a server that drains finishes the answer under way") {
  server_options o;
  o.sim = "rate=200,prefill=100000000";
  server_fixture f(o);
  ws_client c(f.port(), plain());
  c.send(R"({"type":"response.create","input":"x","max_output_tokens":100})");
  c.read("response.in_progress");
  f.server->drain([] {});
  CHECK(c.read("response.incomplete").at("response").at("usage").at("output_tokens") == 100);
  CHECK(c.until_closed() == 1001);
}

TEST_CASE("response socket: what it holds is given back") {
  server_fixture f;
  const auto before = f.service->memory()->used();
  {
    ws_client c(f.port(), plain());
    c.send(ask(std::string(50'000, 'a'), unstored));
    read_response(c);
    CHECK(f.service->memory()->used() > before + 50'000);
  }
  f.until([&] { return f.service->memory()->used() <= before; });
}

}  // namespace weir::tests::response_socket_test
