#include "core/text/chat/message_lines.h"

#include <algorithm>
#include <utility>

namespace weir::core {

std::optional<std::string> message_lines::take(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line == "\"\"\"") {
    quoted_ = !quoted_;
    if (quoted_) return std::nullopt;
    if (text_.ends_with('\n')) text_.pop_back();
    return std::exchange(text_, {});
  }
  if (quoted_) {
    text_.append(line) += '\n';
    return std::nullopt;
  }
  if (line.ends_with('\\')) {
    text_.append(line.substr(0, line.size() - 1)) += '\n';
    return std::nullopt;
  }
  text_ += line;
  return std::exchange(text_, {});
}

void message_lines::drop() {
  text_.clear();
  quoted_ = false;
}

std::optional<slash_command> command_in(std::string_view message) {
  if (message.size() < 2 || message[0] != '/' || message[1] < 'a' || message[1] > 'z') return std::nullopt;
  const std::size_t end = std::min(message.find(' '), message.size());
  std::string_view rest = message.substr(end);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return slash_command{std::string(message.substr(1, end - 1)), std::string(rest)};
}

}  // namespace weir::core
