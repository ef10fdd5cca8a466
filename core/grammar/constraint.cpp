#include "core/grammar/constraint.h"

#include <algorithm>

namespace weir::core::grammar {
namespace {

std::uint64_t hash_of(const std::vector<head>& heads, bool may_end) {
  std::uint64_t h = may_end ? 1 : 0;
  for (const auto& x : heads) h = mixed(h, std::uint64_t{x.state} << 32 | x.next);
  return h;
}

// Allows one space before the root, for vocabularies that put a space there.
void add_leading_space(rules& r) { r.set_root(r.sequence({r.maybe(r.literal(" ")), r.root()})); }

}  // namespace

result<std::shared_ptr<constraint>> constraint::make(compiled c, std::shared_ptr<terminal_views> views,
                                                     std::vector<token_id> ending, fuel* budget) try {
  auto& r = *c.grammar;
  const burning burns(r, budget);
  if (r.leading_space() && views->trie().leading_space()) add_leading_space(r);
  r.regex().set_plain_characters(one_of(r.regex(), token_trie::plain()));
  auto symbols = make_symbols(r, views->trie(), ending);
  if (!symbols) return symbols.error();
  auto pool = r.share_regex();
  if (const auto& why = pool->failure(); !why.empty())
    return bad_param("", "the constraint is too large: {}", why);
  std::shared_ptr<constraint> made(new constraint(std::move(*symbols), std::move(pool), std::move(views)));
  if (made->start() == failed)
    return bad_param("", "the constraint is too large: {} where a text begins", made->failure());
  return made;
} catch (const out_of_fuel& stop) {
  return stop.why;
}

constraint::constraint(symbol_table symbols, std::shared_ptr<regex_pool> pool,
                       std::shared_ptr<terminal_views> views)
    : symbols_(std::move(symbols)),
      pool_(std::move(pool)),
      grammar_bytes_(pool_->bytes()),
      views_(std::move(views)),
      stacks_(symbols_) {
  parses_.push({});  // dead
  parses_.push({});  // failed
  const std::lock_guard lock(mutex_);
  start_ = after(stacks_.start());
}

std::shared_ptr<constraint> constraint::fresh() const {
  auto symbols = symbols_;
  std::vector<regex_id> languages;
  for (const auto& s : symbols.symbols) languages.push_back(s.language);
  auto pool = pool_->copy(languages);
  for (std::size_t i = 0; i < languages.size(); ++i) symbols.symbols[i].language = languages[i];
  return std::shared_ptr<constraint>(new constraint(std::move(symbols), std::move(pool), views_));
}

std::size_t constraint::bytes() const {
  std::size_t out =
      sizeof *this + symbols_.symbols.size() * sizeof(symbol) + symbols_.dots.size() * sizeof(dot);
  for (const auto& s : symbols_.symbols) out += s.alternatives.size() * sizeof(dot_id);
  for (const auto& s : symbols_.token_sets) out += s.size() * sizeof(token_id);
  const std::lock_guard lock(mutex_);
  return out + memo_bytes() + stacks_.bytes() + pool_->bytes();
}

std::string constraint::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool constraint::over_limit() {
  if (pool_->exhausted() && failure_.empty()) failure_ = "its regular expressions need too many states";
  const bool too_much = remembered() > most_memo_bytes;
  if (too_much && failure_.empty()) failure_ = "it needs too many states";
  return pool_->exhausted() || too_much;
}

// Heads with equal states become one head, whose `next` is the union of their stacks.
parse_id constraint::intern(std::vector<head> heads, bool may_end) {
  if (heads.empty() && !may_end) return dead;
  std::sort(heads.begin(), heads.end());
  std::size_t n = 0;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (n > 0 && heads[n - 1].state == heads[i].state)
      heads[n - 1].next = stacks_.both(heads[n - 1].next, heads[i].next);
    else
      heads[n++] = heads[i];
  }
  heads.resize(n);
  if (n > most_heads) {
    if (failure_.empty()) failure_ = "it is too ambiguous";
    return failed;
  }
  const auto h = hash_of(heads, may_end);
  const auto known = by_content_.find(
      h, [&](parse_id c) { return parses_[c].may_end == may_end && parses_[c].heads == heads; });
  if (known != id_table::none) return known;
  parse c;
  memo_bytes_.fetch_add(sizeof c + heads.size() * sizeof(head) + 64, std::memory_order_relaxed);
  c.heads = std::move(heads);
  c.may_end = may_end;
  const auto id = parses_.push(std::move(c));
  by_content_.add(h, id);
  return id;
}

