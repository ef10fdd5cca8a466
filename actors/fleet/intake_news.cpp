// What a worker tells: tokens to gateways, and its board to all.
#include <algorithm>
#include <boost/asio/post.hpp>

#include "actors/fleet/board_numbers.h"
#include "actors/fleet/far_model.h"
#include "actors/fleet/intake.h"
#include "actors/fleet/text_files.h"
#include "core/insist.h"

namespace weir::actors::fleet {

namespace asio = boost::asio;
namespace wire = core::fleet;
using core::time_point;

namespace {

// A gateway that is back before that has lost no count of frames.
constexpr core::duration peers_kept = std::chrono::hours(1);
constexpr core::duration landmarks_whole_every = std::chrono::seconds(10);
constexpr core::duration time_to_leave = std::chrono::seconds(2);  // for gateways to move what is left

wire::board_model board_of(const served_model& m, const model_place& p, const std::string& build) {
  const auto& a = *p.admission;
  wire::board_model b;
  b.name = m.name;
  b.device = p.device;
  b.engine = static_cast<std::uint64_t>(p.engine);
  b.arithmetic = wire::class_of(p.arithmetic, build);
  b.vocab_size = m.info.vocab_size;
  b.kv_type = m.info.kv_type;
  b.context = p.context;
  b.kv_tokens = p.kv_tokens;
  b.weight_bytes = p.memory.weights;
  write_numbers(a, b);
  if (const auto why = a.closed()) b.closed = why->message;
  return b;
}

wire::known_model known_of(const model_status& m) {
  const auto& now = m.state == model_state::absent || m.state == model_state::failed ? m.predicted : m.bytes;
  wire::known_model k;
  k.name = m.name;
  k.state = name(m.state);
  k.bytes = now.weights + now.pages + now.workspaces + now.runtime + now.host_pages + now.asleep;
  k.share = m.share;
  k.reason = m.reason;
  k.wakes = m.state == model_state::asleep && m.level == sleep_level::host;
  k.pinned = m.pinned;
  k.jobs = m.running + m.queued;
  return k;
}

}  // namespace

void intake::note(const std::shared_ptr<guest>& g) {
  if (std::exchange(g->has_news, true)) return;
  news_.push_back(g);
  if (std::exchange(flushing_, true)) return;
  // Behind the other streams that the same step has news for.
  asio::post(ex_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->flush();
  });
}

// One frame for each gateway that has news, but for what does not fit in one.
void intake::flush() {
  flushing_ = false;
  for (const auto& weak : news_) {
    const auto g = weak.lock();
    if (!g) continue;
    g->has_news = false;
    if (find(g->name) != g) continue;  // it was forgotten
    const auto p = peers_.find(g->gateway);
    if (p == peers_.end()) continue;
    auto& writer = g->with_logprobs() ? p->second.logprobs : p->second.tokens;
    while (g->tell(writer))
      if (writer.full()) send(p->first, p->second, writer);
    if (g->told_end && !g->ended) g->ended = time_.now();
  }
  news_.clear();
  for (auto& [gateway, p] : peers_)
    for (auto* writer : {&p.tokens, &p.logprobs})
      if (!writer->empty()) send(gateway, p, *writer);
}

// A frame that cannot be sent counts: the gateway sees that it is missing.
void intake::send(const std::string& gateway, peer& p, wire::token_frame_writer& w) {
  ++now_.frames;
  bus_.publish(subjects_.tokens_to(gateway), w.take(++p.frames));
}

void intake::tick() {
  const auto now = time_.now();
  shelf_.expire(now);
  std::vector<core::job_id> over;
  for (const auto& [id, g] : guests_) {
    const auto p = peers_.find(g->gateway);
    const bool cut = !g->left && (p == peers_.end() ||
                                  now - p->second.heard > options_.silent_after + options_.adopt_grace);
    if (cut && !g->ended) ++now_.cut_off;
    if (cut || (g->ended && now - *g->ended > options_.retain)) over.push_back(id);
  }
  for (const auto& id : over) forget(id);
  std::erase_if(peers_,
                [&](const auto& p) { return p.second.jobs == 0 && now - p.second.heard > peers_kept; });
  look_after_drain();
  look_after_wishes();
  publish_board();
  publish_landmarks();
  now_.jobs = running();
  now_.kept = static_cast<std::uint32_t>(guests_.size()) - now_.jobs;
  {
    const std::lock_guard held(lock_);
    shown_ = now_;
  }
  if (timer_) timer_->set(now + options_.board_every);
}

