#include "net/load/ws_wire.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cstring>

#include "net/load/http_wire.h"

namespace weir::load {
namespace {

constexpr std::size_t least_room = 4096;       // bytes of an idle reader's buffer
constexpr std::size_t kept_bytes = 16 * 1024;  // most that an idle reader keeps

std::string base64(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int n =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(n));
  return out;
}

}  // namespace

std::string ws_nonce(std::uint64_t random) {
  static constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef";
  std::string nonce;
  for (int i = 0; i < 21; ++i, random = random * 6364136223846793005u + 1442695040888963407u)
    nonce += letters[random >> 59];
  return nonce + "A==";  // the last character's low bits must be 0, since a nonce has 16 bytes
}

std::string ws_request(std::string_view authority, std::string_view path, std::string_view nonce,
                       std::string_view key) {
  std::string out = "GET ";
  out.append(path).append(" HTTP/1.1\r\nHost: ").append(authority);
  out.append(
      "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ");
  out.append(nonce).append("\r\nSec-WebSocket-Protocol: weir.v1\r\n");
  if (!key.empty()) out.append("Authorization: Bearer ").append(key).append("\r\n");
  return out.append("\r\n");
}

std::string ws_accept(std::string_view nonce) {
  std::string text(nonce);
  text += "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455, section 1.3
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return base64({reinterpret_cast<const char*>(digest), sizeof digest});
}

void append_ws_frame(std::string& out, ws_opcode op, std::string_view payload, std::uint32_t mask) {
  out += static_cast<char>(0x80 | static_cast<std::uint8_t>(op));
  const auto n = payload.size();
  const auto big_endian = [&](std::uint64_t v, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(v >> (8 * i));
  };
  if (n < 126) {
    out += static_cast<char>(0x80 | n);
  } else if (n < 65536) {
    out += static_cast<char>(0x80 | 126);
    big_endian(n, 2);
  } else {
    out += static_cast<char>(0x80 | 127);
    big_endian(n, 8);
  }
  big_endian(mask, 4);
  for (std::size_t i = 0; i < n; ++i)
    out += static_cast<char>(payload[i] ^ static_cast<char>(mask >> (8 * (3 - i % 4))));
}

// Most of the time everything was read, and the room is the whole buffer from its beginning.
std::span<char> ws_reader::room() {
  if (at_ == end_) {
    at_ = end_ = 0;
    if (bytes_.size() > kept_bytes) std::vector<char>(least_room).swap(bytes_);
  } else if (at_ > 0 && bytes_.size() - end_ < least_room) {
    std::memmove(bytes_.data(), bytes_.data() + at_, end_ - at_);
    end_ -= at_;
    at_ = 0;
  }
  if (bytes_.size() - end_ < least_room / 2) bytes_.resize(std::max(least_room, 2 * bytes_.size()));
  return std::span(bytes_).subspan(end_);
}

void ws_reader::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto into = room();
    const auto part = bytes.substr(0, into.size());
    std::memcpy(into.data(), part.data(), part.size());
    took(part.size());
    bytes.remove_prefix(part.size());
  }
}

ws_reader::item ws_reader::next() {
  if (over_) return {};
  return upgraded_ ? read_frame() : read_head();
}

ws_reader::item ws_reader::fail(std::string why) {
  over_ = true;
  why_ = std::move(why);
  item i;
  i.is = kind::broken;
  i.payload = why_;
  return i;
}

ws_reader::item ws_reader::read_head() {
  const std::string_view all = unread();
  const auto end = all.find("\r\n\r\n");
  if (end == all.npos) return all.size() > http_reader::longest_head ? fail("an endless header") : item{};
  const auto head = all.substr(0, end + 2);
  at_ += end + 4;
  const auto status = http_status(head);
  item i;
  if (status != 101) {
    over_ = true;
    why_ = all.substr(end + 4);
    i.is = kind::refused;
    i.code = static_cast<std::uint16_t>(status);
    i.payload = why_;
    return i;
  }
  if (http_header(head, "sec-websocket-accept") != ws_accept(nonce_))
    return fail("a wrong Sec-WebSocket-Accept");
  upgraded_ = true;
  i.is = kind::upgraded;
  return i;
}

ws_reader::item ws_reader::read_frame() {
  for (;;) {
    const std::string_view all = unread();
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(all[i]); };
    if (all.size() < 2) return {};
    const std::uint8_t op = byte(0) & 0x0F;
    const bool last = byte(0) & 0x80;
    if (byte(0) & 0x70) return fail("a frame with reserved bits");
    if (byte(1) & 0x80) return fail("a masked frame from a server");
    std::uint64_t length = byte(1) & 0x7F;
    const std::size_t more = length == 126 ? 2 : length == 127 ? 8 : 0;
    if (all.size() < 2 + more) return {};
    if (more) length = 0;
    for (std::size_t i = 0; i < more; ++i) length = length << 8 | byte(2 + i);
    if (op >= 8 && (length > 125 || !last)) return fail("a control frame too long or in parts");
    if (length > largest_message) return fail("a frame too long");
    if (all.size() < 2 + more + length) return {};
    const auto payload = all.substr(2 + more, length);
    at_ += 2 + more + length;
    item i;
    switch (op) {
      case 0:
      case 1:
      case 2:
        if ((op == 0) != inside_) return fail("a frame that continues nothing, or is not continued");
        if (!inside_ && last) {
          i.is = kind::message;
          i.payload = payload;
          return i;
        }
        if (!inside_) message_.clear();
        message_ += payload;
        inside_ = !last;
        if (message_.size() > largest_message) return fail("a message too long");
        if (inside_) continue;
        i.is = kind::message;
        i.payload = message_;
        return i;
      case 8:
        over_ = true;
        i.is = kind::closed;
        i.code = payload.size() >= 2 ? static_cast<std::uint16_t>(static_cast<std::uint8_t>(payload[0]) << 8 |
                                                                  static_cast<std::uint8_t>(payload[1]))
                                     : 1005;
        return i;
      case 9:
        i.is = kind::ping;
        i.payload = payload;
        return i;
      case 10:
        continue;
      default:
        return fail("a frame of an unknown kind");
    }
  }
}

}  // namespace weir::load
