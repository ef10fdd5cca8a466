// http_gate.h — what becomes of a request, by its header alone: it comes in, it becomes a WebSocket, or it is
// answered at the gate with a refusal or a preflight's answer.
//
// The gate reads no body and writes nothing. A refusal says whether the connection may go on: the body of a
// refused request stands before the next request, so a short body is read first, and a long one ends the
// connection.
//
// Thread safety: a gate is constant, and any thread may ask it.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/beast/http/message.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "net/http/http_answer.h"
#include "net/http/router.h"
#include "net/hub.h"
#include "net/ws/admission.h"

namespace weir::net {

using http_header = boost::beast::http::request_header<>;

// A header that was read, and what the connection knows beside it.
struct http_arrival {
  const http_header& header;
  std::optional<std::uint64_t> body_bytes = 0;  // as announced; nullopt: the body comes in chunks
  bool bytes_behind = false;                    // bytes came behind the header
  bool crowded = false;                         // address_book::entry::crowded()
  bool reserved = false;                        // the connection has a place of the reserve (net/reserve.h)
  bool draining = false;                        // the server drains
  std::int64_t now_ms = 0;                      // Unix time in ms
  boost::asio::ip::address peer = {};           // where the connection comes from
};

// The request is read to its end and answered by its route.
struct comes_in {
  route_match to;
  bearer from;  // who sends the request; nobody for a route that needs no key
  std::size_t most_body = 0;  // bytes
};
// The connection becomes a WebSocket. `how` has neither the caller's entry nor memory nor a request id.
struct upgrades {
  admission how;
  bool responses = false;  // it speaks the Responses API; else weir.v1
};
// The request is answered without its body. `with.close` is final.
struct turned_away {
  reply with;
  bool reads_body_first = false;  // so that the next request can be read
};

struct http_verdict {
  answer_form form;         // of the answer, without a request id
  bool keep_alive = false;  // the client would send another request
  std::variant<comes_in, upgrades, turned_away> what;
};

class http_gate {
 public:
  // `options`, `known` and `by` must outlive the gate. `by`: where connections come in.
  http_gate(const server_options& options, const known_bearers& known, const entrance& by)
      : options_(options), known_(known), by_(by) {}

  http_verdict judge(const http_arrival& a) const;

  // The refusal of a body that proved too long while it was read. `most`: comes_in::most_body.
  static reply body_too_large(std::size_t most);
  // The refusal of bytes that could not be read as a request, which ends the connection. `late`: the time of
  // the read was over. nullopt: the client is gone, or nothing can be said to it.
  std::optional<reply> unreadable(boost::system::error_code why, bool late) const;

 private:
  using sender = boost::system::result<bearer, token_fault>;

  std::variant<comes_in, upgrades, turned_away> decide(const http_arrival& a, const cors_verdict& cors) const;
  turned_away turn_away(const http_arrival& a, reply with) const;
  found_route route_of(const http_header& h) const;

  // Each returns the refusal of a request; nullopt: nothing speaks against it.
  std::optional<reply> judge_connection(const http_arrival& a) const;
  std::optional<reply> judge_host(const http_header& h) const;
  std::optional<reply> judge_key(const http_header& h, const sender& from, const found_route& found) const;
  std::optional<reply> judge_token(const http_header& h, const bearer& from,
                                   std::optional<endpoint> to) const;
  std::optional<reply> judge_route(const http_header& h, const found_route& found) const;
  std::optional<reply> judge_admin(const http_arrival& a, const sender& from, const found_route& found) const;
  // A connection of the reserve is for health alone, or for whatever an entrance for metrics serves.
  std::optional<reply> judge_reserved(const http_arrival& a, const found_route& found) const;
  std::optional<reply> judge_body(const http_arrival& a, std::size_t most) const;
  // The headers of a WebSocket's handshake.
  std::optional<reply> judge_handshake(const http_arrival& a) const;
  // The same of one that speaks the Responses API: its key is in a header.
  std::optional<reply> judge_response_socket(const http_arrival& a, admission& how) const;
  // What the handshakes of both have to be beside the rest.
  std::optional<reply> judge_rest(const http_arrival& a) const;
  // Fills `how`.
  std::optional<reply> judge_upgrade(const http_arrival& a, admission& how) const;

  const server_options& options_;
  const known_bearers& known_;
  const entrance& by_;
};

// All lines of a field in order, joined by commas; nullopt: there is none.
std::optional<std::string> joined_lines(const http_header& h, boost::beast::http::field name);

}  // namespace weir::net
