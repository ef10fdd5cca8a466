// The Responses API without a socket: bodies, conversations, answers, events.
#include "net/protocol/responses.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <random>

namespace weir::tests::responses_test {

using namespace weir::net;
using core::part_kind;
namespace json = boost::json;

namespace {

core::result<responses::parsed_request> body(const std::string& members) {
  return responses::parse("{" + members + "}");
}

core::result<responses::parsed_request> with_input(const std::string& items) {
  auto p = body(R"("input":)" + items);
  if (!p) return p;
  if (auto made = responses::converse(*p); !made) return made.error();
  return p;
}

const core::conversation& said(const core::result<responses::parsed_request>& p) {
  INFO((p ? "" : p.error().message));
  REQUIRE(p.has_value());
  return std::get<core::conversation>(p->request.input);
}

std::string messages_of(const std::string& items) {
  return json::serialize(said(with_input(items)).messages);
}

std::string_view text_of(const json::value& v) { return v.as_string(); }

std::string param_of(const core::result<responses::parsed_request>& p) {
  REQUIRE(!p.has_value());
  CHECK(p.error().code == core::errc::invalid_param);
  return p.error().param;
}

// --- answers

struct part {
  part_kind kind;
  std::string text;
  bool whole = true;
  bool custom = false;
};

// The log of these parts, whose tokens have 1 to `longest` characters. Some tokens end inside what is held
// back.
actors::token_log log_of(const std::vector<part>& parts, unsigned seed, std::size_t longest) {
  std::mt19937 random(seed);
  actors::token_log log;
  log.keep_marks();
  std::uint32_t number = 0, calls = 0;
  using kind = core::answer_mark::kind;
  const auto mark = [&](kind what, std::uint32_t call) {
    core::answer_mark m;
    m.token = log.size();
    m.offset = static_cast<std::uint32_t>(log.text().size());
    m.part = number;
    m.call = call;
    m.what = what;
    log.marks().list.push_back(m);
  };
  for (const part& p : parts) {
    const std::uint32_t call = calls;
    if (p.kind == part_kind::call) {
      core::answer_call c;
      c.id = "call_" + std::to_string(calls++);
      c.name = p.custom ? "run" : "crm__look";
      c.whole = p.whole;
      c.custom = p.custom;
      log.marks().calls.push_back(c);
    }
    mark(p.kind == part_kind::text        ? kind::text
         : p.kind == part_kind::reasoning ? kind::reasoning
                                          : kind::call,
         call);
    for (std::size_t at = 0; at < p.text.size();) {
      if (random() % 4 == 0) log.append(0, 0, random() % 2 == 0);
      std::size_t n = std::min<std::size_t>(1 + random() % longest, p.text.size() - at);
      while (at + n < p.text.size() && (static_cast<unsigned char>(p.text[at + n]) & 0xC0) == 0x80) ++n;
      log.text() += p.text.substr(at, n);
      at += n;
      if (at < p.text.size() || random() % 2 == 0) log.append(0, 0, random() % 3 != 0);
    }
    if (p.whole && p.kind != part_kind::text) mark(kind::end, call);
    ++number;
  }
  log.append(0, 0, true);
  log.close();
  return log;
}

const responses::response_head& head() {
  static const responses::response_head h = [] {
    responses::response_head made;
    made.job = {1, 2};
    made.created_s = 1000;
    made.model = "m";
    made.echo = R"("metadata":{"a":"b"},"tools":[])";
    made.names = {{"crm__look", "crm", "look"}};
    return made;
  }();
  return h;
}

actors::outcome outcome_of(core::finish_reason reason) {
  actors::outcome how;
  how.reason = reason;
  how.input_tokens = 10;
  how.cached_tokens = 4;
  how.output_tokens = 5;
  how.reasoning_tokens = 2;
  if (reason == core::finish_reason::error) how.fault = core::error{core::errc::internal, "broken", {}};
  return how;
}

std::vector<json::object> events_of(std::string_view stream) {
  std::vector<json::object> out;
  while (!stream.empty()) {
    const auto end = stream.find("\n\n"), data = stream.find("\ndata: ");
    REQUIRE(stream.starts_with("event: "));
    REQUIRE(data < end);
    const auto text = stream.substr(data + 7, end - data - 7);
    out.push_back(json::parse(json::string_view(text.data(), text.size())).as_object());
    CHECK(stream.substr(7, data - 7) == std::string_view(out.back().at("type").as_string()));
    stream.remove_prefix(end + 2);
  }
  return out;
}

std::string stream_of(const actors::token_log& log, const actors::outcome& how, unsigned seed,
                      std::int64_t after = -1) {
  std::mt19937 random(seed);
  responses::event_writer w(head());
  w.go_on_after(after);
  std::string out;
  w.open(out);
  for (std::uint32_t from = 0; from < log.whole();) {
    const auto to = log.whole_part(from, from + 1 + static_cast<std::uint32_t>(random() % 7));
    w.piece(out, log, from, to);
    from = to;
  }
  w.end(out, log, how, 1002);
  return out;
}

// What a client makes of the events: the items of the output.
json::array folded(const std::vector<json::object>& events) {
  json::array items;
  std::string text;
  bool open = false;
  for (const auto& e : events) {
    const std::string_view type(e.at("type").as_string());
    if (type == "response.output_item.added") {
      CHECK(!open);
      open = true;
      text.clear();
      CHECK(e.at("output_index").as_int64() == static_cast<std::int64_t>(items.size()));
      CHECK(e.at("item").at("status") == "in_progress");
      items.push_back(e.at("item"));
    } else if (type == "response.content_part.added") {
      items.back().at("content").as_array().push_back(e.at("part"));
    } else if (type.ends_with(".delta")) {
      CHECK(open);
      CHECK(e.at("item_id") == items.back().at("id"));
      CHECK(!e.at("delta").as_string().empty());
      text += e.at("delta").as_string();
    } else if (type == "response.output_item.done") {
      open = false;
      auto& item = items.back().as_object();
      CHECK(e.at("item").at("id") == item.at("id"));
      item["status"] = e.at("item").at("status");
      const std::string_view kind(item.at("type").as_string());
      if (kind == "function_call")
        item["arguments"] = text;
      else if (kind == "custom_tool_call")
        item["input"] = text;
      else
        item["content"].as_array().at(0).as_object()["text"] = text;
      CHECK(json::value(item) == e.at("item"));
    } else if (type == "response.function_call_arguments.done") {
      CHECK(text_of(e.at("arguments")) == text);
    } else if (type == "response.custom_tool_call_input.done") {
      CHECK(text_of(e.at("input")) == text);
    } else if (type.ends_with("_text.done")) {
      CHECK(text_of(e.at("text")) == text);
    } else if (type == "response.content_part.done") {
      CHECK(text_of(e.at("part").at("text")) == text);
    }
  }
  CHECK(!open);
  return items;
}

const std::vector<std::vector<part>> answers = {
    {},
    {{part_kind::text, "hi"}},
    {{part_kind::reasoning, "hm, \"ö\""}, {part_kind::text, "Well\n"}},
    {{part_kind::reasoning, "hm", false}},
    {{part_kind::text, "Wait."},
     {part_kind::call, R"({"place":"Köln"})"},
     {part_kind::call, "a\n\"b\"", true, true},
     {part_kind::text, "Bye."}},
    {{part_kind::reasoning, "a"}, {part_kind::call, ""}, {part_kind::call, R"({"pla)", false}},
    {{part_kind::call, R"({"a)", false}, {part_kind::text, "and on"}},
};

}  // namespace

TEST_CASE("responses: fields reach the request") {
  const auto p = body(R"("model":"m","input":"hi","max_output_tokens":7,"temperature":0.5,"stream":true,
    "stop":["x"],"reasoning":{"effort":"low","summary":"auto"},"text":{"verbosity":"low"},"user":"u",
    "metadata":{"a":"b"},"include":["reasoning.encrypted_content"],"truncation":"disabled",
    "client_metadata":{"session_id":"s"})");
  CHECK(said(p).reasoning_effort == "low");
  CHECK(p->request.model == "m");
  CHECK(p->request.max_tokens == 7);
  CHECK(p->request.stop == std::vector<std::string>{"x"});
  CHECK(p->request.separate_reasoning);
  CHECK(p->stream);
  CHECK(p->store);
  CHECK(p->warnings.empty());
  CHECK(p->ignored.empty());
  const auto echo = json::parse("{" + p->echo + "}");
  CHECK(echo.at("metadata").at("a") == "b");
  CHECK(echo.at("user") == "u");
  CHECK(echo.at("instructions").is_null());
  CHECK(echo.at("max_output_tokens") == 7);
}

TEST_CASE("responses: what is not supported is refused by name") {
  const std::pair<const char*, const char*> refused[] = {
      {R"("input":[])", "input"},
      {R"("model":"m")", "input"},
      {R"("input":5)", "input"},
      {R"("input":[{"type":"local_shell_call"}])", "input[0].type"},
      {R"("input":[{"type":"message","role":"tool","content":"x"}])", "input[0].role"},
      {R"("input":[{"role":"user","content":[{"type":"input_file","file_id":"x"}]}])",
       "input[0].content[0].type"},
      {R"("input":[{"type":"item_reference","id":"x"}])", "input[0].id"},
      {R"("input":[{"type":"function_call","call_id":"c","name":"f"}])", "input[0].arguments"},
      {R"("input":"x","truncation":"auto")", "truncation"},
      {R"("input":"x","prompt":{"id":"p"})", "prompt"},
      {R"("input":"x","conversation":"c")", "conversation"},
      {R"("input":"x","top_logprobs":2)", "top_logprobs"},
      {R"("input":"x","include":["all"])", "include[0]"},
      {R"("input":"x","metadata":{"a":1})", "metadata.a"},
      {R"("input":"x","background":true,"store":false)", "background"},
      {R"("input":"x","stream_options":{})", "stream_options"},
      {R"("input":"x","max_output_tokens":0)", "max_output_tokens"},
      {R"("input":"x","max_output_tokens":5,"max_tokens":5)", "max_output_tokens"},
      {R"("input":"x","tools":[{"type":"apply_patch"}])", "tools"},
      {R"("input":"x","tools":[{"type":"function"}])", "tools"},
      {R"("input":"x","tools":[{"type":"namespace","name":"n","tools":[{"type":"mcp"}]}])",
       "tools[0].tools[0].type"},
      {R"("input":"x","tools":[{"type":"mcp"},{"type":"namespace","name":"n","tools":[{"type":"function",
          "name":"a"},{"type":"function","name":"b","strict":5}]}])",
       "tools[1].tools[1].strict"},
      {R"("input":"x","tool_choice":{"type":"web_search_preview"})", "tool_choice"},
      {R"("input":"x","tool_choice":{"type":"function","name":"f"})", "tool_choice"},
      {R"("input":"x","text":{"format":{"type":"json_schema","name":"a"}})", "text.format.schema"},
      {R"("input":"x","text":{"format":{"type":"xml"}})", "text.format.type"},
  };
  for (const auto& [members, param] : refused) {
    INFO(members);
    auto p = body(members);
    if (p)
      if (auto made = responses::converse(*p); !made) p = made.error();
    CHECK(param_of(p) == param);
  }
  CHECK(param_of(responses::parse(R"({"input":"x","nonsense":1})", SIZE_MAX, true)) == "nonsense");
  CHECK(!responses::parse(R"({"input":"x","nonsense":1})")->ignored.empty());
}

