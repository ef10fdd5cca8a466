// ws_wire.h — the client side of the WebSocket protocol (RFC 6455) without extensions and without a socket:
// makes frames, and reads messages from bytes.
//
// It does not use Beast, the server's library, for two reasons: the reader knows how many frames one read of
// the socket had, and a fault of Beast cannot hide on both sides.
//
// Thread safety: a reader has one owner; functions are pure, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::load {

// 16 bytes in base64, made of a random number.
std::string ws_nonce(std::uint64_t random);
// The request for an upgrade. `nonce`: 16 bytes in base64, 24 characters. `key`: API key; empty: none.
std::string ws_request(std::string_view authority, std::string_view path, std::string_view nonce,
                       std::string_view key);
// The Sec-WebSocket-Accept that a server must answer to a nonce.
std::string ws_accept(std::string_view nonce);

enum class ws_opcode : std::uint8_t { text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

// Appends one masked frame.
void append_ws_frame(std::string& out, ws_opcode op, std::string_view payload, std::uint32_t mask);

// Reads what a server sends after a request for an upgrade.
class ws_reader {
 public:
  explicit ws_reader(std::string nonce) : nonce_(std::move(nonce)) {}

  enum class kind { more, upgraded, refused, message, ping, closed, broken };
  struct item {
    kind is = kind::more;
    // Of message and ping; of refused: the body, as far as it came; of broken: the reason. Valid until the
    // next call.
    std::string_view payload;
    std::uint16_t code = 0;     // of closed: its code, 1005 if it has none; of refused: the HTTP status
  };

  // Bytes from the connection come in one of two ways: room() is filled from its beginning and took() says
  // with how many bytes, or feed() copies them.
  std::span<char> room();
  void took(std::size_t n) { end_ += n; }
  void feed(std::string_view bytes);
  // The next item; `more`: nothing until more bytes come.
  item next();

  static constexpr std::size_t largest_message = 64 << 20;

 private:
  item read_head();
  item read_frame();
  item fail(std::string why);

  std::string_view unread() const { return {bytes_.data() + at_, end_ - at_}; }

  // What every frame needs comes first: thousands of readers fit no cache.
  std::vector<char> bytes_;
  std::size_t at_ = 0, end_ = 0;  // offsets in bytes_ of the bytes that are not read yet
  bool upgraded_ = false, over_ = false, inside_ = false;
  std::string nonce_, why_, message_;
};

}  // namespace weir::load
