// tiktoken_tokenizer.h — a tokenizer from a file of tiktoken: in each line a token in base64, a space, and its
// rank, which is its id. How a text is cut into words and which tokens are special stands in the model's
// Python code; it is known here for some classes.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/text/tokenizer/tokenizer_settings.h"

namespace weir::core {

// Whether a file begins with a line of tiktoken.
bool looks_like_tiktoken(std::string_view file) noexcept;

// `path`: the file's name, for errors. Throws refusal; not_supported for a class of tokenizers that is not
// known.
std::shared_ptr<const tokenizer> tiktoken_tokenizer(std::string_view file, const std::string& path,
                                                    const tokenizer_settings& settings);

}  // namespace weir::core
