// reader.h — takes an answer apart while it comes: reasoning, text, and calls with their arguments.
//
// The reader walks the tokens of the log and their text, one token at a time. What it gives is a function of
// these tokens alone (docs/architecture.md, P4). Text that could still become a mark is held back until that
// is decided. What leaves the format is text, from the last byte that was not decided on: no byte is lost,
// given twice or moved. Arguments pass as the model wrote them; where a format does not write JSON, the
// reader writes the JSON.
//
// Cost: linear in the bytes of the text; no allocation for a token once the buffers have grown.
//
// Thread safety: one thread at a time, the one of the job's stream.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/text/answer/marks.h"
#include "core/text/answer/plan.h"

namespace weir::core {

class answer_reader {
 public:
  explicit answer_reader(std::shared_ptr<const answer_plan> plan);
  ~answer_reader();
  answer_reader(answer_reader&&) noexcept;
  answer_reader& operator=(answer_reader&&) noexcept;

  // Takes token number `token` of the answer and the characters that became whole with it (detokenizer.h;
  // empty for a special token that is not shown). Appends to `text` and `marks` what is decided now.
  void take(std::uint32_t token, token_id id, std::string_view characters, std::string& text,
            answer_marks& marks);
  // Nothing is held back.
  bool settled() const noexcept;
  // The answer has ended with token number `token`, and these characters became whole with its end: decides
  // on what is held back. Appends nothing if settled() and there are no characters.
  void end(std::uint32_t token, std::string_view characters, std::string& text, answer_marks& marks);

 private:
  struct state;
  std::unique_ptr<state> s_;
};

}  // namespace weir::core
