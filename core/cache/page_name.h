// page_name.h — what a full page of KV memory is called: 128 bits over everything that its keys and values
// depend on, the page before it and its own token ids. Equal prefixes have equal names, wherever they lie.
//
// XXH3 with 128 bits (xxHash 0.8, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). It is
// quick and not cryptographic, so nobody trusts a name alone: a hit compares the ids, too.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/schedule/batch.h"

namespace weir::core {

struct page_name {
  std::uint64_t hi = 0, lo = 0;
  bool operator==(const page_name&) const = default;
};

// What stands before a sequence's first page. Jobs with different salts share nothing.
page_name root_name(std::string_view salt);

// The page that holds `ids` and follows the one called `before`.
page_name name_of(page_name before, std::span<const token_id, page_tokens> ids);

}  // namespace weir::core
