// sentencepiece_tokenizer.h — a tokenizer from a file of SentencePiece.
//
// Ids and text are those of the sentencepiece library. Control pieces, and tokens that the files beside it
// add, are cut out of a text first.
//
// Thread safety: pure function; any thread.
#pragma once

#include <memory>
#include <string_view>

#include "core/text/tokenizer/tokenizer_settings.h"

namespace weir::core {

// `file`: the contents of tokenizer.model. Throws refusal; not_supported for a class of tokenizers that is not
// known.
std::shared_ptr<const tokenizer> sentencepiece_tokenizer(std::string_view file,
                                                         const tokenizer_settings& settings);

}  // namespace weir::core
