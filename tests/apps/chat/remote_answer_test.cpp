// What a hostile server can do to `weir chat`: nothing that grows, and nothing without an end.
#include "apps/chat/remote_answer.h"

#include <catch2/catch.hpp>

#include "net/load/http_wire.h"

namespace weir::tests::remote_answer_test {

using namespace weir::apps;

namespace {

std::unique_ptr<remote_answer> openai() {
  const auto to = load::parse_url("url", "http://127.0.0.1:1/v1/chat/completions");
  REQUIRE(to.has_value());
  return openai_answer(*to, "", {}, {});
}

constexpr const char* head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const peer::on_text nowhere = [](std::string_view, bool) {};

}  // namespace

TEST_CASE("an event without an end ends the answer, and nothing of it is kept") {
  for (const std::string& piece :
       {std::string(64 * 1024, 'x'), "data: " + std::string(64 * 1024, 'x') + "\n"}) {
    const auto answer = openai();
    answer->take(head, nowhere);
    answer->take("data: ", nowhere);
    std::size_t sent = 0;
    while (!answer->over() && sent < (std::size_t{64} << 20)) {
      answer->take(piece, nowhere);
      sent += piece.size();
    }
    CHECK(answer->over());
    CHECK(sent <= load::sse_reader::longest_event + (std::size_t{1} << 20));
    CHECK(answer->how().error == "the server sent an event too long");
  }
}

TEST_CASE("the words of a server's error are bounded") {
  const auto answer = openai();
  answer->take("HTTP/1.1 500 Oops\r\nContent-Length: 50031\r\n\r\n{\"error\":{\"message\":\"" +
                   std::string(50'000, 'x') + "\"}}     ",
               nowhere);
  REQUIRE(answer->over());
  CHECK(answer->how().error.size() == 2'000);
}

TEST_CASE("an answer that was given up is over, with the reason") {
  const auto answer = openai();
  answer->give_up("the server was silent for 300 s");
  answer->lost();
  CHECK(answer->over());
  CHECK(answer->how().error == "the server was silent for 300 s");
}

}  // namespace weir::tests::remote_answer_test
