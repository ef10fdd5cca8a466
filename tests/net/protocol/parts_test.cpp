// Answers in parts: what a stream's events come to is what the whole answer says, however the log is cut into
// pieces, and from whatever token a stream goes on.
#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <random>

#include "core/text/answer/reader.h"
#include "net/protocol/anthropic.h"
#include "net/protocol/openai.h"
#include "net/protocol/ws_protocol.h"

namespace weir::tests::parts_test {
namespace {

namespace json = boost::json;
using namespace weir::net;

constexpr std::string_view answer =
    "<think>\nhm, \"ö\"\n</think>\n\nWell.\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"place\": "
    "\"K\\n\"}}\n"
    "</tool_call>\n<tool_call>\n{\"name\": \"run\", \"arguments\": {\"input\": "
    "\"a\\n\\\"b\\\"\"}}\n</tool_call>\nBye.";

core::tool_definition tool(const char* name, core::tool_definition::kind what) {
  core::tool_definition t;
  t.name = name;
  t.what = what;
  return t;
}

std::shared_ptr<const core::answer_plan> plan() {
  core::answer_format f;
  f.calls = *core::find_call_format("hermes");
  f.reasoning = {"<think>\n", "\n</think>\n\n"};
  auto p = std::make_shared<core::answer_plan>();
  p->format = std::make_shared<const core::known_format>(f, *core::make_sim_tokenizer());
  p->tools = {tool("look", core::tool_definition::kind::function),
              tool("run", core::tool_definition::kind::custom)};
  p->separate_reasoning = true;
  return p;
}

// The log of an answer whose tokens have `each` characters.
actors::token_log log_of(std::string_view text, std::size_t each) {
  actors::token_log log;
  log.keep_marks();
  core::answer_reader reader(plan());
  const auto name = [&] {
    for (std::size_t i = 0; i < log.marks().calls.size(); ++i)
      log.marks().calls[i].id = "call_" + std::to_string(i);
  };
  while (!text.empty()) {
    std::size_t n = std::min(each, text.size());
    while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) ++n;
    reader.take(log.size(), 0, text.substr(0, n), log.text(), log.marks());
    name();
    log.append(0, 0, reader.settled());
    text.remove_prefix(n);
  }
  reader.end(log.size() - 1, {}, log.text(), log.marks());
  log.close();
  return log;
}

struct piece_of_log {
  std::vector<actors::part_piece> parts;
  answer_piece news;
  piece_of_log(const actors::token_log& log, std::uint32_t from, std::uint32_t to) {
    log.each_part(from, to, [&](const actors::part_piece& p) { parts.push_back(p); });
    news.parts = parts;
    news.calls = log.marks().calls;
  }
};

std::string text_of(body_parts body) {
  std::string out;
  while (body.append(out)) {
  }
  return out;
}

std::vector<json::value> events_of(std::string_view stream) {
  std::vector<json::value> out;
  for (auto at = stream.find("data: "); at != stream.npos; at = stream.find("data: ", at)) {
    at += 6;
    const auto end = stream.find('\n', at);
    const auto data = stream.substr(at, end - at);
    if (data != "[DONE]") out.push_back(json::parse(json::string_view(data.data(), data.size())));
  }
  return out;
}

void add(json::object& to, const char* name, const json::value& text) {
  auto& old = to[name];
  if (!old.is_string()) old = "";
  old.get_string() += text.as_string();
}

// What a client of chat completions makes of the deltas.
json::object folded_chat(const std::vector<json::value>& events) {
  json::object message{{"role", "assistant"}, {"content", nullptr}, {"refusal", nullptr}};
  for (const auto& e : events) {
    const auto& delta = e.at("choices").at(0).at("delta").as_object();
    if (delta.contains("content") && !delta.at("content").as_string().empty())
      add(message, "content", delta.at("content"));
    if (delta.contains("reasoning_content")) add(message, "reasoning_content", delta.at("reasoning_content"));
    if (!delta.contains("tool_calls")) continue;
    if (!message.contains("tool_calls")) message["tool_calls"] = json::array();
    auto& calls = message["tool_calls"].as_array();
    for (const auto& c : delta.at("tool_calls").as_array()) {
      const auto index = static_cast<std::size_t>(c.at("index").as_int64());
      if (index == calls.size()) {
        auto first = c.as_object();
        first.erase("index");
        calls.push_back(first);
        continue;
      }
      REQUIRE(index + 1 == calls.size());
      const bool custom = c.as_object().contains("custom");
      const char* const kind = custom ? "custom" : "function";
      add(calls[index].as_object()[kind].as_object(), custom ? "input" : "arguments",
          c.at(kind).at(custom ? "input" : "arguments"));
    }
  }
  return message;
}

// What a client of messages makes of the events.
json::array folded_blocks(const std::vector<json::value>& events) {
  json::array blocks;
  std::vector<std::string> inputs;
  std::int64_t open = -1;
  for (const auto& e : events) {
    const auto type = e.at("type").as_string();
    if (type == "content_block_start") {
      CHECK(open == -1);
      open = e.at("index").as_int64();
      REQUIRE(static_cast<std::size_t>(open) == blocks.size());
      blocks.push_back(e.at("content_block"));
      inputs.emplace_back();
    } else if (type == "content_block_delta") {
      CHECK(e.at("index").as_int64() == open);
      const auto& d = e.at("delta").as_object();
      if (d.at("type") == "text_delta") add(blocks.back().as_object(), "text", d.at("text"));
      if (d.at("type") == "thinking_delta") add(blocks.back().as_object(), "thinking", d.at("thinking"));
      if (d.at("type") == "input_json_delta") inputs.back() += d.at("partial_json").as_string();
    } else if (type == "content_block_stop") {
      CHECK(e.at("index").as_int64() == open);
      open = -1;
    }
  }
  CHECK(open == -1);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i].at("type") == "tool_use") blocks[i].as_object()["input"] = json::parse(inputs[i]);
  return blocks;
}