TEST_CASE("responses: items become messages in their places") {
  CHECK(messages_of(R"("hi")") == R"([{"role":"user","content":"hi"}])");
  CHECK(messages_of(R"([{"role":"developer","content":"a"},{"role":"user","content":[
      {"type":"input_text","text":"b"},{"type":"input_text","text":"c"}]},{"type":"message","role":"system",
      "content":"d"}])") ==
        R"([{"role":"developer","content":"a"},{"role":"user","content":[{"type":"text","text":"b"},)"
        R"({"type":"text","text":"c"}]},{"role":"system","content":"d"}])");
  auto p = body(R"("instructions":"be","input":[{"role":"user","content":"x"}])");
  REQUIRE(p.has_value());
  const json::array earlier = json::parse(R"([{"role":"user","content":"old","id":"m"}])").as_array();
  REQUIRE(responses::converse(*p, std::span(&earlier, 1)).has_value());
  CHECK(
      json::serialize(said(p).messages) ==
      R"([{"role":"system","content":"be"},{"role":"user","content":"old"},{"role":"user","content":"x"}])");
}

TEST_CASE("responses: calls, their outputs and reasoning go back to the model") {
  CHECK(messages_of(R"([{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text",
      "text":"hm"}],"encrypted_content":"xx"},
      {"type":"function_call","call_id":"c1","name":"look","namespace":"crm","arguments":"{}"},
      {"type":"custom_tool_call","call_id":"c2","name":"run","input":"a\"b"},
      {"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"seen"},
      {"type":"input_image","image_url":"data:"}]},
      {"type":"custom_tool_call_output","call_id":"c2","output":"done"},
      {"type":"reasoning","summary":[{"type":"summary_text","text":"s"}]},
      {"role":"assistant","content":[{"type":"output_text","text":"so"}]}])") ==
        R"([{"role":"assistant","reasoning_content":"hm","content":null,"tool_calls":[{"id":"c1",)"
        R"("type":"function","function":{"name":"crm__look","arguments":"{}"}},{"id":"c2","type":"function",)"
        R"("function":{"name":"run","arguments":"{\"input\":\"a\\\"b\"}"}}]},)"
        R"({"role":"tool","tool_call_id":"c1","content":"seen"},)"
        R"({"role":"tool","tool_call_id":"c2","content":"done"},)"
        R"({"role":"assistant","reasoning_content":"s","content":"so"}])");
}

