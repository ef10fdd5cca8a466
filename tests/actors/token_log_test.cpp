#include "actors/token_log.h"

#include <catch2/catch.hpp>

namespace weir::tests::token_log_test {
namespace {

// A log of one token for each text. A '~' at the end of a text is no text: it says that the token ends inside
// a character.
actors::token_log log_of(std::initializer_list<std::string_view> texts) {
  actors::token_log log;
  for (std::string_view text : texts) {
    const bool whole = !text.ends_with('~');
    log.text() += whole ? text : text.substr(0, text.size() - 1);
    log.append(static_cast<core::token_id>(log.size()), 0, whole);
  }
  return log;
}

}  // namespace

TEST_CASE("token log: a piece has as many tokens as fit, and at least one") {
  const auto log = log_of({"ab", "cd", "", "efghij", "k"});
  CHECK(log.piece_end(0, 100) == 5);
  CHECK(log.piece_end(0, 2) == 1);
  CHECK(log.piece_end(0, 3) == 1);
  CHECK(log.piece_end(0, 4) == 3);
  CHECK(log.piece_end(3, 2) == 4);
  CHECK(log.piece_end(4, 1) == 5);
  CHECK(log.piece_end(0, 0) == 1);
  CHECK(log.piece_end(5, 100) == 5);
  CHECK(actors::token_log().piece_end(0, 100) == 0);
}

TEST_CASE("token log: a piece ends before tokens whose character is not whole, until the log is closed") {
  auto log = log_of({"a", "~", "~"});
  CHECK(log.piece_end(0, 100) == 1);
  CHECK(log.piece_end(1, 100) == 1);
  log.text() += "\xEF\xBF\xBD";
  log.close();
  CHECK(log.piece_end(1, 100) == 3);
}

TEST_CASE("token log: pieces of every size put together are the whole text") {
  const auto log = log_of({"one", " ", "", "~", "\xC3\xA4", "two three", "~", "\xE2\x82\xAC", "."});
  for (std::size_t most = 0; most < 20; ++most) {
    CAPTURE(most);
    std::string text;
    std::uint32_t at = 0;
    while (at < log.whole()) {
      const auto next = log.piece_end(at, most);
      REQUIRE(next > at);
      text += log.text_of(at, next);
      at = next;
    }
    CHECK(text == log.text_of(0, log.size()));
  }
}

TEST_CASE("token log: logprobs stay where they are while a log grows, and are counted") {
  constexpr std::uint32_t top = 20, tokens = 1000;
  actors::token_log log;
  log.keep_logprobs(top);
  core::draw_logprobs some;
  some.count = 2;
  const auto append = [&](std::uint32_t i) {
    some.drawn.id = static_cast<core::token_id>(i);
    some.likeliest[1].id = static_cast<core::token_id>(i + 1);
    log.append_logprobs(some);
    log.text() += 'x';
    log.append(0, 0, true);
  };
  for (std::uint32_t i = 0; i < tokens / 2; ++i) append(i);
  const auto* const third = log.logprobs(3).data();
  for (std::uint32_t i = tokens / 2; i < tokens; ++i) append(i);
  CHECK(log.logprobs(3).data() == third);
  for (std::uint32_t i = 0; i < tokens; ++i) {
    const auto of = log.logprobs(i);
    REQUIRE(of.size() == 1 + top);
    REQUIRE(of[0].id == static_cast<core::token_id>(i));
    REQUIRE(of[2].id == static_cast<core::token_id>(i + 1));
    REQUIRE(of[3].id < 0);
  }
  constexpr std::uint64_t least = tokens * (1 + top) * sizeof(core::token_logprob);
  CHECK(log.memory() >= least);
  CHECK(log.memory() <= 2 * least);

  actors::token_log part;
  part.append_part(log, 60, 130);
  part.append_part(log, 130, 131);
  for (std::uint32_t i = 0; i < part.size(); ++i)
    REQUIRE(part.logprobs(i)[0].id == static_cast<core::token_id>(60 + i));
}

}  // namespace weir::tests::token_log_test
