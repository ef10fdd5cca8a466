// final_message.h — leaves the last message of a rendered conversation open, so that the answer goes on with
// it (continue_final_message).
//
// Thread safety: pure function; any thread.
#pragma once

#include <boost/json/array.hpp>

#include "core/error.h"
#include "core/text/template/template.h"

namespace weir::core {

// Cuts off what the template wrote behind the text of the last message. White space at the end of the message
// stays only if the template kept it. The rule is that of transformers' apply_chat_template. Error:
// invalid_param if the last message has no text, or the template did not write it.
result<> end_at_final_message(const boost::json::array& messages, jinja::rendering& made);

}  // namespace weir::core