// A job that was taken: other gateways hear of it before they send their next one. Many jobs wait for a board
// that is due anyway.
void intake::tell_load() {
  if (time_.now() - board_at_ >= options_.board_after_job) publish_board();
}

void intake::publish_board() {
  ++boards_;
  board_at_ = time_.now();
  bus_.publish(subjects_.board_of(name_), wire::json_of(board()));
}

// Changes of each engine's landmarks, and all of them now and then: a gateway that has missed something waits
// for these.
void intake::publish_landmarks() {
  std::map<std::uint64_t, told_landmarks> there;
  for (const auto& h : doors_.hosts) {
    const auto now = h->published().look();
    for (const auto& e : now->engines) {
      if (!e.landmarks) continue;
      const auto id = static_cast<std::uint64_t>(e.engine);
      auto& told = there[id] = std::move(told_[id]);
      tell_landmarks(id, told, e.landmarks);
    }
  }
  told_ = std::move(there);
}

void intake::tell_landmarks(std::uint64_t engine, told_landmarks& told,
                            const std::shared_ptr<const wire::landmark_list>& now) {
  const bool whole = time_.now() >= told.whole_at, changed = told.seen != now;
  if (!whole && !changed) return;
  auto next = changed ? wire::sorted_landmarks(*now) : told.list;
  wire::landmark_news news;
  if (whole) {
    news.came = next;
    told.whole_at = time_.now() + landmarks_whole_every;
  } else {
    news = wire::change_of(told.list, next);
    news.before = told.number;
  }
  told.seen = now;
  told.list = std::move(next);
  if (!whole && news.came.empty() && news.gone.empty()) return;
  news.worker = name_;
  news.engine = engine;
  news.now = ++told.number;
  bus_.publish(subjects_.board_of(name_), wire::frame_of(news));
}

std::uint64_t intake::digest(const served_model& m) {
  const auto [at, fresh] = digests_.try_emplace(m.tokenizer, 0);
  if (fresh) at->second = digest_of(m);
  return at->second;
}

wire::fleet_board intake::board() {
  wire::fleet_board b;
  b.worker = name_;
  b.state = state_;
  b.build = options_.build;
  b.number = boards_;
  b.broken = now_.broken;
  b.untold = now_.silent;
  for (const auto& h : doors_.hosts)
    if (const auto silent = h->published().silent_for(time_.now()))
      b.silent_ms = std::max<std::uint64_t>(
          b.silent_ms,
          static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(*silent).count()));
  const auto all = doors_.list.look();
  for (const auto& m : all->served)
    for (const auto& p : m->places)
      if (!p->far) {
        b.models.push_back(board_of(*m, *p, options_.build));
        b.models.back().digest = digest(*m);
        const auto known = std::ranges::find(all->known, m, &known_model::served);
        b.models.back().leaves = known != all->known.end() && known->use->closed();
        if (m->files) b.models.back().files = wire::digest_text(m->files->digest());
      }
  std::erase_if(digests_, [](const auto& d) { return d.first.use_count() == 1; });  // models that are gone
  const auto picture = doors_.all_models();
  for (const auto& m : picture.models) {
    b.known.push_back(known_of(m));
    b.known.back().wanted = is_wanted(m.name);
  }
  b.on_demand = doors_.demand.on;
  for (const auto& d : picture.devices)
    if (d.total > 0) b.devices.push_back({d.device, d.free});
  for (const auto& [gateway, p] : peers_) b.gateways[gateway] = {p.frames, p.jobs};
  return b;
}

std::uint32_t intake::running() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(guests_, [](const auto& g) { return !g.second->over(); }));
}

void intake::drain(core::duration limit, executor ex, std::function<void()> done) {
  ends_ = true;
  drained_.push_back([ex = std::move(ex), done = std::move(done)] { asio::post(ex, done); });
  drain_until(time_.now() + limit);
}

// A second order may shorten the time of the first one.
void intake::drain_until(core::time_point limit) {
  drain_until_ = std::min(drain_until_, limit);
  if (state_ == wire::worker_state::ready) state_ = wire::worker_state::draining;
  look_after_drain();
  publish_board();
}

void intake::look_after_drain() {
  const auto now = time_.now();
  const bool empty = running() == 0;
  if (state_ == wire::worker_state::draining && (empty || now >= drain_until_)) {
    state_ = wire::worker_state::leaving;
    leave_at_ = now + time_to_leave;
  }
  if (state_ != wire::worker_state::leaving || (!empty && now < leave_at_)) return;
  for (const auto& tell : std::exchange(drained_, {})) tell();
}

}  // namespace weir::actors::fleet
