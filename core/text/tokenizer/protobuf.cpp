#include "core/text/tokenizer/protobuf.h"

#include <bit>
#include <cmath>

#include "core/text/json_field.h"

namespace weir::core {

std::string_view protobuf_reader::take(std::uint64_t size) {
  if (size > rest_.size()) bad_field(path_, "not protobuf: a field goes beyond the end");
  const std::string_view out = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return out;
}

std::uint64_t protobuf_reader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  bad_field(path_, "not protobuf: a number has more than ten bytes");
}

std::uint64_t protobuf_reader::fixed(std::size_t size) {
  const std::string_view bytes = take(size);
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::optional<protobuf_reader::field> protobuf_reader::next() {
  if (rest_.empty()) return std::nullopt;
  const std::uint64_t key = varint();
  field f;
  f.number = static_cast<std::uint32_t>(key >> 3);
  if (key >> 3 == 0 || key >> 32 != 0) bad_field(path_, "not protobuf: a field without a number");
  f.kind = static_cast<wire>(key & 7);
  switch (f.kind) {
    case wire::varint:
      f.value = varint();
      return f;
    case wire::fixed64:
      f.value = fixed(8);
      return f;
    case wire::bytes:
      f.bytes = take(varint());
      return f;
    case wire::fixed32:
      f.value = fixed(4);
      return f;
  }
  bad_field(path_, fmt::format("not protobuf: a field of kind {}", key & 7));
}

void protobuf_reader::require(const field& f, wire kind, std::string_view name) const {
  if (f.kind != kind)
    bad_field(fmt::format("{}.{}", path_, name), fmt::format("is of kind {}", static_cast<int>(f.kind)));
}

std::string_view protobuf_reader::bytes(const field& f, std::string_view name) const {
  require(f, wire::bytes, name);
  return f.bytes;
}

bool protobuf_reader::boolean(const field& f, std::string_view name) const {
  return integer(f, name) != 0;
}

std::int64_t protobuf_reader::integer(const field& f, std::string_view name) const {
  require(f, wire::varint, name);
  return static_cast<std::int64_t>(f.value);
}

float protobuf_reader::single(const field& f, std::string_view name) const {
  require(f, wire::fixed32, name);
  const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(f.value));
  if (!std::isfinite(value)) bad_field(fmt::format("{}.{}", path_, name), "is not finite");
  return value;
}

}  // namespace weir::core
