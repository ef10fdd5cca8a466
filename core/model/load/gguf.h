// gguf.h — reads the file format of ggml and llama.cpp: keys with values, a table of tensors, then the
// tensors. Versions 2 and 3, which have one layout.
//
// The content of the files is not trusted: whatever it is, parsing ends with a result or an error.
//
// Thread safety: parse_gguf() is a pure function; any thread. Errors: bad_file; not_supported for what is
// valid and not read. The message has the file's name.
//
// Invariants of a parsed file:
//   1. Every string, array and tensor is inside the file.
//   2. Each tensor begins where the one before it ends, padded to the alignment. Behind the last one is
//      padding alone.
//   3. No key and no tensor occurs twice. The rows of a tensor are whole blocks of its type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"
#include "core/model/load/checkpoint.h"

namespace weir::core {

enum class gguf_kind : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

struct gguf_array {
  gguf_kind kind = gguf_kind::u8;  // of the items; never array
  std::uint64_t size = 0;
  std::vector<std::string_view> texts;  // [size] where the items are strings
  std::span<const std::byte> numbers;   // the items as they lie in the file, where they are no strings

  // Item `i` as a number. REQUIRES: i < size; the items are no strings
  double number(std::uint64_t i) const noexcept;
};

// Views of the file's bytes.
using gguf_value = std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, gguf_array>;
using gguf_keys = std::map<std::string, gguf_value, std::less<>>;

struct gguf_file {
  std::uint32_t version = 0;
  gguf_keys keys;
  tensor_map tensors;  // by the names in the file
};

// `file`: content of the whole file, to which the result refers. `what`: its name, for errors. `fetch`:
// brings what is looked at into memory.
result<gguf_file> parse_gguf(std::span<const std::byte> file, std::string_view what,
                             const fetch_bytes& fetch = {});

}  // namespace weir::core
