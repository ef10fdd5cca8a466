// ws_frames.h — WebSocket frames as bytes, right ones and wrong ones (RFC 6455, section 5.2), and what a
// server said as words, so that a test compares one line of text.
#pragma once

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::tests::ws_bytes {

enum opcode : unsigned { more = 0, text = 1, binary = 2, closing = 8, ping = 9, pong = 10 };

// One frame in all its parts, each of which can be wrong.
struct frame {
  unsigned op = text;
  std::string payload = {};
  bool fin = true;
  unsigned rsv = 0;  // bits 4, 2, 1
  bool masked = true;
  int length_bytes = -1;                     // of the extended length: 0, 2 or 8; -1: as few as possible
  std::optional<std::uint64_t> length = {};  // none: the true length
  std::uint32_t key = 0x9b04f2d7;
};

inline std::string bytes_of(const frame& f) {
  const std::uint64_t length = f.length.value_or(f.payload.size());
  const int extended = f.length_bytes >= 0 ? f.length_bytes : length < 126 ? 0 : length <= 0xffff ? 2 : 8;
  const unsigned short_length = extended == 0 ? static_cast<unsigned>(length) : extended == 2 ? 126 : 127;
  std::string out;
  out += static_cast<char>((f.fin ? 0x80 : 0) | f.rsv << 4 | f.op);
  out += static_cast<char>((f.masked ? 0x80 : 0) | short_length);
  for (int i = extended - 1; i >= 0; --i) out += static_cast<char>(length >> 8 * i);
  if (!f.masked) return out + f.payload;
  std::string key;
  for (int i = 3; i >= 0; --i) key += static_cast<char>(f.key >> 8 * i);
  out += key;
  for (std::size_t i = 0; i < f.payload.size(); ++i) out += static_cast<char>(f.payload[i] ^ key[i % 4]);
  return out;
}

inline std::string whole(unsigned op, std::string_view payload = {}) {
  return bytes_of({.op = op, .payload = std::string(payload)});
}
inline std::string part(unsigned op, std::string_view payload, bool fin = false) {
  return bytes_of({.op = op, .payload = std::string(payload), .fin = fin});
}
inline std::string close_frame(unsigned code, std::string_view reason = {}) {
  std::string payload{static_cast<char>(code >> 8), static_cast<char>(code)};
  return whole(closing, payload.append(reason));
}

// A message in fragments of `size` bytes, with `between` before each but the first.
inline std::string in_fragments(std::string_view message, std::size_t size, std::string_view between = {}) {
  std::string out;
  for (std::size_t at = 0; at == 0 || at < message.size(); at += size) {
    if (at > 0) out += between;
    out += part(at == 0 ? text : more, message.substr(at, size), at + size >= message.size());
  }
  return out;
}

// ask(): a ping of weir.v1, which serves as an echo. filled(): the same in `size` bytes; JSON may end in
// spaces.
inline std::string ask(std::string_view ts) { return fmt::format(R"({{"type":"ping","ts":{}}})", ts); }
inline std::string filled(std::string_view ts, std::size_t size) {
  std::string out = ask(ts);
  REQUIRE(out.size() <= size);
  out.resize(size, ' ');
  return out;
}

// ---- what the server said

inline std::string member(std::string_view json, std::string_view name) {
  const auto at = json.find(fmt::format("\"{}\":", name));
  if (at == json.npos) return {};
  auto from = json.substr(at + name.size() + 3);
  if (from.starts_with('"')) return std::string(from.substr(1, from.find('"', 1) - 1));
  return std::string(from.substr(0, from.find_first_of(",}")));
}

inline std::string word_for(unsigned op, std::string_view payload) {
  if (op == text) {
    const std::string type = member(payload, "type");
    if (type == "pong") return "pong " + member(payload, "ts");
    if (type == "error") return "error " + member(payload, "code");
    return type;
  }
  if (op == pong) return fmt::format("PONG {}", payload);
  if (op != closing) return fmt::format("opcode {}", op);
  if (payload.size() < 2) return "close";
  return fmt::format("close {}",
                     static_cast<unsigned char>(payload[0]) << 8 | static_cast<unsigned char>(payload[1]));
}

inline const std::string no_frame = "no frame of a server", torn = "a piece of a frame";

// Every frame as a word. A server's frame is whole and without a mask; other bytes are `no_frame` or `torn`.
inline std::vector<std::string> words_of(std::string_view bytes) {
  std::vector<std::string> out;
  while (!bytes.empty()) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    if (bytes.size() < 2 || (byte(0) & 0xf0) != 0x80 || (byte(1) & 0x80)) {
      out.push_back(no_frame);
      break;
    }
    const std::size_t extended = byte(1) < 126 ? 0 : byte(1) == 126 ? 2 : 8;
    std::uint64_t length = extended ? 0 : byte(1);
    for (std::size_t i = 0; i < extended && i + 2 < bytes.size(); ++i) length = length << 8 | byte(2 + i);
    if (bytes.size() < 2 + extended + length) {
      out.push_back(torn);
      break;
    }
    out.push_back(word_for(byte(0) & 0x0f, bytes.substr(2 + extended, length)));
    bytes.remove_prefix(2 + extended + length);
  }
  return out;
}

}  // namespace weir::tests::ws_bytes
