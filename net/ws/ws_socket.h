// ws_socket.h — what every WebSocket of the server is set up with, and how one says why it ended: the
// sessions of weir.v1 (ws_session.h) and of responses (response_socket.h) both begin and end like this.
//
// Thread safety: the socket's shard.
#pragma once

#include <boost/beast/websocket/stream.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "net/limits.h"
#include "net/ws/ws_closing.h"
#include "net/ws/ws_transport.h"

namespace weir::net {

using ws_stream = boost::beast::websocket::stream<ws_transport, false>;

// What differs between the sockets.
struct ws_setup {
  std::size_t message_bytes = 0;                 // largest message that is taken
  std::string request_id;                        // of the answer to the upgrade
  std::string_view subprotocol = {};             // that the answer names, a constant; empty: none
  std::function<void(close_code)> refused = {};  // called where the transport refuses a frame
};

// Sets timeouts, headers and bounds, before the handshake.
void set_up(ws_stream& ws, const server_limits& l, ws_setup how);

// The server's reason where it has one, else how the last read ended.
std::uint16_t reason_it_ended(const ws_closing& closing, const ws_stream& ws,
                              const boost::system::error_code& last_read);

// Closing the socket drops what the kernel still holds for a reader that is too slow.
void drop_unsent(ws_stream& ws);

}  // namespace weir::net
