// questions.h — the prompt and the lengths of each request, which depend on the options and the request's
// number alone.
//
// Thread safety: const members from any thread.
#pragma once

#include <string>
#include <vector>

#include "net/load/range.h"
#include "net/load/talk.h"
#include "net/load/trace.h"

namespace weir::load {

struct question_options {
  token_range prompt_tokens{64, 64}, max_tokens{128, 128};
  std::vector<std::string> prompts;  // used round-robin; empty: prompts of short words, about one token each
  std::size_t distinct = 0;          // number of different word prompts; 0: each request has its own
  trace lengths;                     // lengths, used round-robin; empty: lengths are drawn from the ranges
  std::uint64_t seed = 0;
};

class questions {
 public:
  explicit questions(question_options o) : o_(std::move(o)) {}

  question ask(std::uint64_t index) const;
  // Number of the prompt of request `index`; nullopt if no other request has this prompt.
  std::optional<std::size_t> prompt_of(std::uint64_t index) const;

 private:
  question_options o_;
};

}  // namespace weir::load
