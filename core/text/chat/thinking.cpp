#include "core/text/chat/thinking.h"

#include <algorithm>

namespace weir::core {
namespace {

struct marker {
  std::string_view text;
  bool opens;
};
constexpr marker markers[] = {{"<think>", true}, {"</think>", false}, {"[THINK]", true}, {"[/THINK]", false}};

}  // namespace

void thinking_splitter::emit(std::size_t n, const part& show) {
  std::string_view text = std::string_view(waiting_).substr(0, n);
  if (fresh_) text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
  if (!text.empty()) {
    fresh_ = false;
    show(text, thinks_);
  }
  waiting_.erase(0, n);
}

void thinking_splitter::take(std::string_view text, const part& show) {
  waiting_ += text;
  std::size_t at = 0;
  while ((at = waiting_.find_first_of("<[", at)) != std::string::npos) {
    const std::string_view rest = std::string_view(waiting_).substr(at);
    const auto whole =
        std::ranges::find_if(markers, [&](const marker& m) { return rest.starts_with(m.text); });
    if (whole != std::end(markers)) {
      emit(at, show);
      waiting_.erase(0, whole->text.size());
      thinks_ = whole->opens;
      fresh_ = true;
      at = 0;
      continue;
    }
    const auto begins = [&](const marker& m) { return m.text.starts_with(rest); };
    if (std::ranges::any_of(markers, begins)) return emit(at, show);
    ++at;
  }
  emit(waiting_.size(), show);
}

void thinking_splitter::end(const part& show) { emit(waiting_.size(), show); }

}  // namespace weir::core