actors::outcome ending(const actors::token_log& log) {
  actors::outcome how;
  how.calls = log.whole_calls();
  how.parts = log.parts();
  how.reasoning_tokens = log.reasoning_tokens();
  return how;
}

}  // namespace

TEST_CASE("parts: a chat's deltas come to the message, in pieces of any size") {
  std::mt19937 random(3);
  for (const std::size_t each : {1, 3, 7, 40}) {
    const auto log = log_of(answer, each);
    openai::choice c;
    c.log = &log;
    c.how = ending(log);
    const auto body = json::parse(
        text_of(openai::response_body(openai::dialect::chat, {"id", 1, "m", ""}, std::span(&c, 1))));
    const auto& choice = body.at("choices").at(0);
    CHECK(choice.at("finish_reason") == "tool_calls");
    CHECK(body.at("usage").at("completion_tokens_details").at("reasoning_tokens").as_int64() > 0);
    const auto& message = choice.at("message").as_object();
    CHECK(message == json::parse(R"({"role":"assistant","content":"Well.Bye.","refusal":null,
      "reasoning_content":"hm, \"ö\"","tool_calls":[
      {"id":"call_0","type":"function","function":{"name":"look","arguments":"{\"place\": \"K\\n\"}"}},
      {"id":"call_1","type":"custom","custom":{"name":"run","input":"a\n\"b\""}}]})"));
    for (int i = 0; i < 20; ++i) {
      const openai::event_writer w(openai::dialect::chat, {"id", 1, "m", ""}, false);
      std::string out;
      w.open(out, 0);
      for (std::uint32_t from = 0; from < log.size();) {
        const auto to = log.whole_part(from, std::min<std::uint32_t>(log.size(), from + 1 + random() % 9));
        const piece_of_log p(log, from, to);
        w.piece(out, 0, p.news, {}, to == log.size() ? "tool_calls" : "");
        from = to;
      }
      CHECK(folded_chat(events_of(out)) == message);
    }
  }
}

