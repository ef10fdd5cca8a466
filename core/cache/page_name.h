// page_name.h — names of full pages of KV memory: 128-bit hashes of everything that a page's keys and values
// depend on, which are the name of the page before it and its own token ids. Equal prefixes have equal names.
// The name before the first page stands for the salt and for the type in which keys and values are stored.
//
// The hash is XXH3 with 128 bits (xxHash 0.8,
// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). It is fast but not cryptographic, so a
// name alone is never trusted: every lookup compares the token ids too.
//
// Thread safety: any thread; pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/cache/page.h"
#include "core/token.h"

namespace weir::core {

struct page_name {
  std::uint64_t hi = 0, lo = 0;
  bool operator==(const page_name&) const = default;
};

// The name that stands for the page before a sequence's first one. Jobs with different salts share no page,
// nor do pages of different types (model_info::kv_type).
page_name root_name(std::string_view salt, std::string_view kv_type);

// Name of the page that holds `ids` and follows the page called `before`.
page_name name_of(page_name before, std::span<const token_id, page_tokens> ids);

}  // namespace weir::core
