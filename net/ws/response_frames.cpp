#include "net/ws/response_frames.h"

#include <cstdint>

#include "net/protocol/json.h"

namespace weir::net {

void append_text_frame(std::string& out, std::string_view payload) {
  constexpr unsigned char final_text = 0x81, in_two_bytes = 126, in_eight_bytes = 127;
  const std::uint64_t size = payload.size();
  const int length_bytes = size < in_two_bytes ? 0 : size <= 0xFFFF ? 2 : 8;
  out += static_cast<char>(final_text);
  out += static_cast<char>(length_bytes == 0 ? size : length_bytes == 2 ? in_two_bytes : in_eight_bytes);
  for (int i = length_bytes - 1; i >= 0; --i) out += static_cast<char>(size >> 8 * i);
  out += payload;
}

void append_event_frames(std::string& out, std::string_view events) {
  constexpr std::string_view before = "\ndata: ", behind = "\n\n";
  while (!events.empty()) {
    const auto end = events.find(behind);
    const std::string_view one = events.substr(0, end);
    if (const auto data = one.find(before); data != one.npos)
      append_text_frame(out, one.substr(data + before.size()));
    if (end == events.npos) return;
    events.remove_prefix(end + behind.size());
  }
}

void append_error_frame(std::string& out, const reply& no) {
  std::string event;
  append_object(event, [&] {
    append_text(event, "type", "error");
    append_int(event, "status", no.status);
    event += ',';
    event += std::string_view(no.body).substr(1, no.body.size() - 2);  // its only member, the error
    append_text(event, "code", no.code);
    append_text(event, "message", no.problem);
    append_int(event, "sequence_number", 0);
  });
  append_text_frame(out, event);
}

}  // namespace weir::net
