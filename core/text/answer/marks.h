// marks.h — the parts of an answer: which of its text is reasoning, which is said to the user, and which
// are the arguments of calls.
//
// The text of an answer is one string, in which nothing of the model's marks is left. A mark says what begins
// or ends at a place of this string, and with which token that became known. Marks are in the order of their
// places and of their tokens.
//
// Thread safety: none; one owner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::core {

enum class part_kind : std::uint8_t { text, reasoning, call };

struct answer_mark {
  enum class kind : std::uint8_t {
    text,       // text of the answer begins
    reasoning,  // reasoning begins
    call,       // a call begins; the text behind it is its arguments
    end,        // reasoning has ended, or a call is whole
  };
  std::uint32_t token = 0;   // number of the token, from 0
  std::uint32_t offset = 0;  // bytes of the text before it
  std::uint32_t part = 0;    // number of the part that begins or ends, from 0
  std::uint32_t call = 0;    // number of the call, from 0
  kind what = kind::text;
};

struct answer_call {
  std::string id;       // as the model wrote it in front of the arguments; empty: it wrote none
  std::string name;     // of the tool
  bool whole = false;   // its end was read
  bool custom = false;  // its text is the input of a custom tool, not arguments
};

struct answer_marks {
  std::vector<answer_mark> list;
  std::vector<answer_call> calls;
  // What could not be read and is text therefore, a sentence each.
  std::vector<std::string> warnings;
};

}  // namespace weir::core
