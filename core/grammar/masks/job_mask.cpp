#include "core/grammar/masks/job_mask.h"

#include <algorithm>
#include <cassert>
#include <thread>
#include <utility>

#include "core/grammar/forced_tokens.h"

namespace weir::core::grammar {
namespace {

constexpr std::uint32_t usual_tokens = 4096;  // of a text; up to this number nothing is allocated

const error no_memory = make_error(errc::overloaded, "there was no memory for the mask of a constraint");

}  // namespace

const error& job_mask::fault() const noexcept { return fault_ ? *fault_ : no_memory; }

job_mask::job_mask(std::shared_ptr<constraint> c, limits l)
    : cursor_(std::move(c)), limits_(std::move(l)), words_((limits_.vocab_size + 31) / 32) {
  cursor_.reserve(std::min(limits_.max_tokens, usual_tokens));
  if (limits_.force != forcing::off) recent_.reserve(2 * most_before);
  allowed_.resize(std::max<std::size_t>(words_, (cursor_.over().trie().vocab_size() + 31) / 32));
}

bool job_mask::begin(std::vector<token_id> spoken) {
  assert(!begun_);
  begun_ = true;
  spoken_ = std::move(spoken);
  return spoken_.empty() && work_by_heart();
}

bool job_mask::follow(token_id id) {
  assert(ready() && place_ == place::open);
  if (!all_taken()) {
    assert(id == forced_[next_forced_]);
    pass_drawn();
    return true;
  }
  ready_.store(false, std::memory_order_relaxed);
  posted_ = false;
  next_ = id;
  return work_by_heart();
}

bool job_mask::go_back(std::span<const token> kept) {
  assert(ready() && kept.size() <= tokens());
  cursor_.rewind(tokens() - kept.size());
  next_.reset();
  forced_.clear();
  next_forced_ = 0;
  recent_.clear();
  if (limits_.force != forcing::off) {
    forced_places_.resize(kept.size());
    for (const token& t : kept.last(std::min(kept.size(), most_before))) recent_.push_back(t.id);
  }
  place_ = place::open;
  fault_.reset();
  posted_ = false;
  ready_.store(false, std::memory_order_relaxed);
  return work_by_heart();
}

std::optional<bool> job_mask::whole_behind(token_id id) const {
  assert(ready());
  if (!all_taken()) return next_forced_ + 1 == forced_.size() && cursor_.must_end();
  if (heals()) return std::nullopt;
  const auto to = cursor_.over().accept_known(cursor_.at(), id);
  if (!to) return std::nullopt;
  return cursor_.over().must_end(*to);
}

bool job_mask::work_by_heart() {
  if (heals()) return false;
  const auto& over = cursor_.over();
  auto at = cursor_.at();
  if (next_) {
    const auto to = over.accept_known(at, *next_);
    if (!to) return false;
    at = *to;
  }
  if (limits_.force != forcing::off && over.may_force_known(at).value_or(true)) return false;
  const auto* mask = over.mask_known(at);
  if (!mask) return false;
  forced_.clear();
  next_forced_ = 0;
  if (next_) {
    cursor_.go(at);
    remember(*next_, false);
  }
  next_.reset();
  write(*mask);
  ready_.store(true, std::memory_order_release);
  return true;
}

void job_mask::work() noexcept {
  try {
    work_afresh();
  } catch (const std::exception&) {
    place_ = place::failed;
  }
  ready_.store(true, std::memory_order_release);
}

void job_mask::work_afresh() {
  if (!spoken_.empty()) {
    if (!replay()) return;
    make_mask();
    if (place_ == place::over && all_taken())
      fail(bad_param("spoken", "spoken is a whole text of the job's constraint, behind which nothing comes"));
    return;
  }
  if (next_ && !pass(*next_) && !cursor_.failed())
    return fail(errc::internal, fmt::format("token {} was drawn, and the constraint forbids it", *next_));
  if (next_ && !cursor_.failed()) remember(*next_, false);
  next_.reset();
  if (is_last()) return end();
  find_forced();
  make_mask();
}

bool job_mask::pass(token_id id) {
  if (!heals()) return cursor_.accept(id);
  const parse_id to = behind_healed(id);
  if (to <= constraint::failed) return false;
  cursor_.go(to);
  return true;
}

parse_id job_mask::behind_healed(token_id id) {
  const auto i = static_cast<std::uint32_t>(id);
  if ((limits_.healing->allowed[i / 32] >> i % 32 & 1) == 0) return constraint::dead;
  const std::string_view all = cursor_.over().trie().text(id), healed = limits_.healing->bytes;
  return all.size() < healed.size() ? constraint::dead
                                    : cursor_.over().step(cursor_.at(), all.substr(healed.size()));
}

// There is always a token: the one that was taken away, behind which the text begins.
void job_mask::write_healed() {
  std::ranges::fill(allowed_, 0);
  for (std::uint32_t i = 0; i < limits_.vocab_size; ++i) {
    if (behind_healed(static_cast<token_id>(i)) <= constraint::failed) continue;
    allowed_[i / 32] |= 1u << i % 32;
  }
  place_ = place::open;
}

void job_mask::make_mask() {
  if (heals()) return write_healed();
  const auto* mask = cursor_.failed() ? nullptr : cursor_.mask();
  if (!mask) {
    const auto why = cursor_.over().failure();
    return fail(errc::invalid_param, fmt::format("the constraint cannot be followed behind token {}: {}",
                                                 tokens(), why.empty() ? "it is too ambiguous" : why));
  }
  write(*mask);
  if (limits_.draw_forced && !all_taken() && place_ != place::failed) write_one(forced_[next_forced_]);
}

bool job_mask::replay() {
  const auto spoken = std::exchange(spoken_, {});
  find_forced();
  for (std::size_t i = 0; i < spoken.size() && !cursor_.failed(); ++i) {
    const bool forced = !all_taken();
    if (forced ? spoken[i] != forced_[next_forced_] : !pass(spoken[i])) {
      if (cursor_.failed()) break;  // make_mask() says why
      end();
      fail(bad_param("spoken", "spoken[{}] is token {}, which the job's constraint does not write there", i,
                     spoken[i]));
      return false;
    }
    if (forced) {
      ++next_forced_;
      continue;
    }
    remember(spoken[i], false);
    find_forced();
  }
  return true;
}

void job_mask::end() {
  forced_.clear();
  next_forced_ = 0;
  place_ = place::over;
}

void job_mask::find_forced() {
  forced_.clear();
  next_forced_ = 0;
  if (limits_.force == forcing::off || heals()) return;
  auto& over = cursor_.over();
  while (!cursor_.failed() && forced_.size() < most_forced && may_force(over, cursor_.at())) {
    const auto before = forced_.size();
    if (limits_.force == forcing::canonical)
      for (const token_id id : canonical_tokens(over, cursor_.at(), recent_))
        if (!add_forced(id)) return;
    if (forced_.size() > before) continue;
    const auto id = single_token(over, cursor_.at());
    if (!id || !add_forced(*id)) return;
  }
}

bool job_mask::add_forced(token_id id) {
  if (static_cast<std::uint32_t>(id) >= limits_.vocab_size) return false;
  if ((is_early() && limits_.endings.contains(id)) || !cursor_.accept(id)) return false;
  forced_.push_back(id);
  remember(id, true);
  return true;
}

void job_mask::pass_drawn() {
  ++next_forced_;
  if (!all_taken()) return write_one(forced_[next_forced_]);
  write(*cursor_.over().mask_known(cursor_.at()));  // work_afresh() has made it
}

void job_mask::remember(token_id id, bool forced) {
  if (limits_.force == forcing::off) return;
  if (limits_.goes_back) forced_places_.push_back(forced);
  if (recent_.size() == recent_.capacity()) recent_.erase(recent_.begin(), recent_.begin() + most_before);
  recent_.push_back(id);
}

void job_mask::write(const token_mask& m) {
  m.write(allowed_);
  if (limits_.vocab_size % 32 != 0) allowed_[words_ - 1] &= (1u << limits_.vocab_size % 32) - 1;
  const auto rows = static_cast<token_id>(limits_.vocab_size);
  const bool early = is_early();
  for (const token_id id : limits_.endings) {
    if (id >= rows) break;
    std::uint32_t& word = allowed_[static_cast<std::uint32_t>(id) / 32];
    const auto bit = 1u << (static_cast<std::uint32_t>(id) % 32);
    if (early)
      word &= ~bit;
    else if (cursor_.may_end())
      word |= bit;
  }
  const bool none = std::ranges::all_of(allowed(), [](std::uint32_t w) { return w == 0; });
  const bool whole = cursor_.must_end() || (none && cursor_.may_end());
  place_ = whole ? place::over : place::open;
  if (whole || !none) return;
  fail(errc::invalid_param,
       fmt::format("no token can go on behind token {} of the constraint{}", tokens(),
                   early ? ": min_tokens forbids the model's stop ids and stop_token_ids for now" : ""));
  if (early) fault_->param = "min_tokens";
}

void job_mask::write_one(token_id id) {
  std::ranges::fill(allowed_, 0);
  allowed_[static_cast<std::uint32_t>(id) / 32] = 1u << (static_cast<std::uint32_t>(id) % 32);
  place_ = place::open;
}

void job_mask::fail(errc code, const std::string& why) { fail(make_error(code, "{}", why)); }

void job_mask::fail(error why) {
  place_ = place::failed;
  fault_ = std::move(why);
}

void mask_helpers::finish(job_mask& m) noexcept {
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds quick{100}, nap{20};  // a sleep takes longer than most masks
  const auto begun = clock::now();
  for (auto now = begun; !m.ready() && now < begun + longest_wait; now = clock::now()) {
    if (now < begun + quick)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(nap);
  }
}

}  // namespace weir::core::grammar
