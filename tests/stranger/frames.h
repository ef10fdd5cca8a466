// frames.h — WebSocket frames (RFC 6455), right and wrong.
//
// Pure functions of the source of numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/stranger/random.h"

namespace weir::stranger {

enum opcode : unsigned { op_more = 0, op_text = 1, op_binary = 2, op_close = 8, op_ping = 9, op_pong = 10 };

// A frame as a client has to send it: masked, its length in the shortest form.
std::string frame(unsigned op, std::string_view payload, bool last = true);

std::string close_frame(random_source& draw);

// The beginning of a frame that promises `length` bytes, whatever follows.
std::string promise(unsigned op, std::uint64_t length);

// Any first byte, any mask bit, any form of the length, any payload.
std::string odd_frame(random_source& draw);

}  // namespace weir::stranger