TEST_CASE("responses: a picture is left out with a warning, a reference is resolved") {
  const auto p = with_input(R"([{"role":"user","content":[{"type":"input_image","image_url":"data:"}]}])");
  CHECK(json::serialize(said(p).messages) == R"([{"role":"user","content":""}])");
  REQUIRE(p->warnings.size() == 1);
  CHECK(p->warnings[0].where == "input");

  auto r = body(R"("input":[{"type":"item_reference","id":"msg_1"}])");
  REQUIRE(r.has_value());
  CHECK(r->referred == std::vector<std::string>{"msg_1"});
  const json::value item = json::parse(R"({"id":"msg_1","role":"user","content":"old"})");
  const auto find = [&](std::string_view id) { return id == "msg_1" ? &item : nullptr; };
  REQUIRE(responses::converse(*r, {}, find).has_value());
  CHECK(json::serialize(said(r).messages) == R"([{"role":"user","content":"old"}])");
  CHECK(r->items.at(0).at("content") == "old");
}

TEST_CASE("responses: the format of the text becomes a constraint") {
  const auto p = body(R"("input":"x","text":{"format":{"type":"json_schema","name":"n","strict":true,
                         "schema":{"type":"object","minimum":1.10}}})");
  REQUIRE(p.has_value());
  REQUIRE(p->request.constraint.has_value());
  CHECK(p->request.constraint->what == core::grammar::constraint_text::kind::json_schema);
  CHECK(p->request.constraint->text == R"({"type":"object","minimum":1.10})");
  CHECK(p->request.constraint->strict);
  CHECK(p->request.constraint_param == "text.format.schema");
  CHECK(json::parse("{" + p->echo + "}").at("text").at("format").at("schema").at("type") == "object");
  CHECK(!body(R"("input":"x","text":{"format":{"type":"text"}})")->request.constraint);
  CHECK(body(R"("input":"x","text":{"format":{"type":"json_object"}})")->request.constraint);
}

