// sentencepiece_model.h — what a file of SentencePiece (`tokenizer.model`) holds: a ModelProto in protobuf's
// wire format.
//
// Thread safety: plain data and a pure function; any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/text/tokenizer/scored_pieces.h"

namespace weir::core {

struct sentencepiece_model {
  enum class type { unigram = 1, bpe = 2 };
  type kind = type::unigram;
  scored_pieces pieces;  // one is unknown; no two texts are equal; none is empty or longer than most_piece_bytes

  std::string_view replacements;  // the normaliser's table; empty: none
  bool leading_space = true, removes_extra_spaces = true;

  std::string_view bos = "<s>", eos = "</s>";  // spellings, of which there need not be a piece
};

// The model refers to `file`. `path`: of the file, for errors. Throws refusal: bad_file; not_supported for
// other kinds of models and for rules that are not known.
sentencepiece_model parse_sentencepiece_model(std::string_view file, const std::string& path);

}  // namespace weir::core
