// gguf_names.h — the names of tensors in a GGUF file, and the names that Hugging Face gives them.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace weir::core {

// "blk.0.attn_q.weight" is "model.layers.0.self_attn.q_proj.weight". Any other name stays as it is.
std::string hugging_face_name(std::string_view in_gguf);
// The other way round.
std::string gguf_name(std::string_view of_hugging_face);

}  // namespace weir::core