TEST_CASE("responses: tools of namespaces have flat names, hosted ones are left out") {
  const auto p = body(R"("input":"x","tools":[{"type":"web_search"},
    {"type":"function","name":"look","parameters":{"type":"object"},"strict":true},
    {"type":"namespace","name":"crm","description":"d","tools":[{"type":"function","name":"look"},
      {"type":"custom","name":"run","format":{"type":"grammar","syntax":"lark",
        "definition":"start: \"a\""}}]},
    {"type":"function","name":"crm__find"},
    {"type":"namespace","name":"crm__","tools":[{"type":"function","name":"find"}]}],
    "tool_choice":{"type":"function","name":"look","namespace":"crm"},"parallel_tool_calls":false)");
  REQUIRE(said(p).tools.is_array());
  REQUIRE(p->names.size() == 3);
  CHECK(p->names[0].flat == "crm__look");
  CHECK(p->names[1].flat == "crm__run");
  CHECK(p->names[2].flat == "crm__find_2");
  const auto& w = p->request.tools;
  REQUIRE(w.tools.size() == 1);
  CHECK(w.tools[0].name == "crm__look");
  CHECK(w.how == core::tool_wishes::choice::required);
  CHECK(!w.parallel);
  CHECK(w.tools[0].param == "tools[2].tools[0].parameters");
  CHECK(said(p).tools.as_array().size() == 5);
  REQUIRE(p->warnings.size() == 1);
  CHECK(p->warnings[0].where == "tools[0]");
  CHECK(json::parse("{" + p->echo + "}").at("tools").as_array().size() == 5);

  const auto some =
      body(R"("input":"x","tools":[{"type":"function","name":"a"},{"type":"function","name":"b"}],
    "tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"b"}]})");
  REQUIRE(some.has_value());
  REQUIRE(some->request.tools.tools.size() == 1);
  CHECK(some->request.tools.tools[0].name == "b");
  CHECK(some->request.tools.how == core::tool_wishes::choice::automatic);
  const auto none = body(R"("input":"x","tools":[{"type":"custom","name":"a"}],"tool_choice":"none")");
  CHECK(said(none).tools.is_null());
  CHECK(none->request.tools.how == core::tool_wishes::choice::none);
}

