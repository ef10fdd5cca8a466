#include "net/model_watch.h"

#include <algorithm>

#include "net/hub.h"

namespace weir::net {

model_watch::follower& model_watch::follower::operator=(follower&& other) noexcept {
  std::swap(watch_, other.watch_);
  std::swap(at_, other.at_);
  return *this;
}

void model_watch::follower::leave() noexcept {
  if (!watch_) return;
  watch_->followers_.erase(at_);
  --watch_->server_.model_followers;
  if (watch_->followers_.empty()) watch_->of_service_.reset();
  watch_.reset();
}

model_watch::follower model_watch::follow(std::function<void()> changed) {
  if (++server_.model_followers > server_.options.limits.model_followers) {
    --server_.model_followers;
    return {};
  }
  follower f;
  f.at_ = followers_.insert(followers_.end(), std::move(changed));
  f.watch_ = shared_from_this();
  if (of_service_) return f;
  auto again = [weak = weak_from_this()] {
    if (const auto alive = weak.lock()) alive->refresh();
  };
  of_service_ = server_.service.follow_models(shard_, std::move(again));
  refresh();
  return f;
}

void model_watch::tick() {
  if (followers_.empty()) return;
  if (loading_) return refresh();
  for (const auto& changed : followers_) changed();
}

void model_watch::refresh() {
  now_ = std::make_shared<const actors::models_picture>(server_.service.all_models());
  const auto loads = [](const auto& m) { return m.state == actors::model_state::loading; };
  loading_ = std::ranges::any_of(now_->models, loads);
  for (const auto& changed : followers_) changed();
}

}  // namespace weir::net
