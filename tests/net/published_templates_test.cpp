// Every published case of a chat template, through both routes: the prompt of the request that is read is the
// published one, byte for byte; and a prompt does not depend on the form in which its messages were sent.
#include <catch2/catch.hpp>

#include "core/text/chat/chat_template.h"
#include "net/protocol/anthropic.h"
#include "net/protocol/openai.h"
#include "net/protocol/ws_protocol.h"
#include "tests/support/published_templates.h"

namespace weir::tests::published_templates_test {

using namespace weir::net;

namespace {

core::result<actors::request> read_chat(const std::string& body) {
  auto p = openai::parse(openai::dialect::chat, body);
  if (!p) return p.error();
  return std::move(p->request);
}

core::result<actors::request> read_socket(const std::string& body) {
  auto m = ws::parse(body, {.depth = 64});
  if (auto* created = std::get_if<ws::response_create>(&m)) return std::move(created->request);
  return core::bad_param("", "{}", std::get<ws::protocol_error>(m).message);
}

// The fields of a request that says what the case says.
json::object fields_of(const tests::published_case& c) {
  json::object o;
  if (!c.tools.is_null()) o["tools"] = c.tools;
  if (!c.extra.empty()) o["chat_template_kwargs"] = c.extra;
  o["add_generation_prompt"] = c.add_generation_prompt;
  return o;
}

core::result<actors::request> over_socket(const tests::published_case& c) {
  json::object o = fields_of(c);
  o["type"] = "response.create";
  o["id"] = "a";
  o["input"] = c.messages;
  return read_socket(json::serialize(o));
}

core::result<actors::request> over_http(const tests::published_case& c) {
  json::object o = fields_of(c);
  o["messages"] = c.messages;
  return read_chat(json::serialize(o));
}

// OpenAI's API knows five roles; over a socket a message may have any that its template knows.
bool has_foreign_role(const tests::published_case& c) {
  return std::ranges::any_of(c.messages, [](const json::value& m) {
    const json::value& role = m.at("role");
    return role != "system" && role != "developer" && role != "user" && role != "assistant" && role != "tool";
  });
}

// The published prompts of these cases are those of the forms in which they were sent.
bool is_sent_in_forms(const tests::published_case& c) {
  return c.name == "content_parts" || c.name == "tool_call_string_args";
}

void check_role_is_refused(const core::result<actors::request>& r) {
  REQUIRE(!r);
  CHECK(r.error().param == "messages");
  CHECK_THAT(r.error().message, Catch::Contains("].role must be system, developer"));
}

void check_prompt(const core::chat_template& chat, const tests::published_case& c,
                  const core::result<actors::request>& r) {
  REQUIRE(r.has_value());
  const auto& said = std::get<core::conversation>(r->input);
  const auto made = is_sent_in_forms(c) ? chat.render_as_sent(said, tests::published_now)
                                        : chat.render(said, tests::published_now);
  if (c.expected) {
    INFO((made ? "" : made.error().message));
    REQUIRE(made.has_value());
    CHECK(made->text == *c.expected);
  } else {
    REQUIRE(!made);
    CHECK_THAT(made.error().message, Catch::Contains(c.message));
  }
}

}  // namespace

TEST_CASE("published templates: each case gives its prompt over the socket and over HTTP") {
  const auto files = tests::published_templates();
  if (files.empty()) {
    WARN("skipped: there are no published templates in the data folder");
    return;
  }
  std::size_t cases = 0;
  for (const auto& file : files) {
    const auto of_file = core::chat_template::from_source(file.source);
    REQUIRE(of_file->fault() == nullptr);
    for (const auto& c : file.cases) {
      CAPTURE(file.name, c.name);
      const auto chat = of_file->with_tokens({{"bos_token", c.bos}, {"eos_token", c.eos}});
      check_prompt(chat, c, over_socket(c));
      if (has_foreign_role(c)) {
        check_role_is_refused(over_http(c));
      } else {
        check_prompt(chat, c, over_http(c));
      }
      ++cases;
    }
  }
  CHECK(cases >= files.size());
}

// ---- the forms of messages

namespace {

struct route {
  const char* name;
  std::string_view messages;  // the field
  core::result<actors::request> (*read)(const std::string& body);
};

core::result<actors::request> read_messages(const std::string& body) {
  auto p = anthropic::parse(anthropic::route::messages, body);
  if (!p) return p.error();
  return std::move(p->request);
}

constexpr route routes[] = {
    {"/v1/chat/completions", R"("messages":)", read_chat},
    {"/v1/stream", R"("type":"response.create","id":"a","input":)", read_socket},
    {"/v1/messages", R"("max_tokens":5,"messages":)", read_messages},
};

constexpr std::string_view tools =
    R"(,"tools":[{"type":"function","function":{"name":"get","description":"d","parameters":)"
    R"({"type":"object","properties":{"city":{"type":"string","description":"d"}},"required":["city"]}}}])";

// The prompt, or why there is none.
std::string prompt_of(const route& by, const core::chat_template& chat, const std::string& messages,
                      std::string_view more = {}) {
  const auto r = by.read(fmt::format("{{{}{}{}}}", by.messages, messages, more));
  INFO((r ? "" : r.error().message));
  REQUIRE(r.has_value());
  const auto made = chat.render(std::get<core::conversation>(r->input), tests::published_now);
  return made ? made->text : "error: " + made.error().message;
}

std::string without_white(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '\t'; });
  return text;
}

