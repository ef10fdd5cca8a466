#include "apps/chat/terminal.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "core/visible.h"

namespace weir::apps {
namespace {

// While it lives, Ctrl-C ends a waiting read() and nothing else.
class interruptible {
 public:
  interruptible() {
    struct sigaction how {};
    how.sa_handler = [](int) {};
    sigaction(SIGINT, &how, &before_);  // without SA_RESTART
  }
  interruptible(const interruptible&) = delete;
  ~interruptible() { sigaction(SIGINT, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

}  // namespace

terminal::terminal()
    : from_terminal_(isatty(STDIN_FILENO)),
      to_terminal_(isatty(STDOUT_FILENO)),
      colours_(to_terminal_ && std::getenv("NO_COLOR") == nullptr) {}

terminal::input terminal::read(std::string_view prompt) {
  if (from_terminal_) std::cerr << prompt << std::flush;
  const interruptible here;
  for (;;) {
    if (const auto end = unread_.find('\n'); end != std::string::npos) {
      input line;
      line.line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    std::array<char, 4096> bytes;
    const ssize_t n = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) {
      unread_.clear();
      return {"", input::kind::interrupted};
    }
    if (n > 0) {
      unread_.append(bytes.data(), static_cast<std::size_t>(n));
    } else if (unread_.empty()) {
      return {"", input::kind::end};
    } else {
      unread_ += '\n';  // the last line has no end of its own
    }
  }
}

void terminal::dimmed(bool on) {
  if (!colours_ || dim_ == on) return;
  std::cout << (on ? "\x1b[2m" : "\x1b[0m");
  dim_ = on;
}

void terminal::answer(std::string_view text, bool dim) {
  dimmed(dim);
  std::cout << (to_terminal_ ? core::visible(text) : std::string(text)) << std::flush;
  if (!text.empty()) inside_line_ = text.back() != '\n';
}

void terminal::end_answer() {
  dimmed(false);
  if (inside_line_) std::cout << '\n';
  inside_line_ = false;
  std::cout << std::flush;
}

void terminal::notice(std::string_view text) {
  end_answer();
  if (!to_terminal_) {
    std::cerr << core::visible(text) << '\n';
    return;
  }
  dimmed(true);
  std::cout << core::visible(text);
  dimmed(false);
  std::cout << std::endl;
}

void terminal::error(std::string_view text) {
  end_answer();
  std::cerr << core::visible(text) << '\n';
}

}  // namespace weir::apps
