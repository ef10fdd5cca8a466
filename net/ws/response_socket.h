// response_socket.h — one WebSocket that speaks OpenAI's Responses API: its client sends response.create
// messages, and gets the events of one response after the other, each in a frame.
//
// Two coroutines on a shard: one reads messages, and the other answers them in their order. The client's
// messages that wait are bounded (most_waiting). The client that leaves cancels the job under way, unless the
// job was to go on (on_disconnect).
//
// Beside what is kept in the store (net/response_store.h), a connection remembers its last response with the
// whole conversation before it, also where that is not stored.
//
// Thread safety: everything on the shard.
#pragma once

#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstddef>

#include "net/hub.h"
#include "net/ws/admission.h"

namespace weir::net {

// Messages that a client may send ahead while one is answered.
inline constexpr std::size_t most_waiting = 8;

// Completes the handshake; the session lives by itself until the socket is gone.
// REQUIRES: `upgrade` is a WebSocket upgrade that may come in, of a client that is authenticated; called on
// the hub's shard.
void serve_responses(std::shared_ptr<hub> h, boost::beast::tcp_stream stream,
                     boost::beast::http::request<boost::beast::http::string_body> upgrade, admission how);

}  // namespace weir::net
