#include "actors/model_list.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "core/cache/page.h"
#include "core/insist.h"
#include "core/shortened.h"

namespace weir::actors {
namespace {

constexpr std::uint32_t usual_load_ms = 5000;  // after which a client asks for a loading model again

core::error not_ready(const known_model& m) {
  const auto& name = m.spec.name;
  core::error e =
      m.far ? core::make_error(core::errc::unavailable, "no worker of the fleet has {} now", name)
      : m.state == model_state::failed
          ? core::make_error(core::errc::unavailable, "{} could not be loaded: {}", name, m.reason)
      : m.state == model_state::asleep ? core::make_error(core::errc::unavailable, "{} sleeps", name)
      : m.state == model_state::loading
          ? core::make_error(core::errc::unavailable, "{} is being loaded", name)
          : core::make_error(core::errc::unavailable, "{} is not loaded", name);
  if (m.state == model_state::loading) e.retry_after_ms = usual_load_ms;
  return e;
}

core::error no_such(const model_list::snapshot& all, std::string_view name) {
  core::error e;
  e.code = core::errc::model_not_found;
  e.param = "model";
  if (all.known.empty()) {  // a gateway before its first worker
    e.message = "there is no model yet";
    return e;
  }
  if (name.empty()) {
    e.message = "model is missing, and several are served:";
  } else {
    e.message = fmt::format("no model is called '{}'; there is", core::shortened(name));
  }
  for (const auto& m : all.known)
    if (m.state != model_state::absent) e.message += " " + m.spec.name;
  return e;
}

// The places of another process behind those of this one.
model_list::model_ptr with_places_of(const served_model& own, const served_model& far) {
  auto both = std::make_shared<served_model>(own);
  both->places.insert(both->places.end(), far.places.begin(), far.places.end());
  both->context = std::max(own.context, far.context);
  return both;
}

}  // namespace

const char* name(model_state s) noexcept {
  constexpr const char* names[] = {"absent", "loading", "ready", "draining", "failed", "asleep"};
  return names[static_cast<std::size_t>(s)];
}

const char* name(sleep_level l) noexcept { return l == sleep_level::host ? "host" : "disk"; }

memory_use known_model::use_of(std::size_t place) const {
  const auto& p = *texts()->places[place];
  if (!served) return asleep_part(p.memory, p.device);
  auto use = p.memory;
  if (place < pool_pages.size()) use.pages = pool_pages[place] * p.page_bytes;
  return use;
}

std::uint64_t known_model::kv_tokens_of(std::size_t place) const {
  return place < pool_pages.size() ? pool_pages[place] * core::page_tokens
                                   : texts()->places[place]->kv_tokens;
}

void model_list::publish(snapshot next) {
  const std::lock_guard hold(lock_);
  own_ = std::move(next);
  publish_both();
}

void model_list::publish_far(std::vector<known_model> all) {
  const std::lock_guard hold(lock_);
  far_ = std::move(all);
  publish_both();
}

void model_list::publish_both() {
  snapshot next = own_;
  next.version = now_->version + 1;
  for (const known_model& m : far_) {
    const auto own =
        std::ranges::find_if(next.known, [&](const known_model& x) { return x.spec.name == m.spec.name; });
    if (own == next.known.end()) {
      next.known.push_back(m);
      if (m.served) next.served.push_back(m.served);
    } else if (own->served && m.served) {
      auto both = with_places_of(*own->served, *m.served);
      std::ranges::replace(next.served, std::exchange(own->served, both), both);
    }
  }
  now_ = std::make_shared<snapshot>(std::move(next));
  std::erase_if(followers_, [](const auto& f) { return f.expired(); });
  for (const auto& weak : followers_) {
    const auto f = weak.lock();
    if (!f || f->told.exchange(true)) continue;
    boost::asio::post(f->ex, [weak] {
      const auto alive = weak.lock();
      if (!alive) return;
      alive->told = false;  // before the list is read: a later change makes another call
      alive->changed();
    });
  }
}

model_list::picture model_list::look() const {
  const std::lock_guard hold(lock_);
  return now_;
}

std::shared_ptr<const model_list::catalogue> model_list::models() const {
  const auto all = look();
  return {all, &all->served};
}

model_list::model_ptr model_list::at(const catalogue& all, engine_id engine) {
  const auto runs = [&](const model_ptr& m) {
    return std::ranges::any_of(m->places, [&](const auto& p) { return p->engine == engine; });
  };
  const auto found = std::ranges::find_if(all, runs);
  return found == all.end() ? nullptr : *found;
}

core::result<const known_model*> model_list::known(const snapshot& all, std::string_view name) const {
  name = behind(name);
  const known_model* found = nullptr;
  std::size_t there = 0;
  for (const auto& m : all.known) {
    if (!name.empty() ? m.spec.name == name : (m.far || m.state != model_state::absent) && ++there == 1)
      found = &m;
  }
  if (!found || (name.empty() && there > 1)) return no_such(all, name);
  return found;
}

core::result<model_list::model_ptr> model_list::find(std::string_view name) const {
  const auto all = look();
  const auto found = known(*all, name);
  if (!found) return found.error();
  if (!(*found)->served) return not_ready(**found);
  return (*found)->served;
}

core::result<model_list::model_ptr> model_list::find_texts(std::string_view name) const {
  const auto all = look();
  const auto found = known(*all, name);
  if (!found) return found.error();
  if (const auto& texts = (*found)->texts()) return texts;
  return not_ready(**found);
}

core::duration model_list::predicted_load(const snapshot& all, const known_model& m) {
  constexpr double usual_rate = 4e9;  // bytes a second, until a load was measured
  if (m.level == sleep_level::host) return predicted_wake(m);
  std::uint64_t bytes = m.predicted.weights;
  if (m.state == model_state::loading && m.progress)
    if (const auto total = m.progress->total.load(); total > 0)
      bytes = total - std::min(total, m.progress->done.load());
  if (bytes == 0) return m.last_load.value_or(std::chrono::milliseconds(usual_load_ms));
  const double seconds = static_cast<double>(bytes) / (all.load_rate > 0 ? all.load_rate : usual_rate);
  return std::chrono::duration_cast<core::duration>(
      std::chrono::duration<double>(std::min(seconds, 86'400.0)));
}

core::duration model_list::predicted_wake(const known_model& m) {
  constexpr double usual_rate = 16e9;  // bytes a second, until a wake was measured
  if (m.last_wake) return *m.last_wake;
  const auto seconds = std::chrono::duration<double>(static_cast<double>(m.predicted.weights) / usual_rate);
  return std::chrono::milliseconds(1) + std::chrono::duration_cast<core::duration>(seconds);
}

std::shared_ptr<void> model_list::follow(executor ex, std::function<void()> changed) {
  auto f = std::make_shared<follower>();
  f->ex = std::move(ex);
  f->changed = std::move(changed);
  const std::lock_guard hold(lock_);
  followers_.push_back(f);
  return f;
}

}  // namespace weir::actors
