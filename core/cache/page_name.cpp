#define XXH_INLINE_ALL
#include "core/cache/page_name.h"

#include <xxhash.h>

#include <cstring>

namespace weir::core {
namespace {

page_name named(XXH128_hash_t h) { return {h.high64, h.low64}; }

}  // namespace

page_name root_name(std::string_view salt, std::string_view kv_type) {
  const std::uint64_t type = XXH3_64bits(kv_type.data(), kv_type.size());
  return named(XXH3_128bits_withSeed(salt.data(), salt.size(), type));
}

page_name name_of(page_name before, std::span<const token_id, page_tokens> ids) {
  unsigned char all[sizeof before + page_tokens * sizeof(token_id)];
  std::memcpy(all, &before, sizeof before);
  std::memcpy(all + sizeof before, ids.data(), ids.size_bytes());
  return named(XXH3_128bits(all, sizeof all));
}

}  // namespace weir::core
