// vocabulary.h — pieces and their ids, both ways, in one block of memory each.
//
// Immutable once built: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/token_sink.h"

namespace weir::core {

// A run of strings, one behind another; at(i) of a string that was never set is empty.
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
  std::vector<std::uint32_t> ends_;
};

class vocabulary {
 public:
  // REQUIRES no id below zero. Of two pieces with one id the later one is the id's spelling.
  explicit vocabulary(const std::vector<std::pair<std::string_view, token_id>>& pieces);

  std::optional<token_id> find(std::string_view piece) const noexcept;
  std::string_view piece(token_id id) const noexcept;                 // "" where there is none
  std::size_t id_limit() const noexcept { return entry_of_.size(); }  // one past the largest id

 private:
  std::size_t home(std::string_view piece) const noexcept;

  string_table pieces_;                 // in the order given
  std::vector<token_id> ids_;           // of each
  std::vector<std::int32_t> entry_of_;  // [id] its place in pieces_, or -1
  std::vector<std::int32_t> slots_;  // open addressing: a place in pieces_, or -1; a power of two, half empty
};

}  // namespace weir::core
