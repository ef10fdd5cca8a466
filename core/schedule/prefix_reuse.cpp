#include "core/schedule/prefix_reuse.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace weir::core {
namespace {

using full_page = std::array<token_id, page_tokens>;

// The ids from `position` on, as many as there are; REQUIRES: position < s.length().
std::span<const token_id> read_ids(const sequence& s, std::uint32_t position, full_page& into) {
  const std::uint32_t count = std::min(page_tokens, s.length() - position);
  for (std::uint32_t i = 0; i < count; ++i) into[i] = s.token_at(position + i);
  return std::span(into).first(count);
}

page_id last_named(const sequence& s) { return s.named() > 0 ? s.pages.all()[s.named() - 1] : no_page; }

// The named page whose beginning is most like the first unnamed page of the sequence, and how many of its
// rows the sequence can use.
prefix_tree::likeness beginning_of(const sequence& s, const page_pool& pool) {
  const std::uint32_t from = s.named() * page_tokens;
  full_page room;
  auto found = pool.names().closest(s.last_name(), read_ids(s, from, room));
  found.equal = std::min(found.equal, s.reusable() - 1 - from);
  return found;
}

}  // namespace

std::optional<page_name> share_pages(sequence& s, page_pool& pool, bool revive) {
  full_page ids;
  while ((s.named() + 1) * page_tokens < s.reusable()) {
    read_ids(s, s.named() * page_tokens, ids);
    const page_name name = name_of(s.last_name(), ids);
    page_id p = pool.names().find(name, ids);
    if (p != no_page) {
      pool.share(p);
    } else {
      if (revive) p = pool.revive(last_named(s), s.last_name(), name, ids);
      if (p == no_page) return name;
    }
    if (s.named() < s.pages.size()) {
      s.pages.replace(pool, s.named(), p);
    } else {
      s.pages.append(p);
    }
    s.push_name(name);
    s.found(s.named() * page_tokens);
  }
  return std::nullopt;
}

bool take_pages(sequence& s, page_pool& pool, std::uint32_t spare, std::vector<page_copy>& copies) {
  const std::uint32_t own = s.pages.size();  // the first page that will be its own
  assert(own == s.named());
  const std::uint32_t missing = pages_for(s.length()) - own;
  if (missing + spare > pool.available()) return false;
  auto like = beginning_of(s, pool);
  if (like.equal > 0) {
    pool.share(like.page);  // so that growing does not take it away
    if (missing > pool.available()) {
      pool.release(like.page);
      like.equal = 0;
    }
  }
  s.pages.grow(pool, s.length());
  if (like.equal > 0) {
    copies.push_back({like.page, s.pages.all()[own]});
    s.found(own * page_tokens + like.equal);
    pool.release(like.page);
  }
  return true;
}

void name_pages(sequence& s, page_pool& pool) {
  full_page ids;
  const std::uint32_t known = std::min(s.computed(), s.length());
  while ((s.named() + 1) * page_tokens <= known) {
    read_ids(s, s.named() * page_tokens, ids);
    const page_name name = name_of(s.last_name(), ids);
    if (const page_id theirs = pool.names().find(name, ids); theirs != no_page) {
      pool.share(theirs);
      s.pages.replace(pool, s.named(), theirs);
    } else {
      pool.name(s.pages.all()[s.named()], last_named(s), s.last_name(), name, ids);
    }
    s.push_name(name);
  }
}

}  // namespace weir::core
