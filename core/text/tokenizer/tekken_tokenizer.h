// tekken_tokenizer.h — a tokenizer from Mistral's tekken.json: ranks like tiktoken's behind special tokens,
// and the expression that cuts a text into words.
//
// Thread safety: pure function; any thread.
#pragma once

#include <memory>
#include <string_view>

#include "core/text/tokenizer/tokenizer.h"

namespace weir::core {

// `file`: the contents. A text gets the BOS "<s>". Throws refusal; not_supported for files of the first
// version, whose special tokens stand in Mistral's Python code.
std::shared_ptr<const tokenizer> tekken_tokenizer(std::string_view file);

}  // namespace weir::core