// Calls `check(chat)` for each published template.
template <class Check>
void each_template(Check check) {
  for (const auto& file : tests::published_templates()) {
    CAPTURE(file.name);
    check(*core::chat_template::from_source(file.source, {{"bos_token", "<s>"}, {"eos_token", "</s>"}}));
  }
}

// Messages with a content in the place of @.
constexpr std::string_view content_places[] = {
    R"([{"role":"user","content":@}])",
    R"([{"role":"system","content":@},{"role":"user","content":"b"}])",
    R"([{"role":"user","content":@},{"role":"assistant","content":"b"},{"role":"user","content":"c"}])",
    R"([{"role":"user","content":"a"},{"role":"assistant","content":@},{"role":"user","content":"c"}])",
    R"([{"role":"system","content":@},{"role":"user","content":@},{"role":"assistant","content":@},)"
    R"({"role":"user","content":@}])",
};

std::string with(std::string_view messages, std::string_view content) {
  std::string out;
  for (const char c : messages) c == '@' ? out += content : out += c;
  return out;
}

std::string call(std::string_view arguments, std::string_view content = R"("content":"",)",
                 std::string_view result = R"("18")") {
  return fmt::format(
      R"([{{"role":"user","content":"a"}},{{"role":"assistant",{}"tool_calls":[{{"id":"abcdef123",)"
      R"("type":"function","function":{{"name":"get","arguments":{}}}}}]}},)"
      R"({{"role":"tool","tool_call_id":"abcdef123","name":"get","content":{}}}])",
      content, arguments, result);
}

constexpr std::string_view whole_call = R"({"city":"Köln","days":[1,2.5,true,null],"in":{"unit":"C"}})";
constexpr std::string_view call_as_text =
    R"("{\"city\": \"K\u00f6ln\", \"days\":[1,2.5,true,null],\"in\":{\"unit\":\"C\"}}")";

}  // namespace

TEST_CASE("published templates: a content of one part gives the prompt of the text, on every route") {
  each_template([](const core::chat_template& chat) {
    for (const route& by : routes)
      for (const auto place : content_places) {
        CAPTURE(by.name, place);
        CHECK(prompt_of(by, chat, with(place, R"([{"type":"text","text":"Look up"}])")) ==
              prompt_of(by, chat, with(place, R"("Look up")")));
      }
  });
}

TEST_CASE("published templates: several parts are joined by a line feed, or by the template itself") {
  each_template([](const core::chat_template& chat) {
    for (const route& by : routes)
      for (const auto place : content_places) {
        CAPTURE(by.name, place);
        const auto parts = prompt_of(
            by, chat, with(place, R"([{"type":"text","text":"one"},{"type":"text","text":"two"}])"));
        CHECK(without_white(parts) == without_white(prompt_of(by, chat, with(place, R"("one\ntwo")"))));
      }
  });
}

TEST_CASE("published templates: a tool's answer of one part gives the prompt of the text") {
  each_template([](const core::chat_template& chat) {
    for (const route& by : {routes[0], routes[1]})
      for (const std::string_view more : {std::string_view(), tools}) {
        CAPTURE(by.name, more);
        const std::string head = R"("content":"",)";
        CHECK(prompt_of(by, chat, call(whole_call, head, R"([{"type":"text","text":"18"}])"), more) ==
              prompt_of(by, chat, call(whole_call, head, R"("18")"), more));
      }
  });
}

TEST_CASE("published templates: arguments sent as text give the prompt of the object") {
  std::size_t shown = 0;
  each_template([&](const core::chat_template& chat) {
    for (const route& by : {routes[0], routes[1]})
      for (const std::string_view more : {std::string_view(), tools}) {
        CAPTURE(by.name, more);
        const auto as_object = prompt_of(by, chat, call(whole_call), more);
        CHECK(without_white(prompt_of(by, chat, call(call_as_text), more)) == without_white(as_object));
        shown += as_object.find("Köln") != as_object.npos;
      }
  });
  CHECK((shown > 80 || tests::published_templates().empty()));
}

TEST_CASE("published templates: a content that is null or absent beside calls is an empty one") {
  each_template([](const core::chat_template& chat) {
    for (const route& by : {routes[0], routes[1]})
      for (const std::string_view more : {std::string_view(), tools}) {
        CAPTURE(by.name, more);
        const auto empty = prompt_of(by, chat, call(whole_call), more);
        CHECK(prompt_of(by, chat, call(whole_call, R"("content":null,)"), more) == empty);
        CHECK(prompt_of(by, chat, call(whole_call, ""), more) == empty);
        CHECK(without_white(prompt_of(by, chat, call(call_as_text, R"("content":null,)"), more)) ==
              without_white(empty));
      }
  });
}

}  // namespace weir::tests::published_templates_test
