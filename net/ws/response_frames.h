// response_frames.h — what a WebSocket of the Responses API sends: the events of a stream, one in each text
// frame.
//
// Pure functions: any thread.
#pragma once

#include <string>
#include <string_view>

#include "net/http/reply.h"

namespace weir::net {

// Appends a final, unmasked text frame (RFC 6455, section 5.2).
void append_text_frame(std::string& out, std::string_view payload);

// Appends a frame for each of the server-sent events in `events`, with the event's data. Comments have none.
// REQUIRES: `events` ends with an event or a comment, and no event has more than one line of data.
void append_event_frames(std::string& out, std::string_view events);

// Appends the event `error`: {"type","status","error","code","message","sequence_number"}, with the error as
// a refusal over HTTP has it. REQUIRES: `no` is one of error_reply().
void append_error_frame(std::string& out, const reply& no);

}  // namespace weir::net
