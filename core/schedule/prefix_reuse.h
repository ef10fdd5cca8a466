// prefix_reuse.h — a sequence takes from the cache what was computed before, and leaves there what it
// computes.
//
// Whole pages are shared. Of a page that agrees in part a copy is taken, up to the last equal token. The last
// token of a sequence is always computed: its logits are needed.
//
// Thread safety: the owner's thread.
#pragma once

#include <optional>
#include <vector>

#include "core/schedule/sequence.h"

namespace weir::core {

// Takes every whole page that comes next and is there; pages that the sequence had in their place go back.
// Returns the name of the first that is not there, which is the page it computes now, unless its last token
// is in it. `revive`: pages that the pool has given up may come back. Not while copies of pages wait for the
// step: they are made later than that.
std::optional<page_name> share_pages(sequence& s, page_pool& pool, bool revive);

// REQUIRES: share_pages, and no page of its own. Makes the table large enough for all tokens of the sequence,
// if `spare` pages more could be had, and begins the first page of its own with a copy, where another page
// begins with the same tokens. False, and nothing changed, where the pool has not enough.
bool take_pages(sequence& s, page_pool& pool, std::uint32_t spare, std::vector<page_copy>& copies);

// Names the pages that have become full, as far as their tokens are known. One that somebody else has named
// meanwhile is given up for theirs.
void name_pages(sequence& s, page_pool& pool);

}  // namespace weir::core
