// ws_session.h — one WebSocket that speaks weir.v1: a thin loop around ws_protocol and its lanes.
//
// A coroutine on the shard reads: a read is always pending (pongs, closes and timeouts happen inside it).
// Frames leave whenever there is news, one at a time, round-robin over lanes, by ws_transport's short way.
// While the socket takes no more, whatever is queued for a lane until it is served goes into one frame;
// there is no timer. Why and how the session closes is decided in ws_closing.h. The session ends with the
// socket: its jobs are cancelled, or left to the hub for their grace.
//
// Thread safety: everything on the shard.
#pragma once

#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include "net/hub.h"

namespace weir::net {

struct admission {
  bool authenticated = false;  // else session.auth has to come first
  bool wrong_key = false;      // a key or token came with the handshake, and is not known
  bearer from;                 // whose key or token let it in
  std::string origin;          // the Origin header; empty: there was none
  bool subprotocol = false;    // the client offered weir.v1
  address_book::entry caller;
  core::memory_hold memory;  // of the connection
  std::string request_id;
};

// Completes the handshake; the session lives by itself until the socket is gone.
// REQUIRES: `upgrade` is a WebSocket upgrade that may come in; called on the hub's shard.
void serve_websocket(std::shared_ptr<hub> h, boost::beast::tcp_stream stream,
                     boost::beast::http::request<boost::beast::http::string_body> upgrade, admission how);

}  // namespace weir::net
