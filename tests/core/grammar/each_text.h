// each_text.h — every short text over some letters, to compare what accepts texts with what describes them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::tests {

// Calls visit(text) for every text of at most `longest` of the letters, shorter ones first.
template <class Visit>
void each_text(std::string_view letters, std::size_t longest, Visit visit) {
  std::vector<std::string> layer{""};
  for (std::size_t n = 0;; ++n) {
    for (const auto& text : layer) visit(text);
    if (n == longest) return;
    std::vector<std::string> next;
    for (const auto& text : layer)
      for (const char c : letters) next.push_back(text + c);
    layer = std::move(next);
  }
}

}  // namespace weir::tests
