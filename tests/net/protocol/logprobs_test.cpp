// Logprobs on the wire: how they are asked for, and what each protocol shows of them.
#include "net/protocol/logprobs.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <numbers>

#include "net/protocol/openai.h"
#include "net/protocol/ws_protocol.h"
#include "tests/support/golden.h"
#include "tests/support/http_client.h"
#include "tests/support/sse.h"
#include "tests/support/toy_directory.h"
#include "tests/support/toy_tokenizer.h"
#include "tests/support/ws_talk.h"

namespace weir::tests::logprobs_test {

using namespace weir::net;
using openai::dialect;

namespace {

using fields = std::string;

// request::top_logprobs, or the field that is refused.
struct asked {
  std::optional<std::int64_t> top;
  std::string refused;
  bool operator==(const asked&) const = default;
};
asked none() { return {}; }
asked top(std::int64_t n) { return {n, {}}; }
asked refused(std::string field) { return {std::nullopt, std::move(field)}; }

asked of_body(dialect d, const fields& more) {
  const std::string input =
      d == dialect::chat ? R"("messages":[{"role":"user","content":"hi"}])" : R"("prompt":"hi")";
  const auto p = openai::parse(d, "{" + input + "," + more + "}");
  if (!p) return refused(p.error().param);
  return {p->request.top_logprobs, {}};
}

asked of_frame(const fields& more) {
  const auto m = ws::parse(R"({"type":"response.create","id":"a","input":"hi",)" + more + "}");
  if (const auto* no = std::get_if<ws::protocol_error>(&m)) return refused(no->param);
  return {std::get<ws::response_create>(m).request.top_logprobs, {}};
}

// A tokenizer with two halves of one character, two tokens `no`, and a special token.
const core::tokenizer& pieces() {
  static const auto t = std::make_shared<tests::toy_tokenizer>(
      std::vector<std::string>{" the", "\xe2\x80", "\x9c", "no", "\"\n", "no", "<end>"});
  return *t;
}

// ` the`, then the two halves of a quotation mark, then `no`.
actors::token_log quoted(std::uint32_t likeliest) {
  actors::token_log log;
  log.keep_logprobs(likeliest);
  const auto add = [&](core::token_id id, float logprob, std::string_view text, bool whole,
                       std::initializer_list<core::token_logprob> best) {
    core::draw_logprobs l;
    l.drawn = {id, logprob};
    for (const auto& e : best)
      if (l.count < likeliest) l.likeliest[l.count++] = e;
    log.append_logprobs(l);
    log.text() += text;
    log.append(id, 0, whole);
  };
  add(0, -0.25f, " the", true, {{0, -0.25f}, {4, -1.5f}});
  add(1, -2.5f, "", false, {{3, -0.5f}, {5, -0.75f}});
  add(2, -1e-6f, "\xe2\x80\x9c", true, {{2, -1e-6f}});
  add(3, -3.0f, "no", true, {{6, -0.125f}, {1, -4.0f}});
  return log;
}

std::string said(void (*append)(std::string&, const logprobs_part&), const logprobs_part& p) {
  std::string out;
  append(out, p);
  CHECK_NOTHROW(boost::json::parse(out));
  return out;
}

}  // namespace

TEST_CASE("logprobs: each protocol asks in its own way, and what does not go together is refused by name") {
  const struct {
    const char* more;
    asked chat, completion, socket;
  } rows[] = {
      {R"("logprobs":null)", none(), none(), none()},
      {R"("logprobs":false)", none(), refused("logprobs"), none()},
      {R"("logprobs":true)", top(0), refused("logprobs"), top(0)},
      {R"("logprobs":0)", refused("logprobs"), top(0), top(0)},
      {R"("logprobs":7)", refused("logprobs"), top(7), top(7)},
      {R"("logprobs":"yes")", refused("logprobs"), refused("logprobs"), refused("logprobs")},
      {R"("logprobs":1.5)", refused("logprobs"), refused("logprobs"), refused("logprobs")},
      {R"("logprobs":true,"top_logprobs":4)", top(4), refused("logprobs"), top(4)},
      {R"("top_logprobs":4,"logprobs":true)", top(4), refused("logprobs"), top(4)},
      {R"("logprobs":true,"top_logprobs":0)", top(0), refused("logprobs"), top(0)},
      {R"("logprobs":true,"top_logprobs":null)", top(0), refused("logprobs"), top(0)},
      {R"("top_logprobs":0)", none(), none(), none()},
      {R"("top_logprobs":2)", refused("top_logprobs"), refused("top_logprobs"), refused("top_logprobs")},
      {R"("logprobs":false,"top_logprobs":2)", refused("top_logprobs"), refused("logprobs"),
       refused("top_logprobs")},
      {R"("logprobs":3,"top_logprobs":2)", refused("logprobs"), refused("top_logprobs"),
       refused("top_logprobs")},
      {R"("logprobs":true,"top_logprobs":"2")", refused("top_logprobs"), refused("logprobs"),
       refused("top_logprobs")},
  };
  for (const auto& r : rows) {
    CAPTURE(r.more);
    CHECK(of_body(dialect::chat, r.more) == r.chat);
    CHECK(of_body(dialect::completion, r.more) == r.completion);
    CHECK(of_frame(r.more) == r.socket);
  }
}

TEST_CASE("logprobs: weir.v1 has an entry a token, with bytes where it is not UTF-8 by itself") {
  const auto log = quoted(2);
  CHECK(said(append_weir_logprobs, {&log, &pieces(), 0, 2, 0}) ==
        R"([{"id":0,"token":" the","logprob":-0.25,"top":[{"id":0,"token":" the","logprob":-0.25},)"
        R"({"id":4,"token":"\"\n","logprob":-1.5}]},)"
        "{\"id\":1,\"token\":\"\xEF\xBF\xBD\",\"logprob\":-2.5,\"bytes\":[226,128],"
        R"("top":[{"id":3,"token":"no","logprob":-0.5},{"id":5,"token":"no","logprob":-0.75}]}])");
  const auto alone = quoted(0);
  CHECK(said(append_weir_logprobs, {&alone, &pieces(), 3, 4, 0}) ==
        R"([{"id":3,"token":"no","logprob":-3}])");
}

