// vocabulary.h — finds the id of a piece and the piece of an id.
//
// Thread safety: a vocabulary is immutable once built; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/token.h"

namespace weir::core {

// A list of strings in one block of memory. at(i) is empty for i >= size().
class string_table {
 public:
  void add(std::string_view text) {
    text_ += text;
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
  }
  std::string_view at(std::size_t i) const noexcept {
    if (i >= ends_.size()) return {};
    const std::uint32_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }
  std::size_t size() const noexcept { return ends_.size(); }

 private:
  std::string text_;
  std::vector<std::uint32_t> ends_;  // [string] offset of its end in text_
};

class vocabulary {
 public:
  // If two pieces have the same id, piece() returns the later one. REQUIRES: no id is negative.
  explicit vocabulary(const std::vector<std::pair<std::string_view, token_id>>& pieces);

  std::optional<token_id> find(std::string_view piece) const noexcept;
  std::string_view piece(token_id id) const noexcept;                 // empty: no piece has this id
  std::size_t id_limit() const noexcept { return entry_of_.size(); }  // one past the largest id

 private:
  std::size_t home(std::string_view piece) const noexcept;

  string_table pieces_;                 // in the constructor's order
  std::vector<token_id> ids_;           // [index in pieces_]
  std::vector<std::int32_t> entry_of_;  // [id] index in pieces_, or -1
  // A hash table with open addressing: indices in pieces_, or -1. Its size is a power of two, and at least
  // half of it is empty.
  std::vector<std::int32_t> slots_;
};

}  // namespace weir::core
