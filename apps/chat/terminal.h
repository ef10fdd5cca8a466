// terminal.h — the two ends of `weir chat`: lines from standard input, text to standard output.
//
// Control characters of what is shown on a terminal, of errors and of notices are shown as text, since a
// model or a server wrote them. An answer in a file or a pipe is exact.
//
// Answers go to standard output, and everything else to standard error if standard output is no terminal.
// Colours are used on a terminal alone, and not with NO_COLOR (no-color.org).
//
// Thread safety: one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::apps {

class terminal {
 public:
  terminal();

  struct input {
    std::string line;  // without its end
    enum class kind { line, interrupted, end } is = kind::line;
  };
  // Shows `prompt` if standard input is a terminal, and waits for a line. Ctrl-C interrupts.
  input read(std::string_view prompt);

  void answer(std::string_view text, bool dim);  // a piece of an answer
  void end_answer();                             // begins a new line
  void notice(std::string_view text);            // a line for the reader, dim
  void error(std::string_view text);             // a line

 private:
  void dimmed(bool on);

  const bool from_terminal_, to_terminal_, colours_;
  bool dim_ = false;
  bool inside_line_ = false;  // the last piece of the answer did not end its line
  std::string unread_;
};

}  // namespace weir::apps
