// message_turns.h — the orders of messages that a chat template takes, and how a conversation is put into one
// of them where the template would refuse a message, leave it out or move it.
//
// turns_of() learns this by rendering conversations whose words it knows again in the prompt. arrange()
// changes nothing that the template shows at its place.
//
// Thread safety: plain data and pure functions.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/text/chat/message_forms.h"
#include "core/text/template/template.h"

namespace weir::core {

struct message_turns {
  // Messages of these roles are shown behind other turns, too, each at its place.
  bool late_system = true, late_developer = true;
  bool first_runs = true;         // several messages of these roles at the beginning are all shown
  bool user_runs = true;          // a user's turn may follow another one
  bool user_after_result = true;  // a user's turn may follow the result of a tool, and hides no reasoning
  bool short_ids = false;         // the id of a call must have nine letters and digits
  bool one_call = false;          // a message shows one call at most
  std::string reasoning;  // the member of a message with an assistant's reasoning; empty: none is shown
};

// `forms`: those of the same template. `source`: its text. A template that refuses even the conversation
// around what is asked for is taken to read it.
message_turns turns_of(const jinja::program& p, std::string_view source, const boost::json::object& tokens,
                       const message_forms& forms);

// What arrange() changed that a client should know of.
struct turn_changes {
  std::size_t reminders = 0;  // messages of system or developer that are text of a user's turn now
};

// Puts the messages into such an order:
//   - A message of system or developer behind other turns becomes a user's turn at its place, between
//     <system-reminder> and </system-reminder>. Where no user's turn may stand, or where one would hide the
//     reasoning between a question and its answer, the text is appended to the turn before it, or stands
//     before the text of the turn behind it. So the prompt before it stays what it was, and its prefix is
//     found in the cache.
//   - Several such messages at the beginning become one, with an empty line between two.
//   - A message with several calls becomes one for each call, with its result behind it.
//   - Ids of calls, and of their results, become nine letters and digits, the same for the same id.
//   - The result of a tool gets the `name` of the tool that was called, where it has none.
//   - The reasoning of an assistant's message stands in the one member that the template reads, whether it
//     was sent as reasoning_content, reasoning or thinking.
turn_changes arrange(boost::json::array& messages, const message_turns& turns);

}  // namespace weir::core
