#include "net/ws/ws_socket.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/field.hpp>
#include <utility>

namespace weir::net {

namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;

void set_up(ws_stream& ws, const server_limits& l, ws_setup how) {
  ws.set_option(websocket::stream_base::timeout{l.handshake, l.silent, true});
  ws.set_option(websocket::stream_base::decorator(
      [id = std::move(how.request_id), ours = how.subprotocol](websocket::response_type& r) {
        r.set(http::field::server, "weir");
        r.set("x-request-id", id);
        if (!ours.empty()) r.set(http::field::sec_websocket_protocol, ours);
      }));
  ws.read_message_max(how.message_bytes);  // a second limit: the transport's watch refuses sooner
  ws.next_layer().on_refusal([refused = std::move(how.refused)](ws_frame_watch::verdict why) {
    const bool too_big = why == ws_frame_watch::verdict::too_big;
    refused(too_big ? close_code::too_big : close_code::too_many_messages);
  });
}

std::uint16_t reason_it_ended(const ws_closing& closing, const ws_stream& ws,
                              const boost::system::error_code& last_read) {
  const auto number = [](close_code c) { return static_cast<std::uint16_t>(c); };
  if (closing.code()) return number(*closing.code());
  if (last_read == websocket::error::closed)
    return ws.reason().code ? ws.reason().code : number(close_code::no_status);
  if (last_read == websocket::error::bad_frame_payload) return number(close_code::bad_payload);
  if (last_read == websocket::condition::protocol_violation) return number(close_code::protocol_fault);
  return number(close_code::abnormal);
}

void drop_unsent(ws_stream& ws) {
  boost::system::error_code ignored;
  ws.next_layer().get_socket().set_option(asio::socket_base::linger(true, 0), ignored);
}

}  // namespace weir::net
