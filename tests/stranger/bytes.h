// bytes.h — what happens to a text on its way: bytes flipped, put in, taken out, spans said twice.
//
// Pure functions of the source of numbers.
#pragma once

#include <string>
#include <string_view>

#include "tests/stranger/random.h"

namespace weir::stranger {

// One to eight such accidents.
std::string damaged(random_source& draw, std::string text);

std::string random_bytes(random_source& draw, std::size_t n);

std::string repeated(std::string_view text, std::size_t n);

// Not a valid UTF-8 text, or one at the edge of it.
std::string odd_text(random_source& draw);

}  // namespace weir::stranger
