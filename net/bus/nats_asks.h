// nats_asks.h — the questions of a bus that wait for an answer.
//
// Each has a number, which is the last word of the subject that it is answered on. The subject before that
// word is drawn at the start: who does not see the bus' messages cannot guess it.
//
// Thread safety: of one executor's thread, but for the constructor, inbox() and answered_on().
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "actors/bus.h"

namespace weir::net {

class nats_asks {
 public:
  using answer = actors::bus::answer;
  using done = std::function<void(answer)>;

  nats_asks(boost::asio::io_context& here, std::string inbox) : here_(here), inbox_(std::move(inbox)) {}

  const std::string& inbox() const noexcept { return inbox_; }  // without its last word
  std::string answered_on(std::uint64_t number) const { return inbox_ + '.' + std::to_string(number); }
  static std::optional<std::uint64_t> number_of(std::string_view subject) {
    const std::string_view word = subject.substr(subject.rfind('.') + 1);
    std::uint64_t n = 0;
    const auto [stop, ec] = std::from_chars(word.data(), word.data() + word.size(), n);
    if (ec != std::errc() || stop != word.data() + word.size()) return std::nullopt;
    return n;
  }

  void add(std::uint64_t number, core::duration patience, actors::bus::executor ex, done what);
  // Nothing happens where the question has been answered, or has waited too long.
  void finish(std::uint64_t number, answer a);
  void clear() { waiting_.clear(); }

 private:
  struct waiting {
    actors::bus::executor ex;
    done what;
    boost::asio::steady_timer timer;
  };
  boost::asio::io_context& here_;
  const std::string inbox_;
  std::map<std::uint64_t, waiting> waiting_;
};

}  // namespace weir::net
