#include "core/text/chat/message_lines.h"

#include <catch2/catch.hpp>

namespace weir::tests::message_lines_test {

using namespace weir::core;

TEST_CASE("lines: a line is a message, a backslash goes on, quotes hold many") {
  message_lines l;
  CHECK(l.take("one\r") == "one");
  CHECK_FALSE(l.take("a\\"));
  CHECK(l.open());
  CHECK(l.take("b") == "a\nb");
  CHECK_FALSE(l.open());
  for (const char* line : {"\"\"\"", "x\\", "", "/quit"}) CHECK_FALSE(l.take(line));
  CHECK(l.take("\"\"\"") == "x\\\n\n/quit");
  CHECK_FALSE(l.take("lost\\"));
  l.drop();
  CHECK(l.take("kept") == "kept");
}

TEST_CASE("lines: a command is a slash and a letter") {
  CHECK(command_in("/save  a file")->name == "save");
  CHECK(command_in("/save  a file")->argument == "a file");
  CHECK(command_in("/quit")->argument.empty());
  for (const char* none : {"/", "// no", "/ no", "a /quit", "/1", ""}) CHECK_FALSE(command_in(none));
}

}  // namespace weir::tests::message_lines_test
