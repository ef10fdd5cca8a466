// Any bytes as a safetensors file or as a shard index; a file that is accepted must keep its promises.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/model/load/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::core;
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  if (const auto tensors = parse_safetensors(file, "fuzz")) {
    std::size_t covered = 0;
    for (const auto& [name, t] : *tensors) {
      if (!t.bytes.empty() && (t.bytes.data() < file.data() || &t.bytes.back() > &file.back())) std::abort();
      covered += t.bytes.size();
    }
    if (covered > size) std::abort();
  }
  if (const auto shards = parse_shard_index({reinterpret_cast<const char*>(data), size}, "fuzz"))
    for (const auto& [name, shard] : *shards)
      if (shard.empty() || shard.find('/') != shard.npos) std::abort();
  return 0;
}