TEST_CASE("logprobs: a chat has token, logprob and bytes of each, and a list that may be empty") {
  const auto log = quoted(2);
  CHECK(said(append_chat_logprobs, {&log, &pieces(), 2, 3, 0}) ==
        "{\"content\":[{\"token\":\"\xEF\xBF\xBD\",\"logprob\":-1e-06,\"bytes\":[156],"
        "\"top_logprobs\":[{\"token\":\"\xEF\xBF\xBD\",\"logprob\":-1e-06,\"bytes\":[156]}]}],"
        "\"refusal\":null}");
  const auto alone = quoted(0);
  CHECK(said(append_chat_logprobs, {&alone, &pieces(), 3, 4, 0}) ==
        R"({"content":[{"token":"no","logprob":-3,"bytes":[110,111],"top_logprobs":[]}],"refusal":null})");
  CHECK(said(append_chat_logprobs, {&log, &pieces(), 4, 4, 0}) == "null");
}

TEST_CASE("logprobs: a completion has lists, spells broken tokens in bytes, and counts characters") {
  const auto log = quoted(2);
  CHECK(said(append_completion_logprobs, {&log, &pieces(), 0, 4, 10}) ==
        R"({"tokens":[" the","bytes:\\xe2\\x80","bytes:\\x9c","no"],)"
        R"("token_logprobs":[-0.25,-2.5,-1e-06,-3],)"
        R"("top_logprobs":[{" the":-0.25,"\"\n":-1.5},{"no":-0.5,"bytes:\\xe2\\x80":-2.5},)"
        R"({"bytes:\\x9c":-1e-06},{"<end>":-0.125,"bytes:\\xe2\\x80":-4,"no":-3}],)"
        R"("text_offset":[10,14,14,15]})");
  CHECK(said(append_completion_logprobs, {&log, &pieces(), 4, 4, 0}) == "null");
}

