// talk.h — one connection's half of a conversation, without the connection: what to send for a request, and
// what the bytes that come back mean. weir.v1 and OpenAI's streams look the same from here.
//
// Thread safety: none; one owner.
// Invariant: every ask() is followed by exactly one of done, refused, failed or closed.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "net/load/http_wire.h"
#include "net/load/record.h"
#include "net/load/url.h"
#include "net/load/ws_wire.h"

namespace weir::load {

struct question {
  std::string id;               // [a-z0-9]
  std::string prompt;
  std::uint32_t max_tokens = 16;
};

// What is the same for every request of a run.
struct manner {
  target to;
  std::string key, model;
  boost::json::object extra;    // fields put into every request, over ours
};

struct happening {
  enum class kind { opened, tokens, done, refused, failed, closed };
  kind is = kind::opened;
  std::uint32_t n = 1;                      // of tokens, as are these:
  std::optional<std::uint64_t> seq;         // of done, too
  std::optional<micros> sampled;
  std::string_view text;                    // until the next call
  std::uint64_t input_tokens = 0, output_tokens = 0;  // of done; 0: not said
  bool cancelled = false;                   // of done
  std::string why;                          // of refused, failed, closed
  std::uint16_t code = 0;                   // of closed
};

// weir.v1 over a WebSocket.
class weir_talk {
 public:
  explicit weir_talk(const manner& m, std::uint64_t random);

  std::string hello() const;
  std::string ask(const question& q);
  std::string cancel() const;
  void feed(std::string_view bytes) { reader_.feed(bytes); }
  bool next(happening& h);
  bool ended(happening& h);
  std::string take_to_send() { return std::exchange(to_send_, {}); }  // answers to pings
  bool reusable() const { return true; }

 private:
  bool understand(std::string_view message, happening& h);
  std::uint32_t mask() {
    return static_cast<std::uint32_t>(random_ = random_ * 6364136223846793005u + 1442695040888963407u);
  }

  const manner* m_;
  std::uint64_t random_;
  std::string nonce_;
  ws_reader reader_;
  std::string lane_, to_send_, text_;
  bool open_ = false;           // a response is
};

// Completions and chat completions over server-sent events.
class openai_talk {
 public:
  explicit openai_talk(const manner& m) : m_(&m) {}

  std::string hello() const { return {}; }
  std::string ask(const question& q);
  std::string cancel() const { return {}; }  // there is no word for it: hang up
  void feed(std::string_view bytes) { reader_.feed(bytes); }
  bool next(happening& h);
  bool ended(happening& h);
  std::string take_to_send() { return {}; }
  bool reusable() const { return keeps_alive_; }

 private:
  bool understand(std::string_view data, happening& h);
  bool conclude(happening& h);

  const manner* m_;
  http_reader reader_;
  sse_reader events_;
  std::string body_, text_, why_;
  int status_ = 0;
  bool keeps_alive_ = true, open_ = false, finished_ = false;
  std::uint64_t input_tokens_ = 0, output_tokens_ = 0;
};

class talk {
 public:
  talk(const manner& m, std::uint64_t random);

  std::string hello() const { return std::visit([](auto& t) { return t.hello(); }, how_); }
  bool opens_itself() const { return std::holds_alternative<openai_talk>(how_); }  // no `opened` will come
  std::string ask(const question& q) { return std::visit([&](auto& t) { return t.ask(q); }, how_); }
  // Empty: hang up instead.
  std::string cancel() const { return std::visit([](auto& t) { return t.cancel(); }, how_); }
  void feed(std::string_view bytes) { std::visit([&](auto& t) { t.feed(bytes); }, how_); }
  // False: nothing more until the next feed().
  bool next(happening& h) { return std::visit([&](auto& t) { return t.next(h); }, how_); }
  // The connection has ended: true where that ended a response.
  bool ended(happening& h) { return std::visit([&](auto& t) { return t.ended(h); }, how_); }
  std::string take_to_send() { return std::visit([](auto& t) { return t.take_to_send(); }, how_); }
  bool reusable() const { return std::visit([](auto& t) { return t.reusable(); }, how_); }

 private:
  std::variant<openai_talk, weir_talk> how_;
};

}  // namespace weir::load
