#include "tests/stranger/conversation.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace weir::stranger {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds tick{5};  // how often pauses and silences are looked at
constexpr milliseconds answer_awaited{500};
constexpr std::size_t heard_bytes = 64 * 1024;

// The id of the answer over HTTP whose first events or whole body this is; empty: there is none yet.
std::string answer_in(std::string_view heard) {
  for (const std::string_view before :
       {"\"id\":\"cmpl-", "\"id\":\"chatcmpl-", "\"id\":\"msg_", "\"id\":\"resp_"}) {
    constexpr std::size_t digits = 32;
    const auto at = heard.find(before);
    if (at == heard.npos || heard.size() < at + before.size() + digits) continue;
    return std::string(heard.substr(at + 6, before.size() - 6 + digits));
  }
  return {};
}

// One conversation under way. `answers`: the ids that the conversations of the round were told.
class line {
 public:
  line(const conversation& c, std::uint16_t port, int poll, std::size_t index,
       std::vector<std::string>& answers)
      : plan_(c),
        wire_(c.from, port, c.reads != appetite::everything),
        poll_(poll),
        index_(index),
        answers_(answers) {
    if (!wire_.is_open()) return;
    wait_until(plan_.script.empty() ? 0 : plan_.script[0].pause_ms);
    watched_ = EPOLLOUT | (plan_.reads == appetite::everything ? unsigned{EPOLLIN} : 0u);
    epoll_event e{watched_, {.u64 = index_}};
    epoll_ctl(poll_, EPOLL_CTL_ADD, wire_.fd(), &e);
  }

  bool is_over() const { return !wire_.is_open(); }
  const outcome& result() const { return result_; }

  void on_event(unsigned events) {
    result_.connected = result_.connected || !(events & (EPOLLERR | EPOLLHUP));
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read(64 * 1024);
    if (!is_over() && (events & EPOLLOUT)) write();
  }

  // Checks whether a pause is over or a silence has lasted long enough.
  void on_tick(clock::time_point now) {
    if (plan_.reads == appetite::sips) read(7);
    if (is_over()) return;
    if (!all_sent()) {
      if (may_send(now)) write();
    } else if (const milliseconds linger(plan_.linger_ms);
               now - last_ >= linger || now - said_ >= 3 * linger) {
      end();
    }
  }

  void end() {
    if (is_over()) return;
    if (plan_.end == ending::reset) return wire_.reset();
    wire_.close();
  }

 private:
  bool script_sent() const { return at_ == plan_.script.size(); }
  bool all_sent() const { return script_sent() && (plan_.block.empty() || block_sent_ >= plan_.block_bytes); }

  bool may_send(clock::time_point now) const {
    if (!result_.connected || now < not_before_) return false;
    if (script_sent() || offset_ > 0 || now >= not_before_ + answer_awaited) return true;
    const piece& next = plan_.script[at_];
    return (!next.after_answer || heard_at_last_piece_ != result_.received) &&
           (!next.names_answer || !answers_.empty());
  }

  // The bytes of the piece that is next, with the id of an answer where it names one.
  const std::string& next_piece() {
    const piece& next = plan_.script[at_];
    if (!next.names_answer) return next.bytes;
    if (offset_ > 0) return named_;
    named_ = next.bytes;
    const std::string id = answers_.empty() ? std::string(32, '0') : answers_[index_ % answers_.size()];
    for (auto at = named_.find(an_answer); at != named_.npos; at = named_.find(an_answer, at + id.size()))
      named_.replace(at, an_answer.size(), id);
    return named_;
  }

  void wait_until(int pause_ms) { not_before_ = clock::now() + milliseconds(pause_ms); }

  std::string_view next_bytes() {
    if (!script_sent()) return std::string_view(next_piece()).substr(offset_);
    return std::string_view(plan_.block).substr(offset_);
  }

  void write() {
    const clock::time_point now = clock::now();
    for (int i = 0; i < 64 && !all_sent() && may_send(now); ++i) {
      const auto some = next_bytes();
      const auto moved = some.empty() ? socket::moved{} : wire_.send(some);
      result_.sent += moved.bytes;
      said_ = last_ = now;
      if (moved.now == socket::state::over) return lost();
      advance(moved.bytes, some.size());
      if (moved.now == socket::state::full) break;
    }
    if (all_sent() && plan_.end == ending::half_close && !finished_) {
      wire_.finish();
      finished_ = true;
    }
    watch(now);
  }

