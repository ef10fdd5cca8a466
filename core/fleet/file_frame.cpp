#include "core/fleet/file_frame.h"

#include "core/fleet/bytes.h"
#include "core/fleet/frame_kind.h"

namespace weir::core::fleet {
namespace {

template <class IO, class Frame>
void place_fields(IO& io, Frame& f) {
  for (auto& b : f.digest) io(b);
  io(f.file);
  io(f.at);
}

}  // namespace

std::string frame_of(const file_wish& f) {
  std::string out = begin_frame(frame_kind::file_wish);
  byte_writer to(out);
  place_fields(to, f);
  return out;
}

std::string frame_of(const file_part& f) {
  std::string out = begin_frame(frame_kind::file_part);
  byte_writer to(out);
  place_fields(to, f);
  to(f.there);
  to(f.bytes);
  return out;
}

std::optional<file_wish> read_file_wish(std::string_view frame) {
  if (kind_of(frame) != frame_kind::file_wish) return std::nullopt;
  byte_reader from(body_of(frame));
  file_wish f;
  place_fields(from, f);
  return from.failed() ? std::nullopt : std::optional(f);
}

std::optional<file_part> read_file_part(std::string_view frame) {
  if (kind_of(frame) != frame_kind::file_part) return std::nullopt;
  byte_reader from(body_of(frame));
  file_part f;
  place_fields(from, f);
  from(f.there);
  const auto bytes = from.text();
  if (from.failed() || bytes.size() > longest_file_part || (!f.there && !bytes.empty())) return std::nullopt;
  f.bytes = bytes;
  return f;
}

}  // namespace weir::core::fleet
