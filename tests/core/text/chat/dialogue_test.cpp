#include "core/text/chat/dialogue.h"

#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>

namespace weir::tests::dialogue_test {

using namespace weir::core;

namespace {

std::string said(const dialogue& d) { return boost::json::serialize(d.messages()); }

}  // namespace

TEST_CASE("dialogue: a model is given the messages, and no thoughts") {
  dialogue d("S");
  d.ask("a");
  d.answer("b", "hm");
  CHECK(
      said(d) ==
      R"([{"role":"system","content":"S"},{"role":"user","content":"a"},{"role":"assistant","content":"b"}])");
  CHECK(d.turns() == 1);
  d.ask("c");
  d.take_back();
  CHECK(d.turns() == 1);
  d.forget();
  CHECK(said(d) == R"([{"role":"system","content":"S"}])");
}

TEST_CASE("dialogue: the oldest turn goes as a whole, the system message and the last question stay") {
  dialogue d("S");
  d.ask("a");
  d.answer("b", "");
  d.ask("c");
  d.answer("d", "");
  d.ask("e");
  CHECK(d.drop_oldest());
  CHECK(d.drop_oldest());
  CHECK_FALSE(d.drop_oldest());
  CHECK(said(d) == R"([{"role":"system","content":"S"},{"role":"user","content":"e"}])");
}

TEST_CASE("dialogue: what was saved is loaded, thoughts too") {
  dialogue d("S"), other(std::nullopt);
  d.ask("a \"quoted\" ö");
  d.answer("b", "hm");
  REQUIRE(other.load(d.saved()).has_value());
  CHECK(said(other) == said(d));
  CHECK(other.saved() == d.saved());
  CHECK(d.saved().find(R"("reasoning_content":"hm")") != std::string::npos);
}

TEST_CASE("dialogue: a file that is none changes nothing, and the message says what is wrong") {
  dialogue d("S");
  const std::string before = d.saved();
  for (const auto& [file, says] :
       {std::pair<const char*, const char*>{"{}", "no list of messages"},
        {"[{\"role\":\"user\"}]", "message 0 has no text 'content'"},
        {"[{\"role\":\"user\",\"content\":\"a\"},5]", "message 1 has no text 'role'"},
        {"[", ""}}) {
    CAPTURE(file);
    const auto read = d.load(file);
    REQUIRE(!read);
    CHECK_THAT(read.error().message, Catch::Contains(says));
    CHECK(d.saved() == before);
  }
}

}  // namespace weir::tests::dialogue_test
