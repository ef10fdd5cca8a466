// ws_session.h — one WebSocket that speaks weir.v1: its socket and its time.
//
// A coroutine on the shard reads: a read is always pending (pongs, closes and timeouts happen inside it).
// What a message means is decided in ws_conversation.h, which frame comes next in ws_frames.h, and why and
// how the session closes in ws_closing.h. ws_writer.h sends frames whenever there is news. The session ends
// with the socket. What happens to its jobs then: kept_jobs.h.
//
// Thread safety: everything on the shard.
#pragma once

#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include "net/hub.h"
#include "net/ws/ws_conversation.h"

namespace weir::net {

// Completes the handshake; the session lives by itself until the socket is gone.
// REQUIRES: `upgrade` is a WebSocket upgrade that may come in; called on the hub's shard.
void serve_websocket(std::shared_ptr<hub> h, boost::beast::tcp_stream stream,
                     boost::beast::http::request<boost::beast::http::string_body> upgrade, admission how);

}  // namespace weir::net