TEST_CASE("responses: events come to what the whole object says") {
  using core::finish_reason;
  for (const auto& parts : answers) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      const auto log = log_of(parts, seed, 1 + seed % 5);
      for (const auto reason :
           {finish_reason::stop, finish_reason::length, finish_reason::cancel, finish_reason::error}) {
        const auto how = outcome_of(reason);
        const auto events = events_of(stream_of(log, how, seed));
        const auto whole = json::parse(responses::response_object(head(), log, how, 1002));
        CHECK(folded(events) == whole.at("output").as_array());
        CHECK(events.back().at("response") == whole);
        CHECK(text_of(whole.at("status")) == how.status());
        for (std::size_t i = 0; i < events.size(); ++i)
          CHECK(events[i].at("sequence_number") == static_cast<std::int64_t>(i));
      }
    }
  }
}

TEST_CASE("responses: a stream is the same however it is cut, and goes on after any number") {
  const auto how = outcome_of(core::finish_reason::stop);
  for (const auto& parts : answers) {
    const auto log = log_of(parts, 7, 3);
    const auto all = stream_of(log, how, 1);
    CHECK(stream_of(log, how, 2) == all);
    const auto number = static_cast<std::int64_t>(events_of(all).size());
    std::size_t at = 0;
    for (std::int64_t after = -1; after < number; ++after) {
      CHECK(stream_of(log, how, static_cast<unsigned>(after + 5), after) == all.substr(at));
      if (at < all.size()) at = all.find("\n\n", at) + 2;
    }
  }
}

TEST_CASE("responses: a log that is one text is one message") {
  actors::token_log log;
  for (const char* text : {"a", "", "b"}) {
    log.text() += text;
    log.append(0, 0, true);
  }
  log.close();
  const auto how = outcome_of(core::finish_reason::length);
  const auto whole = json::parse(responses::response_object(head(), log, how, 1002));
  CHECK(whole.at("output").at(0).at("content").at(0).at("text") == "ab");
  CHECK(whole.at("output").at(0).at("status") == "incomplete");
  CHECK(whole.at("incomplete_details").at("reason") == "max_output_tokens");
  CHECK(whole.at("completed_at").is_null());
  CHECK(folded(events_of(stream_of(log, how, 3))) == whole.at("output").as_array());
}

TEST_CASE("responses: the object has OpenAI's members") {
  const auto log = log_of(answers[4], 1, 3);
  auto how = outcome_of(core::finish_reason::stop);
  const auto whole = json::parse(responses::response_object(head(), log, how, 1002));
  CHECK(text_of(whole.at("id")) == "resp_" + head().job.text());
  CHECK(whole.at("object") == "response");
  CHECK(whole.at("created_at") == 1000);
  CHECK(whole.at("completed_at") == 1002);
  CHECK(whole.at("usage") == json::parse(R"({"input_tokens":10,"input_tokens_details":{"cached_tokens":4,
    "cache_write_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},
    "total_tokens":15})"));
  CHECK(whole.at("output").at(1) ==
        json::parse(R"({"id":"fc_)" + head().job.text() + R"(_1","type":"function_call","status":"completed",
          "call_id":"call_0","name":"look","namespace":"crm","arguments":"{\"place\":\"Köln\"}"})"));
  CHECK(whole.at("output").at(2) ==
        json::parse(R"({"id":"ctc_)" + head().job.text() + R"(_2","type":"custom_tool_call",
          "status":"completed","call_id":"call_1","name":"run","input":"a\n\"b\""})"));
  how = outcome_of(core::finish_reason::error);
  const auto failed = json::parse(responses::response_object(head(), log, how, 1002));
  CHECK(failed.at("error").at("code") == "server_error");
  CHECK(failed.at("status") == "failed");
  CHECK(json::parse(responses::unfinished_object(head(), "queued")).at("output").as_array().empty());

  responses::event_writer w(head());
  std::string out;
  w.fail(out, core::bad_param("input", "no"));
  CHECK(events_of(out).at(0).at("param") == "input");
}

TEST_CASE("responses: items of the input get ids") {
  auto p = body(R"("input":[{"role":"user","content":"a"},{"type":"reasoning","id":"rs_1","summary":[]}])");
  REQUIRE(p.has_value());
  responses::name_items(p->items, "tag");
  CHECK(text_of(p->items.at(0).at("id")) == "msg_tag_in0");
  CHECK(p->items.at(0).at("type") == "message");
  CHECK(p->items.at(1).at("id") == "rs_1");
}

}  // namespace weir::tests::responses_test
