// Every published case of a chat template, through both routes: the prompt of the request that is read is the
// published one, byte for byte.
#include <catch2/catch.hpp>

#include "core/text/chat/chat_template.h"
#include "net/protocol/openai.h"
#include "net/protocol/ws_protocol.h"
#include "tests/support/published_templates.h"

namespace weir::tests::published_templates_test {

using namespace weir::net;

namespace {

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
  auto m = ws::parse(json::serialize(o), {.depth = 64});
  if (auto* created = std::get_if<ws::response_create>(&m)) return std::move(created->request);
  return core::bad_param("", "{}", std::get<ws::protocol_error>(m).message);
}

core::result<actors::request> over_http(const tests::published_case& c) {
  json::object o = fields_of(c);
  o["messages"] = c.messages;
  auto p = openai::parse(openai::dialect::chat, json::serialize(o));
  if (!p) return p.error();
  return std::move(p->request);
}

// OpenAI's API knows five roles; over a socket a message may have any that its template knows.
bool has_foreign_role(const tests::published_case& c) {
  return std::ranges::any_of(c.messages, [](const json::value& m) {
    const json::value& role = m.at("role");
    return role != "system" && role != "developer" && role != "user" && role != "assistant" && role != "tool";
  });
}

void check_role_is_refused(const core::result<actors::request>& r) {
  REQUIRE(!r);
  CHECK(r.error().param == "messages");
  CHECK_THAT(r.error().message, Catch::Contains("].role must be system, developer"));
}

void check_prompt(const core::chat_template& chat, const tests::published_case& c,
                  const core::result<actors::request>& r) {
  REQUIRE(r.has_value());
  const auto made = chat.render(std::get<core::conversation>(r->input), tests::published_now);
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
  for (const auto& file : files)
    for (const auto& c : file.cases) {
      CAPTURE(file.name, c.name);
      const auto chat =
          core::chat_template::from_source(file.source, {{"bos_token", c.bos}, {"eos_token", c.eos}});
      REQUIRE(chat->fault() == nullptr);
      check_prompt(*chat, c, over_socket(c));
      if (has_foreign_role(c)) {
        check_role_is_refused(over_http(c));
      } else {
        check_prompt(*chat, c, over_http(c));
      }
      ++cases;
    }
  CHECK(cases >= files.size());
}

}  // namespace weir::tests::published_templates_test
