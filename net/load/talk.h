// talk.h — the client side of a protocol, without a connection: makes the bytes of requests, and reads
// answers from bytes. weir.v1 and OpenAI's streams have the same interface.
//
// Thread safety: none; one owner. Invariant: a request ends with the first of done, refused, failed or closed
// after its ask().
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

// What all requests of a run have in common.
struct manner {
  target to;
  std::string key, model;
  boost::json::object extra;    // added to every request; replaces fields of the same name
};

struct happening {
  enum class kind { opened, tokens, done, refused, failed, closed };
  kind is = kind::opened;
  std::uint32_t n = 1;                      // of tokens: their number
  std::optional<std::uint64_t> seq;         // of tokens and done
  std::optional<micros> sampled;            // of tokens: when the last one was sampled, on the server's clock
  std::string_view text;                    // of tokens; valid until the next call
  std::uint64_t input_tokens = 0, output_tokens = 0;  // of done; 0: not reported
  bool cancelled = false;                   // of done
  std::string why;                          // of refused, failed, closed
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
  bool open_ = false;           // a response is under way
};

// Completions and chat completions over server-sent events.
class openai_talk {
 public:
  explicit openai_talk(const manner& m) : m_(&m) {}

  std::string hello() const { return {}; }
  std::string ask(const question& q);
  std::string cancel() const { return {}; }  // the protocol has no cancel
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

  // Bytes that open the session, which the event `opened` answers.
  std::string hello() const { return std::visit([](auto& t) { return t.hello(); }, how_); }
  bool opens_itself() const { return std::holds_alternative<openai_talk>(how_); }  // hello() is empty
  std::string ask(const question& q) { return std::visit([&](auto& t) { return t.ask(q); }, how_); }
  // Bytes that cancel the request; empty: the protocol has no cancel, so the connection has to be closed.
  std::string cancel() const { return std::visit([](auto& t) { return t.cancel(); }, how_); }
  void feed(std::string_view bytes) { std::visit([&](auto& t) { t.feed(bytes); }, how_); }
  // Writes the next event to `h`; returns false if there is none until the next feed().
  bool next(happening& h) { return std::visit([&](auto& t) { return t.next(h); }, how_); }
  // The connection has ended. Returns true, and the event in `h`, if a response was under way.
  bool ended(happening& h) { return std::visit([&](auto& t) { return t.ended(h); }, how_); }
  // Bytes that must be sent apart from requests: answers to pings.
  std::string take_to_send() { return std::visit([](auto& t) { return t.take_to_send(); }, how_); }
  // Whether the connection can carry another request.
  bool reusable() const { return std::visit([](auto& t) { return t.reusable(); }, how_); }

 private:
  std::variant<openai_talk, weir_talk> how_;
};

}  // namespace weir::load
