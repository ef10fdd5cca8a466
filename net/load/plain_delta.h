// plain_delta.h — reads a weir.v1 delta as servers write it, without the cost of a whole JSON parser.
//
// Thread safety: a pure function; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::load {

// A delta's fields, as parts of the message.
struct plain_delta {
  std::string_view type, id, text;
  std::optional<std::int64_t> seq, n, sampled;
};

// Returns nullopt for any message that has another field, an escape, a character that is not ASCII, or a
// number that is not plain digits. The caller then parses the message as JSON.
std::optional<plain_delta> read_plain(std::string_view message);

}  // namespace weir::load