parse_id constraint::after(stack_id s) {
  const auto& e = stacks_.expand(s);
  if (e.failed) {
    if (failure_.empty()) failure_ = "it is too ambiguous";
    return failed;
  }
  return intern(e.heads, e.may_end);
}

parse_id constraint::step(parse_id id, unsigned char b) {
  if (id <= failed) return id;
  const auto& c = parses_[id];
  if (c.heads.empty()) return dead;
  if (const auto* row = c.row.load(std::memory_order_acquire)) {
    const auto to = row[c.classes->of[b]].load(std::memory_order_acquire);
    if (to != unknown) return to;
  }
  return slow_step(id, b);
}

std::atomic<parse_id>* constraint::make_row(parse& c) {
  std::vector<regex_id> states;
  for (const auto& h : c.heads)
    if (!h.is_tokens()) states.push_back(h.state);
  c.classes = states.size() == 1 ? &pool_->classes(states[0]) : &pool_->classes(states);
  const auto size = c.classes->representative.size();
  rows_.emplace_back(new std::atomic<parse_id>[size]);
  auto* const row = rows_.back().get();
  for (std::size_t i = 0; i < size; ++i) row[i].store(unknown, std::memory_order_relaxed);
  memo_bytes_.fetch_add(4 * size, std::memory_order_relaxed);
  c.row.store(row, std::memory_order_release);
  return row;
}

parse_id constraint::slow_step(parse_id id, unsigned char b) {
  const std::lock_guard lock(mutex_);
  auto& c = parses_[id];
  auto* row = c.row.load(std::memory_order_relaxed);
  if (!row) row = make_row(c);
  auto& place = row[c.classes->of[b]];
  if (const auto to = place.load(std::memory_order_relaxed); to != unknown) return to;
  std::vector<head> heads;
  bool may_end = false, too_ambiguous = false;
  for (const auto& h : c.heads) {
    if (h.is_tokens()) continue;
    const auto to = pool_->transition(h.state, b);
    if (to == regex_pool::nothing) continue;
    if (to != regex_pool::empty) heads.push_back({to, h.next});
    if (!pool_->nullable(to)) continue;
    const auto& e = stacks_.expand(h.next);
    heads.insert(heads.end(), e.heads.begin(), e.heads.end());
    may_end = may_end || e.may_end;
    too_ambiguous = too_ambiguous || e.failed;
  }
  parse_id to = failed;
  if (too_ambiguous) {
    if (failure_.empty()) failure_ = "it is too ambiguous";
  } else if (!over_limit()) {
    to = intern(std::move(heads), may_end);
  }
  place.store(to, std::memory_order_release);
  return to;
}

parse_id constraint::step(parse_id c, std::string_view bytes) {
  for (const char b : bytes) {
    c = step(c, static_cast<unsigned char>(b));
    if (c <= failed) return c;
  }
  return c;
}

std::atomic<parse_id>* constraint::place_by_id(const parse& c, token_id token) const {
  auto* const row = c.by_id.load(std::memory_order_acquire);
  if (!row) return nullptr;
  std::size_t found = c.heads.size();
  for (std::size_t i = 0; i < c.heads.size(); ++i) {
    const auto& set = symbols_.token_sets[c.heads[i].set()];
    if (!std::binary_search(set.begin(), set.end(), token)) continue;
    if (found != c.heads.size()) return nullptr;
    found = i;
  }
  return found == c.heads.size() ? nullptr : row + found;
}

