#include "net/ws/ws_frame_watch.h"

#include <algorithm>

namespace weir::net {
namespace {

constexpr unsigned opcode_bits = 0x0f, control_bit = 0x08, continuation = 0x0;
constexpr unsigned mask_bit = 0x80, length_bits = 0x7f;
constexpr unsigned length_in_16_bits = 126, length_in_64_bits = 127;

}  // namespace

std::size_t ws_frame_watch::header_size() const noexcept {
  if (header_bytes_ < 2) return 2;
  const unsigned length = header_[1] & length_bits;
  const std::size_t extended = length == length_in_16_bits ? 2 : length == length_in_64_bits ? 8 : 0;
  return 2 + extended + (header_[1] & mask_bit ? 4 : 0);
}

std::uint64_t ws_frame_watch::payload_size() const noexcept {
  const unsigned length = header_[1] & length_bits;
  if (length < length_in_16_bits) return length;
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < (length == length_in_16_bits ? 2u : 8u); ++i) size = size << 8 | header_[2 + i];
  return size;
}

// Control frames belong to no message. Beast refuses a control frame of more than 125 bytes.
ws_frame_watch::verdict ws_frame_watch::judge(rate_meter::time_point now) {
  if (frames_.spend(now) == rate_meter::verdict::abuse) return verdict::too_many;
  const unsigned opcode = header_[0] & opcode_bits;
  if (opcode & control_bit) return verdict::fine;
  if (opcode != continuation) message_bytes_ = 0;
  const std::uint64_t size = payload_size();
  if (size > most_bytes_ || message_bytes_ > most_bytes_ - size) return verdict::too_big;
  message_bytes_ += size;
  return verdict::fine;
}

std::size_t ws_frame_watch::admit(std::span<const unsigned char> bytes, rate_meter::time_point now) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    if (payload_left_ > 0) {
      const std::uint64_t skipped = std::min<std::uint64_t>(payload_left_, bytes.size() - at);
      payload_left_ -= skipped;
      at += static_cast<std::size_t>(skipped);
      continue;
    }
    header_[header_bytes_++] = bytes[at++];
    if (header_bytes_ < header_size()) continue;
    found_ = judge(now);
    if (found_ != verdict::fine) return at - 1;  // Beast does not act on a header without its last byte
    payload_left_ = payload_size();
    header_bytes_ = 0;
  }
  return at;
}

}  // namespace weir::net
