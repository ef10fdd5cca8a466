// weights_digest.h — one number for what a model's files say of its arithmetic.
//
// It is made of the configuration, of each tensor's name, type and shape, and of 64 bytes at up to 16 places
// of each tensor: as weight_samples.h does for weights in memory. Two models that differ in a training step
// differ nearly everywhere, and so in their digests. A file in which somebody changed single weights may have
// the digest of the original.
//
// Thread safety: any thread. Errors: bad_file, not_supported; the message names the file.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.h"

namespace weir::core {

// `path`: a directory or a GGUF file. `context`: most tokens of a sequence that are served, 0 for all that
// the model has: some models compute with other rotary tables for it (longrope). Never 0. Reads some 16
// places a tensor, fewer where the tensors are very many.
result<std::uint64_t> weights_digest(const std::string& path, std::uint32_t context);

}  // namespace weir::core
