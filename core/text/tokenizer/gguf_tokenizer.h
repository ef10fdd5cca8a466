// gguf_tokenizer.h — makes from a GGUF file's keys what a model directory has in separate files: the
// tokenizer, the chat templates and the special tokens.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/model/load/gguf_reader.h"

namespace weir::core {

// The tokenizer.json that says the same as the keys. Errors are recorded in the reader: bad_file;
// not_supported for a kind of tokenizer or a rule of splitting that is not known.
boost::json::object gguf_tokenizer(gguf_reader& keys);

// The spelling of each special token by its name, such as bos_token.
boost::json::object gguf_special_tokens(gguf_reader& keys);

// Chat templates by their names; the template without a name is "default".
std::vector<std::pair<std::string, std::string>> gguf_chat_templates(gguf_reader& keys);

}  // namespace weir::core