TEST_CASE("logprobs: a log counts them as memory, and gives them with its parts") {
  const auto log = quoted(2);
  actors::token_log part, plain;
  part.append_part(log, 1, 3);
  part.append_part(log, 3, 4);
  REQUIRE(part.size() == 3);
  CHECK(part.logprobs_each() == 3);
  CHECK(part.logprobs(0)[0].id == 1);
  CHECK(part.logprobs(1)[1].id == 2);
  CHECK(part.logprobs(1)[2].id == -1);
  CHECK(part.logprobs(2)[2].logprob == -4.0f);
  CHECK(log.memory() >= 12 * sizeof(core::token_logprob));
  plain.append_part(actors::token_log(), 0, 0);
  CHECK_FALSE(plain.has_logprobs());
}

namespace {

// The payloads of a stream's events, without [DONE].
std::vector<boost::json::object> events_of(std::string_view body) {
  std::vector<boost::json::object> out;
  for (const auto& data : event_data(body))
    if (data != "[DONE]") out.push_back(boost::json::parse(data).as_object());
  return out;
}

void extend(boost::json::value& all, const boost::json::value& by) {
  for (const auto& item : by.as_array()) all.as_array().push_back(item);
}

}  // namespace

TEST_CASE("http: a completion's logprobs are the same streamed and not, and change no token") {
  server_fixture f;
  http_client c(f.port());
  const std::string body = R"({"prompt":"hello","max_tokens":40,"seed":7,"temperature":0.5,"top_k":3)";
  const auto whole = c.post("/v1/completions", body + R"(,"logprobs":2})").json().at("choices").at(0);
  CHECK(whole.at("text") == json_text(sim_text(7, 40)));
  const auto& l = whole.at("logprobs").as_object();
  for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"})
    CHECK(l.at(list).as_array().size() == 40);
  CHECK(l.at("tokens").at(3) == json_text(fmt::format("w{:03d} ", core::sim_token(7, 3))));
  CHECK(l.at("text_offset").at(3) == 15);
  CHECK(l.at("token_logprobs").at(3).as_double() == Approx(-std::numbers::ln2));
  REQUIRE(l.at("top_logprobs").at(3).as_object().size() == 2);
  CHECK(c.post("/v1/completions", body + "}").json().at("choices").at(0).at("logprobs").is_null());

  boost::json::object streamed;
  for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"})
    streamed[list] = boost::json::array();
  for (const auto& e :
       events_of(c.post("/v1/completions", body + R"(,"logprobs":2,"stream":true})").body())) {
    const auto& some = e.at("choices").at(0).at("logprobs");
    if (some.is_null()) continue;
    for (auto& [list, all] : streamed) extend(all, some.at(list));
  }
  CHECK(boost::json::value(streamed) == boost::json::value(l));
}

TEST_CASE("http: a chat's logprobs are the same streamed and not, for each of its choices") {
  server_fixture f;
  http_client c(f.port());
  const std::string body = R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":12,"seed":2,"n":2,)"
                           R"("logprobs":true,"top_logprobs":1)";
  const auto whole = c.post("/v1/chat/completions", body + "}").json();
  std::vector<boost::json::value> streamed(2, boost::json::array());
  for (const auto& e : events_of(c.post("/v1/chat/completions", body + R"(,"stream":true})").body())) {
    const auto& choice = e.at("choices").at(0);
    if (const auto& some = choice.at("logprobs"); !some.is_null())
      extend(streamed.at(choice.at("index").to_number<std::size_t>()), some.at("content"));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& l = whole.at("choices").at(i).at("logprobs");
    CHECK(l.at("refusal").is_null());
    REQUIRE(l.at("content").as_array().size() == 12);
    CHECK(l.at("content") == streamed[i]);
    std::string text;
    for (const auto& item : l.at("content").as_array()) {
      text += std::string_view(item.at("token").as_string());
      CHECK(item.at("top_logprobs").as_array().size() == 1);
    }
    CHECK(whole.at("choices").at(i).at("message").at("content") == json_text(text));
  }
}

