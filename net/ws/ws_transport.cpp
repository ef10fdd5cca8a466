#include "net/ws/ws_transport.h"

#include <boost/asio/write.hpp>
#include <chrono>

namespace weir::net {

namespace asio = boost::asio;

std::string_view text_frame::finish() noexcept {
  constexpr unsigned char final_text = 0x81, in_two_bytes = 126, in_eight_bytes = 127;
  const std::uint64_t size = bytes_.size() - room;
  const std::size_t length_bytes = size < in_two_bytes ? 0 : size <= 0xFFFF ? 2 : 8;
  const std::size_t begins = room - 2 - length_bytes;
  bytes_[begins] = static_cast<char>(final_text);
  bytes_[begins + 1] = static_cast<char>(length_bytes == 0   ? size
                                         : length_bytes == 2 ? in_two_bytes
                                                             : in_eight_bytes);
  for (std::size_t i = 0; i < length_bytes; ++i) bytes_[room - 1 - i] = static_cast<char>(size >> 8 * i);
  return std::string_view(bytes_).substr(begins);
}

ws_transport::ws_transport(socket s, ws_frame_watch incoming, std::size_t most_dropped)
    : s_(std::make_shared<state>(std::move(s), std::move(incoming), most_dropped)) {
  error_code ignored;                      // fails only on a socket that is closed already
  s_->socket.non_blocking(true, ignored);  // otherwise a write could block the shard
}

std::string_view ws_transport::state::try_write(std::string_view frame) {
  error_code ec;  // ignored: an error that lasts is reported again, by write_rest()
  if (!beast_writes) frame.remove_prefix(socket.write_some(asio::buffer(frame), ec));
  return frame;
}

void ws_transport::state::write(std::string_view rest_of_frame, std::function<void(error_code)> done) {
  rest = rest_of_frame;
  told = std::move(done);
  if (!beast_writes) write_rest();
}

void ws_transport::state::write_rest() {
  asio::async_write(socket, asio::buffer(rest), [s = shared_from_this()](error_code ec, std::size_t) {
    s->rest = {};
    s->let_beast_write();
    std::exchange(s->told, nullptr)(ec);
  });
}

std::size_t ws_transport::state::admit(std::span<const unsigned char> bytes) {
  const std::size_t passed = deaf() ? 0 : incoming.admit(bytes, std::chrono::steady_clock::now());
  dropped += bytes.size() - passed;
  return passed;
}

void ws_transport::state::tell_refusal() {
  const auto why = incoming.found();
  if (why != ws_frame_watch::verdict::fine && refusal_told) std::exchange(refusal_told, nullptr)(why);
}

void ws_transport::state::say_last(std::uint16_t code) {
  constexpr char final_close = static_cast<char>(0x88);
  last_frame = {final_close, 2, static_cast<char>(code >> 8), static_cast<char>(code)};
  said_last = true;
  const auto shut = [this] {
    error_code ignored;
    socket.shutdown(socket::shutdown_send, ignored);
  };
  const std::string_view unsent = try_write({last_frame.data(), last_frame.size()});
  if (unsent.empty()) return shut();
  write(unsent, [shut](error_code) { shut(); });  // the operation keeps this state alive
}

void ws_transport::state::beast_is_done() {
  beast_writes = false;
  if (!rest.empty()) write_rest();
}

void ws_transport::state::let_beast_write() {
  if (!std::exchange(beast_waits, false)) return;
  beast_writes = true;  // from now on the session's frames wait
  beast_may_write.cancel();
}

void ws_transport::close() {
  error_code ignored;
  s_->socket.close(ignored);
  s_->let_beast_write();  // Beast's write then fails, because the socket is closed
}

}  // namespace weir::net
