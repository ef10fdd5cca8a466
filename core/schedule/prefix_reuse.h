// prefix_reuse.h — moves pages between sequences and the prefix cache: a sequence takes pages that were
// computed before, and adds the pages that it computes.
//
// Whole pages are shared. A page that agrees only in its first tokens is copied, and used up to the last
// equal token. The last token of a sequence is always computed, because its logits are needed, and so are the
// rows of a prompt whose logprobs are asked and not known yet.
//
// Thread safety: the owner's thread only.
#pragma once

#include <optional>
#include <vector>

#include "core/schedule/sequence.h"

namespace weir::core {

// Gives `s` the full pages after its named ones, up to the first page that is not in the cache. Releases the
// pages that `s` had in their place. Returns the name of the first page that is not in the cache, which the
// sequence has to compute next; nullopt if that page holds its last token. `revive`: pages may also come back
// from the host tier. It must be false while page copies wait for the next forward, because those are made
// only then.
std::optional<page_name> share_pages(sequence& s, page_pool& pool, bool revive);

// Makes the table of `s` large enough for all its tokens. If another page begins with the same tokens as the
// first new one, a copy is added to `copies` and those rows count as computed. Returns false and changes
// nothing where the pool does not have these pages and `spare` more. REQUIRES: share_pages() was called, and
// every page of `s` is named.
bool take_pages(sequence& s, page_pool& pool, std::uint32_t spare, std::vector<page_copy>& copies);

// Names the pages of `s` that have become full and whose tokens are known. Where a page of that name exists
// already, `s` uses that one and releases its own.
void name_pages(sequence& s, page_pool& pool);

}  // namespace weir::core
