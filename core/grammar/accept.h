// accept.h — checks texts against constraints: what `weir accept` does, without its files and options.
//
// Thread safety: none; one thread uses an `acceptor`. The parser is a pure function.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/grammar/compile.h"
#include "core/grammar/constraint.h"

namespace weir::core::grammar {

// What is checked: a text, or tokens.
struct accept_subject {
  std::string text;
  std::optional<std::vector<token_id>> ids;  // instead of the text
};

struct accept_line {
  std::optional<constraint_text> own;  // the line's own constraint
  std::string field;                   // the key in the line that has it
  accept_subject subject;
};

// A line {"schema"|"regex"|"grammar"|"choice": …, "grammar_syntax"?, "whitespace"?, "strict"?, "text"|"ids":
// …}. A schema keeps the text that it has in the line: the order of its members and the digits of its
// numbers. Errors: invalid_param; `param` is the field.
result<accept_line> parse_accept_line(std::string_view line);
// "bounded", "compact", "any". Errors: invalid_param, param "whitespace".
result<json_space> parse_json_space(std::string_view name);

struct accept_verdict {
  bool accepted = false;          // every byte (token) may stand where it stands; the text may be unfinished
  std::optional<std::size_t> at;  // the first byte that may not; set where not accepted
  bool may_end = false;           // the text, or what was accepted of it, may end there
  std::optional<std::string>
      completion;         // a shortest text to an end; none: not accepted, or longer than 64 KiB
  double compile_us = 0;  // rules of the text, bound to the vocabulary
  struct {
    double p50 = 0, p99 = 0, max = 0;
  } mask_us;                   // of the masks before each token, and behind the last
  std::vector<token_id> mask;  // the tokens that may come behind what was accepted
  std::vector<warning> warnings;
};
// One line of JSON, without a line end. `mask`: whether the line lists the ids of verdict.mask.
std::string to_json(const accept_verdict&, bool mask);
// {"error":{"message","param"}}
std::string to_json(const error&);

class acceptor {
 public:
  acceptor(std::shared_ptr<const tokenizer>, const clock&);

  // A constraint that several subjects share. Errors: as compile() and constraint::make(), with `field`
  // before their param.
  struct prepared {
    std::shared_ptr<constraint> over;
    std::vector<warning> warnings;
    double compile_us = 0;
  };
  result<prepared> prepare(const constraint_text&, const std::string& field);
  // Errors: invalid_param where the constraint becomes too ambiguous, or ids are not in the vocabulary;
  // internal where a mask contradicts the bytes of a token.
  result<accept_verdict> check(const prepared&, const accept_subject&);

 private:
  struct step {
    std::string bytes;
    std::optional<token_id> token;
  };
  std::vector<step> steps_of(const accept_subject&) const;

  std::shared_ptr<const tokenizer> tokenizer_;
  std::shared_ptr<terminal_views> views_;
  const clock& clock_;
};

}  // namespace weir::core::grammar
