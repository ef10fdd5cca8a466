// gguf_names.h — the names of tensors in a GGUF file, and the names that Hugging Face gives them.
//
// Thread safety: immutable; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/model/families.h"
#include "core/model/load/gguf_architectures.h"

namespace weir::core {

// The names of one architecture's tensors, whose norms the family calls by names of its own.
class gguf_names {
 public:
  gguf_names(const gguf_architecture& a, const family& f);

  // "blk.0.attn_q.weight" is "model.layers.0.self_attn.q_proj.weight". Any other name stays as it is.
  std::string hugging_face_name(std::string_view in_gguf) const;
  // The other way round.
  std::string gguf_name(std::string_view of_hugging_face) const;

  struct pair {
    std::string_view gguf, hugging_face;
  };

 private:
  std::vector<pair> in_layer_;  // between the layer's number and ".weight" or ".bias"
};

}  // namespace weir::core
