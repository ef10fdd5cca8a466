// spelled_calls.h — calls of tools in earlier messages, for templates that show tools and write no calls:
// they stand behind the text of their message, in the form in which the model writes them.
//
// A template is given a word in the place of the calls, and the calls are put where the word stands in the
// prompt. So the marks of the format are control tokens, as in a template's own text, and names and arguments
// are a client's text.
//
// Thread safety: none; one thread renders a conversation.
#pragma once

#include <boost/json/array.hpp>
#include <string>
#include <vector>

#include "core/text/answer/format.h"
#include "core/text/template/template.h"

namespace weir::core {

class spelled_calls {
 public:
  // Whether calls of this format can be spelled: JSON objects, or calls as in Python.
  static bool can_spell(const call_format& f);

  // Takes the calls out of the messages, which have the forms of message_forms.h. REQUIRES: can_spell(f).
  void take(boost::json::array& messages, const call_format& f);
  // Puts them into the prompt.
  void put(jinja::rendering& made) const;

 private:
  std::vector<jinja::rendering> calls_;  // of each message that has some
};

}  // namespace weir::core
