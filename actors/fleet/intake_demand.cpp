// Models that requests at gateways wait for. Each gateway has one wish a model, in the line of the worker's
// own requests (load_line.h): the worker's registry decides as it does for these.
#include <algorithm>
#include <boost/asio/post.hpp>

#include "actors/fleet/intake.h"
#include "core/insist.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;
using core::errc;

namespace {

constexpr std::size_t most_wishes = 1024;
// A model that has come stays for so long at least: the jobs that waited are on their way.
constexpr core::duration way_held = std::chrono::seconds(2);

core::error no_load(errc code, std::string message) {
  core::error e{code, std::move(message), "model"};
  e.retry_after_ms = least_retry_ms;
  return e;
}

}  // namespace

void intake::on(const wire::load_wish& f, const bus::message& m) {
  const auto there = wishes_.find(f.number);
  if (there != wishes_.end() && (there->second.gateway != f.gateway || there->second.model != f.model))
    return void(++now_.broken);
  if (!f.over) return answer(m.answer_to, news_of(f));
  if (there == wishes_.end()) return;
  *there->second.gone = true;
  wishes_.erase(there);
}

wire::load_news intake::news_of(const wire::load_wish& f) {
  if (const auto there = wishes_.find(f.number); there != wishes_.end()) {
    visitors& v = there->second;
    v.heard = time_.now();
    const bool left = v.news.now == wire::load_stand::ready && !v.way && !takes_jobs_of(v.model);
    if (!left) return v.news;
    wishes_.erase(there);  // the model has come and gone: the gateway wishes for it again
    return {f.number, wire::load_stand::unknown, {}};
  }
  if (!use_permit(f.number)) {
    ++now_.broken;
    return {f.number, wire::load_stand::unknown, {}};
  }
  if (const auto begun = begin_wish(f); !begun) return {f.number, wire::load_stand::refused, begun.error()};
  ++now_.wishes;
  publish_board();  // other gateways wait for this load, too
  return wishes_.at(f.number).news;
}

core::result<void> intake::begin_wish(const wire::load_wish& f) {
  if (!doors_.demand.on) return no_load(errc::unavailable, "the worker loads no models for requests");
  if (state_ != wire::worker_state::ready)
    return no_load(errc::unavailable, "the worker takes no jobs any more");
  const auto all = doors_.list.look();
  const auto known = std::ranges::find(all->known, f.model, [](const known_model& k) { return k.spec.name; });
  if (known == all->known.end() || known->far)
    return no_load(errc::model_not_found, fmt::format("the worker knows no model '{}'", f.model));
  if (wishes_.size() >= most_wishes)
    return no_load(errc::overloaded, "the requests of too many gateways wait for models of the worker");
  visitors v;
  v.gateway = f.gateway;
  v.model = f.model;
  v.heard = time_.now();
  v.news.number = f.number;
  model_wish w;
  w.model = f.model;
  w.since = time_.now();
  w.until = core::time_point::max();  // the gateway says when nobody waits any more
  w.gone = [gone = v.gone] { return gone->load(); };
  w.done = [weak = weak_from_this(), ex = ex_, number = f.number](core::result<model_way> how) {
    core::insist([&] {
      boost::asio::post(ex, [weak, number, how] {
        if (const auto self = weak.lock()) self->wish_ended(number, how);
      });
    });
  };
  wishes_.emplace(f.number, std::move(v));
  doors_.wish(std::move(w));
  return {};
}

void intake::wish_ended(std::uint64_t number, core::result<model_way> how) {
  const auto at = wishes_.find(number);
  if (at == wishes_.end()) return;
  auto& v = at->second;
  v.news.now = how ? wire::load_stand::ready : wire::load_stand::refused;
  v.ready = time_.now();
  if (how)
    v.way = std::move(how->way);
  else
    v.news.why = how.error();
  publish_board();
}

// A gateway that is not heard any more waits for nothing.
void intake::look_after_wishes() {
  const auto now = time_.now();
  for (auto at = wishes_.begin(); at != wishes_.end();) {
    visitors& v = at->second;
    if (v.way && now - v.ready >= way_held) v.way.reset();
    const bool silent = now - v.heard >= options_.silent_after;
    if (silent) *v.gone = true;
    at = silent ? wishes_.erase(at) : std::next(at);
  }
}

void intake::end_wishes() {
  for (const auto& [number, v] : wishes_) *v.gone = true;
  wishes_.clear();
}

bool intake::takes_jobs_of(const std::string& model) const {
  const auto all = doors_.list.look();
  return std::ranges::any_of(all->known, [&](const auto& k) {
    return k.spec.name == model && !k.far && k.served && !k.use->closed();
  });
}

bool intake::is_wanted(const std::string& model) const {
  return std::ranges::any_of(wishes_, [&](const auto& w) {
    return w.second.model == model && w.second.news.now == wire::load_stand::waits;
  });
}

}  // namespace weir::actors::fleet
