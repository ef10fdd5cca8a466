// body_parts.h — a long JSON text that is made while it is sent: a list of parts, which are appended one
// after the other in pieces of bounded size.
//
// No piece keeps its thread for long, and no more of the text is in memory than the piece that waits for the
// client. What the items of a part refer to must outlive the list.
//
// Thread safety: none; one owner.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::net {

class body_parts {
 public:
  // About how many bytes a piece has.
  static constexpr std::size_t piece_bytes = 64 * 1024;
  using item = std::function<void(std::string& out, std::size_t i)>;

  void add(std::string text) { parts_.push_back({std::move(text), 0, {}}); }
  // Adds `count` items: f(out, 0), f(out, 1), …, of which each appends a few KiB at most.
  void add(std::size_t count, item f) { parts_.push_back({{}, count, std::move(f)}); }
  // Adds the inside of a JSON string.
  void add_json_text(std::string_view utf8);

  // Appends the next piece. Returns whether more follow.
  bool append(std::string& out, std::size_t most = piece_bytes);

 private:
  struct part {
    std::string text;
    std::size_t items = 0;
    item append;
  };
  std::vector<part> parts_;
  std::size_t part_ = 0, item_ = 0;  // the next one
};

}  // namespace weir::net
