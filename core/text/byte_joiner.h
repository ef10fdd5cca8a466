// byte_joiner.h — makes text of the bytes of pieces: appends whole characters only, each as soon as its last
// byte is known.
//
// A character may be spread over several pieces. An invalid sequence becomes one U+FFFD; in a run of byte
// pieces ("<0x0A>") each byte of the sequence becomes one. A byte order mark at the start of such a run is
// dropped. The cost is O(bytes pushed), and at most three bytes are held back.
//
// Thread safety: one thread at a time.
#pragma once

#include <string>
#include <string_view>

namespace weir::core {

class byte_joiner {
 public:
  // Appends to `out` all characters that are complete with `bytes`, the bytes of one piece.
  void push(std::string_view bytes, bool byte_piece, std::string& out);

  // Ends the text: bytes that are held back become U+FFFD.
  void finish(std::string& out);

  // No bytes are held back.
  bool empty() const noexcept { return held_.empty(); }

 private:
  std::size_t append_characters(std::string_view bytes, std::string& out);

  std::string held_;        // bytes of an unfinished character
  bool in_run_ = false;     // the latest piece is a byte piece
  bool opens_run_ = false;  // nothing of the current run has been appended yet
};

}  // namespace weir::core
