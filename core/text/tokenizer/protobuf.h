// protobuf.h — goes through the fields of one message in protobuf's wire format.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::core {

class protobuf_reader {
 public:
  // `path`: of the message, for errors. The reader refers to both.
  protobuf_reader(std::string_view message, const std::string& path) : rest_(message), path_(path) {}

  enum class wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  struct field {
    std::uint32_t number = 0;
    wire kind = wire::varint;
    std::uint64_t value = 0;  // of a varint or a fixed field
    std::string_view bytes;   // of a field with a length
  };
  // The next field; nullopt at the end. Throws refusal for bytes that are not protobuf.
  std::optional<field> next();

  // The field's value. Throw refusal if it is of another kind. `name`: for errors.
  std::string_view bytes(const field& f, std::string_view name) const;
  bool boolean(const field& f, std::string_view name) const;
  std::int64_t integer(const field& f, std::string_view name) const;
  float single(const field& f, std::string_view name) const;  // finite

 private:
  std::uint64_t varint();
  std::uint64_t fixed(std::size_t size);
  std::string_view take(std::uint64_t size);
  void require(const field& f, wire kind, std::string_view name) const;

  std::string_view rest_;
  const std::string& path_;
};

}  // namespace weir::core