TEST_CASE("http: more than twenty logprobs are refused by the client's name of the field") {
  server_fixture f;
  http_client c(f.port());
  const auto chat = c.post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}],)"
                                                   R"("logprobs":true,"top_logprobs":21})");
  CHECK(chat.status == 400);
  CHECK(chat.error().at("param") == "top_logprobs");
  const auto completion = c.post("/v1/completions", R"({"prompt":"x","logprobs":-1})");
  CHECK(completion.status == 400);
  CHECK(completion.error().at("param") == "logprobs");
}

TEST_CASE("http: logprobs are the log-softmax of a reference model's golden logits") {
  const auto dir = tests::bundled_models().back();
  const tests::golden g = tests::read_golden(dir);
  tests::server_options o;
  o.model_dir = dir.string();
  o.owner.kv_tokens = 2048;
  server_fixture f(o);
  http_client c(f.port());
  for (const auto& wanted : g.at) {
    CAPTURE(wanted.position);
    boost::json::array prompt;
    for (std::size_t i = 0; i <= wanted.position; ++i) prompt.push_back(g.input_ids[i]);
    const auto answer = c.post(
        "/v1/completions", R"({"max_tokens":1,"ignore_eos":true,"temperature":0,"repetition_penalty":1.5,)"
                           R"("logprobs":20,"prompt":)" +
                               boost::json::serialize(prompt) + "}");
    REQUIRE(answer.status == 200);
    const auto l = answer.json().at("choices").at(0).at("logprobs");
    std::vector<double> got;
    const auto tops = l.at("top_logprobs").at(0);
    for (const auto& [token, logprob] : tops.as_object()) got.push_back(logprob.to_number<double>());
    REQUIRE(got.size() >= 20);
    for (std::size_t i = 0; i < 20; ++i) {
      CAPTURE(i);
      CHECK(std::abs(got[i] - wanted.logprobs[i]) <= 5e-5);
    }
  }
}

TEST_CASE("http: prompt_logprobs are those of a reference model, with ranks") {
  const auto dir = tests::bundled_models().back();
  const tests::golden g = tests::read_golden(dir);
  tests::server_options o;
  o.model_dir = dir.string();
  o.owner.kv_tokens = 2048;
  server_fixture f(o);
  http_client c(f.port());
  boost::json::array prompt(g.input_ids.begin(), g.input_ids.end());
  const std::string body =
      R"({"max_tokens":1,"n":2,"prompt_logprobs":20,"prompt":)" + boost::json::serialize(prompt);
  const auto answer = c.post("/v1/completions", body + "}");
  REQUIRE(answer.status == 200);
  const auto choices = answer.json().at("choices");
  const auto all = choices.at(0).at("prompt_logprobs").as_array();
  CHECK(choices.at(1).at("prompt_logprobs") == boost::json::value(all));
  REQUIRE(all.size() == g.input_ids.size());
  CHECK(all[0].is_null());
  for (const auto& wanted : g.at) {
    if (wanted.position + 1 == g.input_ids.size()) continue;
    CAPTURE(wanted.position);
    const auto& told = all[wanted.position + 1].as_object();
    CHECK(told.contains(std::to_string(g.input_ids[wanted.position + 1])));
    std::size_t ranks = 0;
    for (const auto& [id, entry] : told) {
      const auto rank = entry.at("rank").to_number<std::size_t>();
      CHECK(entry.at("decoded_token").is_string());
      if (rank > 20) continue;
      ++ranks;
      CHECK(std::abs(entry.at("logprob").to_number<double>() - wanted.logprobs[rank - 1]) <= 5e-5);
    }
    CHECK(ranks == 20);
  }
  const auto alone = c.post("/v1/completions", R"({"max_tokens":1,"prompt_logprobs":0,"prompt":[5]})").json();
  CHECK(alone.at("choices").at(0).at("prompt_logprobs") == boost::json::parse("[null]"));
  const auto many = c.post("/v1/completions", R"({"prompt_logprobs":21,"prompt":[5]})");
  CHECK(many.error().at("param") == "prompt_logprobs");
}

