#include "tests/stranger/attack.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "tests/stranger/bytes.h"
#include "tests/stranger/frames.h"
#include "tests/stranger/request.h"
#include "tests/stranger/socket.h"

namespace weir::stranger {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds tick{20};
constexpr milliseconds sip_every{1000};
constexpr milliseconds again_after{250};  // a client that was dropped comes back
constexpr std::size_t sip_bytes = 5;
constexpr std::string_view place = "127.0.0.1:";

enum class manner { slow, mute, hostile };

struct client {
  manner how = manner::mute;
  bool websocket = false;
  socket wire;
  std::string unsent;
  bool answered = false;
  clock::time_point next{};  // of the next sip, message or connection
};

struct counts {
  std::size_t begun = 0, answered = 0, dropped = 0;  // connections
  std::size_t no_port = 0, messages = 0;
  std::size_t sent = 0, received = 0;
};

class siege {
 public:
  siege(const options& o, target t)
      : options_(o), target_(std::move(t)), draw_(o.seed), poll_(epoll_create1(EPOLL_CLOEXEC)) {
    const auto add = [this](manner how, std::size_t n) {
      for (; n > 0; --n) clients_.push_back({.how = how, .websocket = n % 2 == 0});
    };
    add(manner::hostile, o.hostile);
    add(manner::slow, o.slow);
    add(manner::mute, o.mute);
  }
  ~siege() { close(poll_); }

  void run() {
    const auto begun = clock::now(), until = begun + std::chrono::seconds(options_.seconds);
    std::array<epoll_event, 256> events;
    for (auto now = begun, next_tick = begun; now < until; now = clock::now()) {
      if (now >= next_tick) {
        next_tick = now + tick;
        for (std::size_t i = 0; i < clients_.size(); ++i) on_tick(i, now);
        say_hostile(now - begun);
      }
      const int n =
          epoll_wait(poll_, events.data(), static_cast<int>(events.size()), static_cast<int>(tick.count()));
      for (int i = 0; i < n; ++i)
        on_event(clients_[events[i].data.u64], events[i].events, events[i].data.u64);
    }
  }

  void report() const {
    static constexpr const char* names[] = {"slow", "mute", "hostile"};
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const counts& c = counts_[i];
      std::printf(
          "%s: %zu connections, %zu answered, %zu dropped, %zu without a port, %zu messages, %zu bytes sent, "
          "%zu received\n",
          names[i], c.begun, c.answered, c.dropped, c.no_port, c.messages, c.sent, c.received);
    }
  }

 private:
  counts& count(const client& c) { return counts_[static_cast<std::size_t>(c.how)]; }

  void on_tick(std::size_t index, clock::time_point now) {
    client& c = clients_[index];
    if (now < c.next) return;
    if (!c.wire.is_open()) return come(index, now);
    if (c.how != manner::slow) return;
    c.next = now + sip_every;
    read(c, sip_bytes);
  }

  void come(std::size_t index, clock::time_point now) {
    client& c = clients_[index];
    c.wire = socket(options_.from, target_.port, c.how == manner::slow);
    c.answered = false;
    c.next = now + again_after;
    if (!c.wire.is_open()) return void(++count(c).no_port);
    ++count(c).begun;
    c.unsent = first_words(c);
    if (c.how != manner::slow) c.next = now;
    watch(c, index, EPOLL_CTL_ADD);
  }

  std::string first_words(const client& c) {
    const job_shape endless{endless_tokens, true};
    if (c.websocket) return upgrade(draw_, target_).text();
    return c.how == manner::slow ? post(draw_, target_, completion(draw_, endless)).text() : std::string();
  }

  // Slow clients are read by the clock alone, once the answer to an upgrade has come.
  void watch(client& c, std::size_t index, int operation) {
    const bool read = c.how != manner::slow || (c.websocket && !c.answered);
    epoll_event e{(read ? unsigned{EPOLLIN} : 0u) | (c.unsent.empty() ? 0u : unsigned{EPOLLOUT}),
                  {.u64 = index}};
    epoll_ctl(poll_, operation, c.wire.fd(), &e);
  }

  void on_event(client& c, unsigned events, std::size_t index) {
    if (!c.wire.is_open()) return;
    if (events & EPOLLERR) return drop(c);
    if (events & (EPOLLIN | EPOLLHUP)) read(c, c.how == manner::slow ? 256 : 16 * 1024);
    if (c.wire.is_open() && !c.unsent.empty()) send(c);
    if (c.wire.is_open()) watch(c, index, EPOLL_CTL_MOD);
  }

  void read(client& c, std::size_t most) {
    std::array<char, 16 * 1024> bytes;
    const auto got = c.wire.receive(std::span(bytes).first(most));
    count(c).received += got.bytes;
    if (got.now == socket::state::over) return drop(c);
    if (got.bytes == 0 || c.answered) return;
    c.answered = true;
    ++count(c).answered;
    if (c.how == manner::slow && c.websocket)
      c.unsent += frame(op_text, create_message(draw_, "a", {endless_tokens}));
    if (c.how == manner::slow && c.websocket) send(c);
  }

  void send(client& c) {
    const auto some = c.wire.send(c.unsent);
    count(c).sent += some.bytes;
    c.unsent.erase(0, some.bytes);
    if (some.now == socket::state::over) drop(c);
  }

  void drop(client& c) {
    ++count(c).dropped;
    c.wire.close();
    c.next = clock::now() + again_after;
  }

  // The hostile clients send round-robin, so that all of them together send as much as was asked for.
  void say_hostile(clock::duration since) {
    const double due =
        std::chrono::duration<double>(since).count() * static_cast<double>(options_.messages_per_s);
    const std::size_t n = options_.hostile;
    for (std::size_t tried = 0; n > 0 && tried < n && static_cast<double>(said_) < due; ++tried) {
      const std::size_t index = sender_++ % n;
      client& c = clients_[index];
      if (!c.wire.is_open() || !c.unsent.empty() || (c.websocket && !c.answered)) continue;
      c.unsent = bad_message(c);
      ++said_;
      ++count(c).messages;
      send(c);
      if (c.wire.is_open()) watch(c, index, EPOLL_CTL_MOD);
    }
  }

  std::string bad_message(const client& c) {
    if (!c.websocket) return spoiled(draw_, target_, post(draw_, target_, hostile_body(draw_))).text();
    return draw_.chance(20) ? odd_frame(draw_) : frame(op_text, hostile_message(draw_, target_));
  }

  const options& options_;
  const target target_;
  random_source draw_;
  const int poll_;
  std::vector<client> clients_;  // hostile ones first
  std::array<counts, 3> counts_;
  std::size_t said_ = 0, sender_ = 0;
};

}  // namespace

int attack(const options& o) {
  target t;
  if (o.attack.starts_with(place))
    t.port = static_cast<std::uint16_t>(std::atoi(o.attack.c_str() + place.size()));
  if (t.port == 0) {
    std::fprintf(stderr, "stranger: --attack %s: has to be 127.0.0.1:PORT\n", o.attack.c_str());
    return 2;
  }
  if (!o.key.empty()) t.keys = {o.key};
  siege s(o, std::move(t));
  s.run();
  s.report();
  return 0;
}

}  // namespace weir::stranger
