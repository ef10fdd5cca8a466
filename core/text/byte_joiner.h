// byte_joiner.h — pieces' bytes to text, as they come: whole characters only, each as soon as it is whole.
//
// A character may be spread over several pieces. What is broken becomes U+FFFD: once for each sequence that
// could have begun a character; in a run of byte pieces ("<0x0A>") once for each byte. A byte order mark that
// opens such a run is dropped.
//
// Used by one thread at a time. Costs O(bytes pushed); holds at most three bytes.
#pragma once

#include <string>
#include <string_view>

namespace weir::core {

class byte_joiner {
 public:
  // Appends what is certain now to `out`.
  void push(std::string_view bytes, bool byte_piece, std::string& out);

  // The end: appends the rest.
  void finish(std::string& out);

  // Nothing waits: what was appended so far ends with a whole character.
  bool empty() const noexcept { return held_.empty(); }

 private:
  std::size_t append_characters(std::string_view bytes, std::string& out);

  std::string held_;        // the beginning of a character
  bool in_run_ = false;     // of byte pieces
  bool opens_run_ = false;  // nothing of that run has been appended yet
};

}  // namespace weir::core