TEST_CASE("parts: a message's blocks are those of its stream") {
  std::mt19937 random(4);
  for (const std::size_t each : {1, 3, 7, 40}) {
    const auto log = log_of(answer, each);
    const anthropic::identity who{"msg_1", "m", "r", {}};
    const anthropic::limits asked{5, {}};
    const auto how = ending(log);
    const auto body = json::parse(text_of(anthropic::response_body(who, log, how, asked)));
    CHECK(body.at("stop_reason") == "tool_use");
    CHECK(body.at("content") == json::parse(R"([{"type":"thinking","thinking":"hm, \"ö\"","signature":""},
      {"type":"text","text":"Well.","citations":null},
      {"type":"tool_use","id":"call_0","name":"look","input":{"place":"K\n"}},
      {"type":"tool_use","id":"call_1","name":"run","input":{"input":"a\n\"b\""}},
      {"type":"text","text":"Bye.","citations":null}])"));
    for (int i = 0; i < 20; ++i) {
      const anthropic::event_writer w(who, 3, asked);
      std::string out;
      w.open(out, 0);
      for (std::uint32_t from = 0; from < log.size();) {
        const auto to = log.whole_part(from, std::min<std::uint32_t>(log.size(), from + 1 + random() % 9));
        const piece_of_log p(log, from, to);
        w.piece(out, 0, p.news, {}, "");
        from = to;
      }
      w.end(out, std::span(&how, 1));
      CHECK(folded_blocks(events_of(out)) == body.at("content").as_array());
    }
  }
}

TEST_CASE("parts: a frame of weir.v1 has one part, but for a token that spans two") {
  for (const std::size_t each : {1, 3, 7, 40}) {
    const auto log = log_of(answer, each);
    std::string text, thoughts;
    std::vector<std::string> arguments;
    for (std::uint32_t from = 0; from < log.size();) {
      const auto to = log.part_end(from, log.whole_part(from, log.size()));
      const piece_of_log p(log, from, to);
      if (p.parts.size() > 1) CHECK(to == from + 1);
      ws::delta d;
      d.id = "a";
      d.text = log.text_of(from, to);
      d.seq = to;
      d.n = to - from;
      d.news = &p.news;
      std::string out;
      ws::append_delta(out, d);
      const auto frame = json::parse(out).as_object();
      CHECK(frame.contains("parts") == (p.parts.size() > 1));
      const auto take = [&](const json::object& o) {
        const auto said = std::string(o.at("delta").as_string());
        if (o.at("part") == "text") text += said;
        if (o.at("part") == "reasoning") thoughts += said;
        if (o.at("part") != "arguments") return;
        const auto& call = o.at("call").as_object();
        if (call.contains("name")) arguments.emplace_back(std::string(call.at("name").as_string()) + " ");
        REQUIRE(call.at("index").as_int64() + 1 == static_cast<std::int64_t>(arguments.size()));
        arguments.back() += said;
      };
      if (frame.contains("parts"))
        for (const auto& part : frame.at("parts").as_array()) take(part.as_object());
      else
        take(frame);
      from = to;
    }
    CHECK(text == "Well.Bye.");
    CHECK(thoughts == "hm, \"ö\"");
    CHECK(arguments == std::vector<std::string>{"look {\"place\": \"K\\n\"}", "run a\n\"b\""});
  }
}

// A follower gets pieces of the log.
TEST_CASE("parts: a copy of a piece of a log has the parts of the piece") {
  std::mt19937 random(5);
  for (const std::size_t each : {1, 4, 40}) {
    const auto log = log_of(answer, each);
    for (int i = 0; i < 200; ++i) {
      const std::uint32_t from = random() % (log.size() + 1), to = from + random() % (log.size() - from + 1);
      actors::token_log copy;
      const auto middle = from + random() % (to - from + 1);
      copy.append_part(log, from, middle);
      copy.append_part(log, middle, to);
      CHECK(copy.is_parted() == log.is_parted());
      std::string one, other;
      const auto show = [](std::string& out) {
        return [&out](const actors::part_piece& p) {
          out += fmt::format("[{} {} {} {}{}{}]", static_cast<int>(p.kind), p.part, p.call, p.text,
                             p.begins ? " begins" : "", p.ends ? " ends" : "");
        };
      };
      log.each_part(from, to, show(one));
      copy.each_part(0, copy.size(), show(other));
      CHECK(one == other);
    }
  }
}

}  // namespace weir::tests::parts_test
