// preset_files.h — the presets of a server, from files of JSON (actors/presets.h).
//
// A file is an object of sampling fields, under the names and in the forms of a request's body. Values are
// judged as those of a request; whether a model has the tokens that a preset names, and whether its device
// draws by a field, is judged by each request.
//
// Thread safety: read_preset() is pure, any thread; read_presets() reads files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "actors/presets.h"
#include "core/error.h"

namespace weir::net {

inline constexpr std::size_t longest_preset = 64 * 1024;  // bytes of a file
inline constexpr std::size_t longest_preset_name = 64;    // bytes
inline constexpr std::size_t most_presets = 256;

// The fields of a file's text. Error: invalid_param; its `param` is the field.
core::result<actors::sampling_preset> read_preset(std::string_view text);

// The presets of texts NAME=FILE. A name has letters, digits, '.', '_' and '-'. Error: invalid_param,
// `preset`, with the text and the field.
core::result<actors::sampling_presets> read_presets(const std::vector<std::string>& named);

}  // namespace weir::net
