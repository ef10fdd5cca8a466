// ws_wire.h — the client's half of RFC 6455 without a socket: bytes in, messages out.
//
// It is written out here, rather than taken from the library that the server stands on, for two reasons: the
// reader knows how many frames one read of the socket held, and a mistake of that library cannot hide on both
// sides. No extensions. Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::load {

// The upgrade; `nonce` is 24 characters of base64, `key` an API key or empty.
std::string ws_request(std::string_view authority, std::string_view path, std::string_view nonce,
                       std::string_view key);
// What the server has to answer to a nonce.
std::string ws_accept(std::string_view nonce);

enum class ws_opcode : std::uint8_t { text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

// Appends one masked frame.
void append_ws_frame(std::string& out, ws_opcode op, std::string_view payload, std::uint32_t mask);

// What a server sends, after the upgrade was asked for.
class ws_reader {
 public:
  explicit ws_reader(std::string nonce) : nonce_(std::move(nonce)) {}

  enum class kind { more, upgraded, refused, message, ping, closed, broken };
  struct item {
    kind is = kind::more;
    std::string_view payload;   // of message and ping; of refused and broken: why; until the next call
    std::uint16_t code = 0;     // of closed (1005: none was given) and refused (the HTTP status)
  };

  void feed(std::string_view bytes);
  // Call until it says `more`.
  item next();

  static constexpr std::size_t largest_message = 64 << 20;

 private:
  item read_head();
  item read_frame();
  item fail(std::string why);

  std::string nonce_, why_, message_;
  std::string bytes_;
  std::size_t at_ = 0;          // read up to here
  bool upgraded_ = false, over_ = false, inside_ = false;
};

}  // namespace weir::load
