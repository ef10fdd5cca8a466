// protobuf_bytes.h — writes protobuf messages for tests, and models of SentencePiece with them.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::tests {

inline std::string proto_varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

inline std::string proto_number(unsigned field, std::uint64_t value) {
  return proto_varint(field << 3) + proto_varint(value);
}

inline std::string proto_bytes(unsigned field, std::string_view bytes) {
  return proto_varint(field << 3 | 2) + proto_varint(bytes.size()) + std::string(bytes);
}

inline std::string proto_float(unsigned field, float value) {
  std::string out = proto_varint(field << 3 | 5);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(bits >> shift));
  return out;
}

// Parts of a ModelProto. `type`: normal 1, unknown 2, control 3, user-defined 4, unused 5, byte 6.
inline std::string proto_piece(std::string_view text, float score, unsigned type = 1) {
  return proto_bytes(1, proto_bytes(1, text) + proto_float(2, score) + proto_number(3, type));
}
inline std::string proto_kind(unsigned model_type) { return proto_bytes(2, proto_number(3, model_type)); }
inline std::string proto_spaces(bool leading, bool removes_extra) {
  return proto_bytes(3, proto_number(3, leading) + proto_number(4, removes_extra));
}

}  // namespace weir::tests
