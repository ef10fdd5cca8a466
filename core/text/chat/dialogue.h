// dialogue.h — what was said so far: the messages that a model is given, and the file that keeps them.
//
// Thread safety: none; one owner.
#pragma once

#include <boost/json/array.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace weir::core {

class dialogue {
 public:
  // `system`: the first message; nullopt: none.
  explicit dialogue(std::optional<std::string> system);

  void ask(std::string_view text);
  // `thinking`: what the model wrote before its answer. It is kept for the file, and no model gets it again.
  void answer(std::string_view text, std::string_view thinking);
  void take_back();  // removes the last message. REQUIRES: ask() was called last
  // Removes the oldest question and its answer. False: only the last question is there.
  bool drop_oldest();
  void forget();  // all but the system message

  // What a model is given: [{role, content}].
  boost::json::array messages() const;
  std::size_t turns() const;  // questions

  // The messages as a JSON file, as OpenAI's API has them.
  std::string saved() const;
  // Replaces the messages by those of a file. Error: the text is no such file; nothing changes then.
  result<> load(std::string_view file);

 private:
  boost::json::array messages_;  // with reasoning_content
};

}  // namespace weir::core