  void advance(std::size_t bytes, std::size_t whole) {
    offset_ += bytes;
    if (script_sent()) block_sent_ += bytes;
    if (bytes < whole) return;
    offset_ = 0;
    if (script_sent()) return;
    ++at_;
    heard_at_last_piece_ = result_.received;
    if (!script_sent()) wait_until(plan_.script[at_].pause_ms);
  }

  void read(std::size_t most) {
    std::array<char, 64 * 1024> bytes;
    const auto got = wire_.receive(std::span(bytes).first(most));
    result_.received += got.bytes;
    const std::size_t room = heard_bytes - result_.heard.size();
    result_.heard.append(bytes.data(), std::min(room, got.bytes));
    if (got.bytes > 0) last_ = clock::now();
    if (auto id = told_ ? std::string() : answer_in(result_.heard); !id.empty()) {
      told_ = true;
      answers_.push_back(std::move(id));
    }
    if (got.now == socket::state::over) return lost();
    if (got.bytes > 0) watch(last_);
  }

  // Watches for room to send only while the line may send; in a pause epoll would report room all the time.
  void watch(clock::time_point now) {
    const bool out = !all_sent() && may_send(now);
    const unsigned wanted = (out ? unsigned{EPOLLOUT} : 0u) | (watched_ & EPOLLIN);
    if (wanted == watched_) return;
    watched_ = wanted;
    epoll_event e{watched_, {.u64 = index_}};
    epoll_ctl(poll_, EPOLL_CTL_MOD, wire_.fd(), &e);
  }

  void lost() {
    result_.ended_by_peer = true;
    wire_.close();
  }

  const conversation& plan_;
  socket wire_;
  int poll_;
  std::size_t index_;
  std::vector<std::string>& answers_;
  outcome result_;
  std::string named_;  // the piece that is being sent, if it names an answer
  bool told_ = false;  // the id of its answer
  unsigned watched_ = 0;
  std::size_t at_ = 0, offset_ = 0, block_sent_ = 0, heard_at_last_piece_ = 0;
  bool finished_ = false;
  clock::time_point not_before_, said_ = clock::now(), last_ = said_;  // said_: the last of its own bytes
};

void run(std::vector<line>& lines, int poll, clock::time_point until) {
  std::array<epoll_event, 256> events;
  auto next_tick = clock::now() + tick;
  for (std::size_t open = lines.size(); open > 0 && clock::now() < until;) {
    const int n =
        epoll_wait(poll, events.data(), static_cast<int>(events.size()), static_cast<int>(tick.count()));
    for (int i = 0; i < n; ++i) {
      line& l = lines[events[i].data.u64];
      if (!l.is_over()) l.on_event(events[i].events);
    }
    const auto now = clock::now();
    if (now < next_tick) continue;
    next_tick = now + tick;
    open = 0;
    for (line& l : lines) {
      if (l.is_over()) continue;
      l.on_tick(now);
      ++open;
    }
  }
}

std::size_t answers_in(const std::string& heard) {
  // Every answer has the line, and no body can hold it: a line end inside JSON is escaped.
  constexpr std::string_view mark = "\r\nx-request-id: ";
  std::size_t n = 0;
  for (std::size_t at = heard.find(mark); at != heard.npos; at = heard.find(mark, at + 1)) ++n;
  return n;
}

}  // namespace

std::vector<outcome> hold(const target& t, const std::vector<conversation>& all, milliseconds limit) {
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  const auto until = clock::now() + limit;
  std::vector<line> lines;
  lines.reserve(all.size());
  std::vector<std::string> answers;
  for (const conversation& c : all) lines.emplace_back(c, t.port, poll, lines.size(), answers);
  run(lines, poll, until);
  std::vector<outcome> results;
  results.reserve(lines.size());
  for (line& l : lines) {
    l.end();
    results.push_back(l.result());
  }
  close(poll);
  return results;
}

std::string complaint(const conversation& c, const outcome& o) {
  if (o.sent > c.most_taken) {
    return c.what + ": " + std::to_string(o.sent) + " bytes were taken, and at most " +
           std::to_string(c.most_taken) + " should be";
  }
  if (const auto n = answers_in(o.heard); n > c.most_answers) {
    return c.what + ": " + std::to_string(n) + " answers, and at most " + std::to_string(c.most_answers) +
           " should be given:\n" + o.heard.substr(0, 2000);
  }
  if (!c.must_not_hear.empty() && o.heard.find(c.must_not_hear) != o.heard.npos)
    return c.what + ": it was told «" + c.must_not_hear + "»:\n" + o.heard.substr(0, 2000);
  return {};
}

}  // namespace weir::stranger
