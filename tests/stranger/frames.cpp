#include "tests/stranger/frames.h"

#include "tests/stranger/bytes.h"

namespace weir::stranger {
namespace {

constexpr char mask[4] = {'\x37', '\xfa', '\x21', '\x3d'};

// The length in the form that `bytes` says: 0 within the second byte, 2 or 8 after it.
void append_length(std::string& out, std::uint64_t length, int bytes, bool masked) {
  const unsigned form = bytes == 8 ? 127 : bytes == 2 ? 126 : static_cast<unsigned>(length & 127);
  out += static_cast<char>((masked ? 0x80u : 0u) | form);
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(length >> (8 * i));
}

void append_masked(std::string& out, std::string_view payload) {
  out.append(mask, sizeof mask);
  for (std::size_t i = 0; i < payload.size(); ++i) out += static_cast<char>(payload[i] ^ mask[i % 4]);
}

}  // namespace

std::string frame(unsigned op, std::string_view payload, bool last) {
  std::string out;
  out.reserve(payload.size() + 14);
  out += static_cast<char>((last ? 0x80u : 0u) | op);
  append_length(out, payload.size(), payload.size() < 126 ? 0 : payload.size() < 65536 ? 2 : 8, true);
  append_masked(out, payload);
  return out;
}

std::string close_frame(random_source& draw) {
  static constexpr std::uint16_t codes[] = {0,    999,  1000, 1001, 1004, 1005, 1006, 1007,
                                            1012, 1015, 1016, 2999, 3000, 4401, 5000, 65535};
  const std::uint16_t code = draw.pick(codes);
  std::string payload = {static_cast<char>(code >> 8), static_cast<char>(code)};
  if (draw.chance(20)) payload.resize(draw.below(2));
  if (draw.chance(30)) payload += odd_text(draw);
  if (draw.chance(10)) payload += std::string(draw.between(120, 300), 'r');
  return frame(op_close, payload);
}

std::string promise(unsigned op, std::uint64_t length) {
  std::string out(1, static_cast<char>(0x80u | op));
  append_length(out, length, 8, true);
  out.append(mask, sizeof mask);
  return out;
}

std::string odd_frame(random_source& draw) {
  static constexpr unsigned ops[] = {op_more, op_text, op_binary, op_close, op_ping, op_pong, 3, 7, 11, 15};
  const unsigned op = draw.pick(ops);
  if (draw.chance(15)) return promise(op, draw.next() >> draw.below(30)) + random_bytes(draw, draw.below(20));
  if (draw.chance(10))
    return promise(op, std::uint64_t{1} << draw.between(16, 63)) + random_bytes(draw, draw.below(20));
  std::string out;
  const unsigned reserved = draw.chance(20) ? static_cast<unsigned>(draw.below(8)) << 4 : 0u;
  out += static_cast<char>((draw.chance(70) ? 0x80u : 0u) | reserved | op);
  const std::string payload =
      draw.chance(50) ? odd_text(draw) : random_bytes(draw, draw.below(draw.chance(10) ? 70'000 : 200));
  static constexpr int forms[] = {0, 2, 8};
  const bool masked = draw.chance(85);
  append_length(out, payload.size(),
                payload.size() > 125 ? (payload.size() > 65535 ? 8 : draw.pick(forms)) : draw.pick(forms),
                masked);
  if (!masked) return out + payload;
  append_masked(out, payload);
  return out;
}

}  // namespace weir::stranger
