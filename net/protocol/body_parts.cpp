#include "net/protocol/body_parts.h"

#include "net/protocol/json.h"

namespace weir::net {

void body_parts::add_json_text(std::string_view utf8) {
  constexpr std::size_t slice = 8 * 1024;
  add((utf8.size() + slice - 1) / slice,
      [utf8](std::string& out, std::size_t i) { append_json_text(out, utf8.substr(i * slice, slice)); });
}

bool body_parts::append(std::string& out, std::size_t most) {
  const std::size_t end = out.size() + most;
  bool some = false;  // every call appends an item
  for (; part_ < parts_.size(); ++part_, item_ = 0) {
    part& p = parts_[part_];
    out += p.text;  // empty where the part has items
    for (; item_ < p.items; ++item_) {
      if (some && out.size() >= end) return true;
      p.append(out, item_);
      some = true;
    }
  }
  return false;
}

}  // namespace weir::net
