// conversation.h — a prompt of chat messages, as a client sent it: what a chat template is given.
//
// The values are JSON, because each model's template decides which members of a message it reads (content,
// name, tool_calls, tool_call_id, reasoning_content, …).
//
// Thread safety: plain data and pure functions.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace weir::core {

struct conversation {
  boost::json::array messages;          // objects; each has a string `role`
  boost::json::value tools;             // an array of tool definitions; null: none
  boost::json::value documents;         // an array of documents to answer from; null: none
  boost::json::object variables;        // further variables of the template, such as enable_thinking
  std::optional<std::string> reasoning_effort;  // how much the model thinks; unset: nothing is said
  bool add_generation_prompt = true;    // the prompt ends with the start of the assistant's answer
  bool continue_final_message = false;  // the answer goes on with the last message, which is left open
};

// About the bytes of memory that its values take: those of its text, and several times as many where it has
// many short values.
std::uint64_t held_bytes(const conversation& c);

}  // namespace weir::core
