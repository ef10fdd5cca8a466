// message_lines.h — makes messages of lines, and tells commands from messages.
//
// Thread safety: none; one owner.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::core {

// A line that ends with a backslash goes on in the next one. Lines between two lines of """ are one message.
class message_lines {
 public:
  // Takes a line without its end. nullopt: the message goes on.
  std::optional<std::string> take(std::string_view line);
  bool open() const { return quoted_ || !text_.empty(); }  // a message has begun
  void drop();                                             // forgets what has begun

 private:
  std::string text_;
  bool quoted_ = false;
};

// "/save F" as its name and its argument. A message that does not begin with a slash and a letter is none.
struct slash_command {
  std::string name, argument;
};
std::optional<slash_command> command_in(std::string_view message);

}  // namespace weir::core