void constraint::make_ids_row(parse& c) {
  if (c.by_id.load(std::memory_order_relaxed)) return;
  const auto size = c.heads.size();
  rows_.emplace_back(new std::atomic<parse_id>[size]);
  for (std::size_t i = 0; i < size; ++i) rows_.back()[i].store(unknown, std::memory_order_relaxed);
  memo_bytes_.fetch_add(4 * size, std::memory_order_relaxed);
  c.by_id.store(rows_.back().get(), std::memory_order_release);
}

std::optional<parse_id> constraint::accept_known(parse_id id, token_id token) const {
  if (id <= failed) return std::nullopt;
  if (const auto* place = place_by_id(parses_[id], token)) {
    const auto to = place->load(std::memory_order_acquire);
    return to <= failed || to == unknown ? std::nullopt : std::optional(to);
  }
  const auto text = trie().text(token);
  if (text.empty()) return std::nullopt;
  const auto named = [](const head& h) { return h.is_tokens(); };
  if (std::ranges::any_of(parses_[id].heads, named)) return std::nullopt;
  for (const char b : text) {
    const auto& c = parses_[id];
    const auto* row = c.row.load(std::memory_order_acquire);
    if (!row) return std::nullopt;
    id = row[c.classes->of[static_cast<unsigned char>(b)]].load(std::memory_order_acquire);
    if (id <= failed || id == unknown) return std::nullopt;
  }
  return id;
}

std::optional<unsigned char> constraint::only_byte(parse_id id) {
  if (id <= failed || may_end(id)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  std::optional<unsigned char> only;
  for (const auto& h : parses_[id].heads) {
    if (h.is_tokens()) return std::nullopt;
    const auto& classes = pool_->classes(h.state);
    for (std::size_t c = 0; c < classes.representative.size(); ++c) {
      const auto b = classes.representative[c];
      if ((only && b == *only && std::count(classes.of.begin(), classes.of.end(), c) == 1) ||
          pool_->transition(h.state, b) == regex_pool::nothing)
        continue;
      if (only || std::count(classes.of.begin(), classes.of.end(), c) > 1) return std::nullopt;
      only = b;
    }
  }
  return only;
}

parse_id constraint::accept(parse_id id, token_id token) {
  if (id <= failed) return id;
  if (const auto* place = place_by_id(parses_[id], token))
    if (const auto to = place->load(std::memory_order_acquire); to != unknown) return to;
  const auto text = trie().text(token);
  const auto by_bytes = text.empty() ? dead : step(id, text);
  auto& c = parses_[id];
  std::vector<stack_id> named;
  for (const auto& h : c.heads) {
    if (!h.is_tokens()) continue;
    const auto& set = symbols_.token_sets[h.set()];
    if (std::binary_search(set.begin(), set.end(), token)) named.push_back(h.next);
  }
  if (named.empty() || by_bytes == failed) return by_bytes;
  const std::lock_guard lock(mutex_);
  auto heads = parses_[by_bytes].heads;
  bool may_end = parses_[by_bytes].may_end;
  for (const auto s : named) {
    const auto& e = stacks_.expand(s);
    if (e.failed) {
      if (failure_.empty()) failure_ = "it is too ambiguous";
      return failed;
    }
    heads.insert(heads.end(), e.heads.begin(), e.heads.end());
    may_end = may_end || e.may_end;
  }
  const auto to = over_limit() ? failed : intern(std::move(heads), may_end);
  if (std::ranges::all_of(c.heads, [](const head& h) { return h.is_tokens(); })) make_ids_row(c);
  if (auto* const place = place_by_id(c, token)) place->store(to, std::memory_order_release);
  return to;
}

}  // namespace weir::core::grammar
