// rectangle.h — reads a rectangle of a matrix in a file, and fields of a few bits out of words.
//
// Thread safety: pure functions; any thread. Error: bad_file for a file that cannot be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/load/checkpoint.h"

namespace weir::core {

// Rows [row, row + rows), columns [column, column + columns).
struct rectangle {
  std::uint64_t row, rows, column, columns;
};

// Reads a rectangle of elements of sizeof(T) bytes to `to`, row after row. A tensor that is no matrix has one
// column. REQUIRES: `to` has room for rows * columns elements
template <class T>
result<void> read_rectangle(const checkpoint& from, const stored_tensor& t, const rectangle& r, T* to) {
  const std::uint64_t width = t.shape.size() == 2 ? t.shape[1] : 1;
  const auto bytes = std::as_writable_bytes(std::span(to, r.rows * r.columns));
  if (r.columns == width) return from.read(t, r.row * width * sizeof(T), bytes);
  for (std::uint64_t i = 0; i < r.rows; ++i) {
    const auto part = bytes.subspan(i * r.columns * sizeof(T), r.columns * sizeof(T));
    if (auto ok = from.read(t, ((r.row + i) * width + r.column) * sizeof(T), part); !ok) return ok;
  }
  return {};
}

template <class T>
result<void> read_rectangle(const checkpoint& from, const stored_tensor& t, const rectangle& r,
                            std::vector<T>& to) {
  to.resize(r.rows * r.columns);
  return read_rectangle(from, t, r, to.data());
}

// The same for a tensor of a plain type, widened.
result<void> read_floats(const checkpoint& from, const stored_tensor& t, const rectangle& r, float* to);

// Field `index` of a stream of fields of `bits` bits, whose words are `apart` words from one another. `words`
// begins at word `skipped_words` of the stream.
inline std::uint8_t field_of(const std::uint32_t* words, std::size_t apart, std::uint64_t index,
                             std::uint32_t bits, std::uint64_t skipped_words = 0) {
  const std::uint64_t bit = index * bits, word = bit / 32 - skipped_words;
  std::uint64_t two = words[word * apart];
  if (bit % 32 + bits > 32) two |= std::uint64_t{words[(word + 1) * apart]} << 32;
  return static_cast<std::uint8_t>(two >> (bit % 32) & ((1u << bits) - 1));
}

// The words of a stream that fields [field, field + fields) lie in.
struct word_range {
  std::uint64_t first, count;
  word_range(std::uint64_t field, std::uint64_t fields, std::uint32_t bits)
      : first(field * bits / 32), count(((field + fields) * bits + 31) / 32 - first) {}
};

}  // namespace weir::core
