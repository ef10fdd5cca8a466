// bytes.h — damage to a text on its way: bytes flipped, put in or taken out, spans repeated.
//
// Pure functions of the source of numbers.
#pragma once

#include <string>
#include <string_view>

#include "tests/stranger/random.h"

namespace weir::stranger {

// `text` after one to eight such accidents.
std::string damaged(random_source& draw, std::string text);

std::string random_bytes(random_source& draw, std::size_t n);

std::string repeated(std::string_view text, std::size_t n);

// Not a valid UTF-8 text, or one at the edge of it.
std::string odd_text(random_source& draw);

}  // namespace weir::stranger