TEST_CASE("http: a simulated model gives a prompt no logprobs, and says so") {
  server_fixture f;
  http_client c(f.port());
  const auto no =
      c.post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}],"prompt_logprobs":1})");
  CHECK(no.status == 400);
  CHECK(no.error().at("param") == "prompt_logprobs");
}

namespace {

std::string resume(std::string_view response_id, std::uint64_t after) {
  return fmt::format(R"({{"type":"response.resume","id":"b","response_id":"{}","after":{}}})", response_id,
                     after);
}

// Reads a lane to its end. Returns the logprobs of its deltas, one entry for each token.
boost::json::array logprobs_of(ws_client& c, lane_reader& lane, std::size_t most_bytes = SIZE_MAX) {
  boost::json::array all;
  while (!lane.done) {
    const auto frame = c.read();
    const auto before = lane.seq;
    lane.take(frame);
    if (frame.at("type") != "response.delta") continue;
    CHECK(c.last.size() <= most_bytes);
    const auto& some = frame.at("logprobs").as_array();
    REQUIRE(some.size() == lane.seq - before);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace

TEST_CASE("weir.v1: deltas have the logprobs of their tokens, and who resumes sees them too") {
  tests::server_options o;
  o.sim = "rate=1000000,prefill=100000000";
  o.shards = 3;
  server_fixture f(o);
  ws_client c(f.port());
  c.read("session.created");
  c.send(create("a", R"("max_tokens":3000,"seed":9,"logprobs":20,"return_token_ids":true)"));
  const auto created = c.read("response.created");
  CHECK_FALSE(created.contains("ignored"));
  lane_reader lane;
  const auto all = logprobs_of(c, lane, 80000);
  CHECK(lane.text == sim_text(9, 3000));
  REQUIRE(all.size() == 3000);
  for (std::size_t i = 0; i < all.size(); ++i) {
    REQUIRE(all[i].at("id") == lane.ids[i]);
    REQUIRE(all[i].at("top").as_array().size() == 20);
    REQUIRE(all[i].at("top").at(0).at("token") == all[i].at("token"));
  }
  for (const std::uint64_t after : {0, 1777, 2999}) {
    ws_client again(f.port());
    again.read("session.created");
    again.send(resume(created.at("response_id").as_string(), after));
    CHECK(again.read().at("type") == "response.resumed");
    lane_reader rest;
    rest.seq = after;
    const auto seen = logprobs_of(again, rest, 80000);
    CHECK(boost::json::value(seen) ==
          boost::json::value(boost::json::array(all.begin() + std::ptrdiff_t(after), all.end())));
  }
}

TEST_CASE("weir.v1: logprobs stay with their tokens where characters and stop strings hold tokens back") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path());
  tests::server_options o;
  o.model_dir = dir.path().string();
  server_fixture f(o);
  const auto answer = [&](const std::string& more) {
    ws_client c(f.port());
    c.read("session.created");
    c.send(create("a", R"("max_tokens":200,"seed":3,"ignore_eos":true,"return_token_ids":true)" + more));
    c.read("response.created");
    lane_reader lane;
    if (more.find("logprobs") == more.npos) return std::pair(read_lane(c), boost::json::array());
    auto all = logprobs_of(c, lane);
    return std::pair(std::move(lane), std::move(all));
  };
  const auto plain = answer("").first;
  const auto whole_from = [&](std::size_t at) {  // where a character begins
    while ((static_cast<unsigned char>(plain.text.at(at)) & 0xC0) == 0x80) ++at;
    return at;
  };
  const std::size_t begin = whole_from(90), end = whole_from(begin + 2);
  const std::string stop =
      R"(,"stop":)" + boost::json::serialize(json_text(plain.text.substr(begin, end - begin)));
  for (const std::string& more : {std::string(), stop}) {
    const auto [lane, all] = answer(R"(,"logprobs":true)" + more);
    CHECK(lane.ids == answer(more).first.ids);
    REQUIRE(all.size() == lane.ids.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      CHECK(all[i].at("id") == lane.ids[i]);
      CHECK(all[i].at("logprob").to_number<double>() <= 0);
    }
  }
}

}  // namespace weir::tests::logprobs_test
