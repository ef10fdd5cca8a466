// message_forms.h — the forms in which a chat template reads what clients send in several: a content as one
// text or as a list of parts, the arguments of a call as an object or as text.
//
// forms_of() learns them by rendering conversations whose words it knows again in the prompt. fit() then puts
// the messages of a request into these forms, so that a prompt does not depend on the form that was sent.
//
// Thread safety: plain data and pure functions.
#pragma once

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/text/template/template.h"

namespace weir::core {

// Bounds of the arguments that clients send as text. What is beyond them stays text.
inline constexpr std::size_t deepest_arguments = 32;
inline constexpr std::size_t most_argument_values = 1 << 16;  // of a conversation: values and keys

struct message_forms {
  enum class content : std::uint8_t {
    text,    // lists of parts are joined, with a line feed between two parts
    parts,   // a text becomes a list of one part
    either,  // both are read, and give the same prompt
  };
  static constexpr std::array<std::string_view, 5> roles = {"system", "developer", "user", "assistant",
                                                            "tool"};
  std::array<content, roles.size()> contents{};  // by role; all other roles have texts
  bool arguments_as_text = false;                // else they are objects
  // The content of a message with calls is a message of its own; beside the calls it is empty, or null.
  bool calls_alone = false, null_beside_calls = false;

  content of(std::string_view role) const noexcept;
};

// The forms that a template reads. `tokens`: spelling of the special tokens by their names. A role whose
// content the template never shows, or whose messages it refuses, has texts.
message_forms forms_of(const jinja::program& p, const boost::json::object& tokens);

// The text of a list of text parts, with a line feed between two; nullopt: the content is no such list.
std::optional<boost::json::string> joined_parts(const boost::json::value& content);

// Puts the messages into these forms. A content that is null or missing is empty, but where a template wants
// null. Arguments that are text
// become the object that the text is: text that is no object, or is over the bounds, stays text, and text
// without anything is the empty object.
void fit(boost::json::array& messages, const message_forms& forms);

}  // namespace weir::core
