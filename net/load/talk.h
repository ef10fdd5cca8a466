// talk.h — the client side of a protocol, without a connection: makes the bytes of requests, and reads
// answers from bytes. weir.v1 and OpenAI's streams have the same interface.
//
// Thread safety: none; one owner. Invariant: a request ends with the first of done, refused, failed or closed
// after its ask() or resume().
#pragma once

#include <variant>

#include "net/load/openai_talk.h"
#include "net/load/weir_talk.h"

namespace weir::load {

class talk {
 public:
  talk(const manner& m, std::uint64_t random) : how_(std::in_place_type<openai_talk>, m) {
    if (m.to.speaks == protocol::weir) how_.emplace<weir_talk>(m, random);
  }

  // Bytes that open the session, which the event `opened` answers.
  std::string hello() const { return std::visit([](auto& t) { return t.hello(); }, how_); }
  bool opens_itself() const { return std::holds_alternative<openai_talk>(how_); }  // hello() is empty
  std::string ask(const question& q) { return std::visit([&](auto& t) { return t.ask(q); }, how_); }
  // Bytes that resume, on a new lane, an answer that another connection began. The first token is the one
  // after the token `after`. REQUIRES: weir.v1.
  std::string resume(std::string_view lane, std::string_view response_id, std::uint64_t after) {
    return std::visit([&](auto& t) { return t.resume(lane, response_id, after); }, how_);
  }
  // Bytes that cancel the request; empty: the protocol has no cancel, so the connection has to be closed.
  std::string cancel() { return std::visit([](auto& t) { return t.cancel(); }, how_); }
  // Bytes from the connection come in one of two ways: room() is filled and took() says with how many bytes,
  // or feed() copies them. After each, next() is called until it returns false.
  std::span<char> room() { return std::visit([](auto& t) { return t.room(); }, how_); }
  void took(std::size_t n) { std::visit([&](auto& t) { t.took(n); }, how_); }
  void feed(std::string_view bytes) { std::visit([&](auto& t) { t.feed(bytes); }, how_); }
  // Writes the next event to `h`; returns false if there is none until more bytes come.
  bool next(happening& h) { return std::visit([&](auto& t) { return t.next(h); }, how_); }
  // The connection has ended. Returns true, and the event in `h`, if a response was under way.
  bool ended(happening& h) { return std::visit([&](auto& t) { return t.ended(h); }, how_); }
  // Bytes that must be sent apart from requests: answers to pings, and acknowledgements.
  std::string take_to_send() { return std::visit([](auto& t) { return t.take_to_send(); }, how_); }
  // Whether the connection can carry another request.
  bool reusable() const { return std::visit([](auto& t) { return t.reusable(); }, how_); }

 private:
  std::variant<openai_talk, weir_talk> how_;
};

}  // namespace weir::load
