// questions.h — what is asked: the prompt and the length of each request, a function of the seed and its
// number alone. Thread safety: const members from any thread.
#pragma once

#include <string>
#include <vector>

#include "net/load/range.h"
#include "net/load/talk.h"
#include "net/load/trace.h"

namespace weir::load {

struct question_options {
  token_range prompt_tokens{64, 64}, max_tokens{128, 128};
  std::vector<std::string> prompts;  // in turn; none: made of short words, about a token each
  std::size_t distinct = 0;          // of made prompts; 0: each its own
  trace lengths;                     // of the requests, in turn; empty: the ranges
  std::uint64_t seed = 0;
};

class questions {
 public:
  explicit questions(question_options o) : o_(std::move(o)) {}

  question ask(std::uint64_t index) const;
  // Which prompt request `index` has; nothing where nobody else has it.
  std::optional<std::size_t> prompt_of(std::uint64_t index) const;

 private:
  question_options o_;
};

}  // namespace weir::load
