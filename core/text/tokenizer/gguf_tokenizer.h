// gguf_tokenizer.h — makes from a GGUF file's keys what a model directory has in separate files: the
// tokenizer, the chat templates and the special tokens.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/model/load/gguf_reader.h"
#include "core/text/tokenizer/hf_tokenizer.h"

namespace weir::core {

// The tokenizer's parts. nullopt after an error, which is recorded in the reader: bad_file; not_supported for
// a kind of tokenizer or a rule of splitting that is not known.
std::optional<tokenizer_parts> gguf_tokenizer(gguf_reader& keys);

// The spelling of each special token by its name, such as bos_token.
boost::json::object gguf_special_tokens(gguf_reader& keys);

// Chat templates by their names; the template without a name is "default".
std::vector<std::pair<std::string, std::string>> gguf_chat_templates(gguf_reader& keys);

}  // namespace weir::core
