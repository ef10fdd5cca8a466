#include "net/access/known_key.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir::net {
namespace {

// Time after which a client may ask again while its key has as many unfinished jobs as it may have.
constexpr std::chrono::milliseconds until_job_ends{1000};

}  // namespace

std::shared_ptr<const known_key::line> known_key::look() const {
  const std::lock_guard hold(lock_);
  return line_;
}

std::shared_ptr<const key_rights> known_key::rights() const {
  const auto now = look();
  return {now, &now->rights};
}

void known_key::set(const key_rights& r, std::shared_ptr<actors::job_account> of_name, core::time_point now) {
  used_->allowance.set(r.tokens_per_min, now);
  auto next = std::make_shared<line>();
  next->rights = r;
  next->of_name = std::move(of_name);
  const std::lock_guard hold(lock_);
  line_ = std::move(next);
}

bool known_key::allows_model(std::string_view name) const {
  const auto now = rights();
  return now->models.empty() || std::ranges::find(now->models, name) != now->models.end();
}

std::array<std::shared_ptr<actors::job_account>, 2> known_key::accounts() const {
  return {used_, look()->of_name};
}

std::optional<known_key::limit_refusal> known_key::judge(std::uint32_t jobs, core::time_point now) const {
  const std::uint64_t most = rights()->jobs;
  if (most != 0 && used_->unfinished() + jobs > most)
    return limit_refusal{fmt::format("this key has at most {} unfinished jobs", most), until_job_ends,
                         jobs > most};
  const auto wait = used_->allowance.wait(now);
  if (wait == core::duration()) return std::nullopt;
  return limit_refusal{
      fmt::format("this key may use {} tokens a minute, and has used them", used_->allowance.per_min()),
      std::chrono::ceil<std::chrono::milliseconds>(wait), false};
}

std::optional<limit_state> known_key::jobs_left() const {
  const std::uint64_t most = rights()->jobs, busy = used_->unfinished();
  if (most == 0) return std::nullopt;
  return limit_state{most, most - std::min(busy, most),
                     busy == 0 ? core::duration() : core::duration(until_job_ends)};
}

std::optional<limit_state> known_key::tokens_left(core::time_point now) const {
  const auto& a = used_->allowance;
  if (a.per_min() == 0) return std::nullopt;
  return limit_state{a.per_min(), a.left(now), a.until_full(now)};
}

}  // namespace weir::net
