// recording_sink.h — a sink that keeps tokens and the ending, checks the rules of token_sink.h, and may have
// little room.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/sample/logprobs.h"
#include "core/token_sink.h"

namespace weir::tests {

class recording_sink final : public core::token_sink {
 public:
  std::size_t room =
      std::numeric_limits<std::size_t>::max();  // tokens that the coming writes may still add to `tokens`
  bool left = false;                            // what abandoned() says
  std::vector<core::token> tokens;
  std::vector<core::draw_logprobs> logprobs;  // of the tokens, where the job asked for them
  std::optional<core::ending> end;
  int finishes = 0;
  bool rests = false;       // a pause has begun and is not over
  bool told_twice = false;  // a pause began or ended that had done so before

  std::size_t write(std::span<const core::token> t) override {
    REQUIRE(!end);
    REQUIRE(!t.empty());
    const std::size_t n = std::min(room, t.size());
    tokens.insert(tokens.end(), t.begin(), t.begin() + static_cast<std::ptrdiff_t>(n));
    if (room != std::numeric_limits<std::size_t>::max()) room -= n;
    return n;
  }
  std::size_t write_with_logprobs(std::span<const core::token> t,
                                  std::span<const core::draw_logprobs> l) override {
    REQUIRE(t.size() == l.size());
    REQUIRE(logprobs.size() == tokens.size());
    const std::size_t n = write(t);
    for (std::size_t i = 0; i < n; ++i) REQUIRE(l[i].drawn.id == t[i].id);
    logprobs.insert(logprobs.end(), l.begin(), l.begin() + static_cast<std::ptrdiff_t>(n));
    return n;
  }
  void paused(bool now) noexcept override { told_twice = told_twice || std::exchange(rests, now) == now; }
  void finish(const core::ending& how) override {
    ++finishes;
    end = how;
  }
  bool abandoned() const noexcept override { return left; }

  std::vector<core::token_id> ids() const {
    std::vector<core::token_id> out;
    for (const auto& t : tokens) out.push_back(t.id);
    return out;
  }
};

}  // namespace weir::tests
