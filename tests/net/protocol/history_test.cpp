// Messages of chat completions in older and other spellings, over HTTP and over weir.v1.
#include "net/protocol/history.h"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "net/protocol/openai.h"
#include "net/protocol/ws_protocol.h"

namespace weir::tests::history_test {

using namespace weir::net;

namespace {

struct modern {
  std::string messages;  // or the error
  std::vector<core::grammar::warning> dropped;
};

modern modernised(std::string_view messages) {
  auto list = boost::json::parse(boost::json::string_view(messages.data(), messages.size())).as_array();
  modern out;
  const auto read = modernise_messages("messages", list, out.dropped);
  out.messages = read ? boost::json::serialize(list) : read.error().message;
  return out;
}

}  // namespace

TEST_CASE("history: a function_call and its result are a call and a tool's result") {
  CHECK(modernised(R"([{"role":"user","content":"a"},
      {"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},
      {"role":"function","name":"f","content":"1"}])")
            .messages == R"([{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":)"
                         R"([{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]},)"
                         R"({"role":"tool","name":"f","content":"1","tool_call_id":"call_1"}])");
  const std::string none = R"([{"role":"assistant","content":"a","function_call":null}])";
  CHECK(modernised(none).messages == none);
  CHECK(modernised(R"([{"role":"assistant","function_call":"f"}])").messages ==
        "messages[0].function_call must be an object with a name");
  CHECK(modernised(R"([{"role":"assistant","tool_calls":[],"function_call":{"name":"f"}}])").messages ==
        "messages[0] has both tool_calls and function_call");
}

TEST_CASE("history: the call of a custom tool is one of a function with one text") {
  CHECK(modernised(R"([{"role":"assistant","content":null,"tool_calls":[
      {"id":"c1","type":"custom","custom":{"name":"run","input":"ls \"a\""}}]}])")
            .messages == R"([{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",)"
                         R"("function":{"name":"run","arguments":{"input":"ls \"a\""}}}]}])");
  CHECK(modernised(R"([{"role":"assistant","tool_calls":[{"id":"1","custom":{"name":"run"}}]}])").messages ==
        "messages[0].tool_calls[0].custom must be an object with a name and a string 'input'");
}

TEST_CASE("history: details of reasoning are its text, unless the text is there, too") {
  CHECK(modernised(R"([{"role":"assistant","content":"a","reasoning_details":[
      {"type":"reasoning.text","text":"b"},{"type":"reasoning.encrypted","data":"x"},
      {"type":"reasoning.summary","summary":"c"}]}])")
            .messages == R"([{"role":"assistant","content":"a","reasoning_content":"b\nc"}])");
  CHECK(
      modernised(R"([{"role":"assistant","content":"a","reasoning":"r","reasoning_details":[{"text":"r"}]}])")
          .messages == R"([{"role":"assistant","content":"a","reasoning":"r"}])");
}

TEST_CASE("history: images in a tool's result are left out, and named") {
  const auto some = modernised(R"([{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"a"},
      {"type":"image_url","image_url":{"url":"x"}}]}])");
  CHECK(some.messages == R"([{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"a"}]}])");
  REQUIRE(some.dropped.size() == 1);
  CHECK(some.dropped[0].where == "messages[0].content");
  CHECK(modernised(R"([{"role":"tool","content":[{"type":"image_url"}]}])").messages ==
        R"([{"role":"tool","content":""}])");
}

TEST_CASE("history: both ways in take the older spellings, and name what is left out") {
  const std::string messages = R"([{"role":"user","content":"a"},
      {"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},
      {"role":"function","name":"f","content":[{"type":"text","text":"1"}]},
      {"role":"tool","tool_call_id":"call_1","content":[{"type":"image_url"}]}])";
  const auto chat = openai::parse(openai::dialect::chat, fmt::format(R"({{"messages":{}}})", messages));
  INFO((chat ? "" : chat.error().message));
  REQUIRE(chat.has_value());
  const auto& said = std::get<core::conversation>(chat->request.input).messages;
  CHECK(said[1].at("tool_calls").at(0).at("function").at("name") == "f");
  CHECK(said[2].at("role") == "tool");
  REQUIRE(chat->all_warnings().size() == 1);
  CHECK(chat->all_warnings()[0].where == "messages[3].content");

  const auto frame =
      ws::parse(fmt::format(R"({{"type":"response.create","id":"a","input":{}}})", messages), {.depth = 16});
  REQUIRE(std::holds_alternative<ws::response_create>(frame));
  const auto& created = std::get<ws::response_create>(frame);
  CHECK(std::get<core::conversation>(created.request.input).messages == said);
  CHECK(created.ignored == std::vector<std::string>{"input[3].content"});
  // Of a user's message they are refused as before.
  const auto picture = openai::parse(openai::dialect::chat,
                                     R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})");
  REQUIRE(!picture);
  CHECK_THAT(picture.error().message, Catch::Contains("parts of type 'image_url' are not supported yet"));
}

}  // namespace weir::tests::history_test
