// The members of a service for models at run time.
#include <algorithm>
#include <chrono>

#include "actors/job_state.h"
#include "actors/model_steps.h"
#include "actors/service_parts.h"
#include "core/insist.h"
#include "core/memory/plan_text.h"
#include "core/shortened.h"

namespace weir::actors {
namespace {

void add_bytes(model_bytes& to, const memory_use& use) {
  to.weights += use.weights;
  to.pages += use.pages;
  to.workspaces += use.workspaces;
  to.runtime += use.runtime;
  to.host_pages += use.host_pages;
}

// What a model that sleeps, or is being woken, has of its devices.
void add_sleeper(model_status& s, const known_model& m) {
  s.context = m.sleeper->context;
  for (std::size_t i = 0; i < m.sleeper->places.size(); ++i) {
    add_bytes(s.bytes, m.use_of(i));
    s.kv_tokens += m.kv_tokens_of(i);
  }
}

}  // namespace

model_status service::parts::status_of(const known_model& m) const {
  model_status s;
  s.name = m.spec.name;
  s.source = m.spec.source;
  s.state = m.state;
  s.devices = m.devices;
  s.predicted = m.predicted;
  s.reason = m.reason;
  s.loads = m.loads;
  s.load_failures = m.load_failures;
  s.level = m.level;
  s.sleeps = m.sleeps;
  s.wakes = m.wakes;
  s.nap_failures = m.nap_failures;
  s.bytes.asleep = m.asleep_bytes;
  s.gave_way = m.gave_way;
  s.grew = m.grew;
  s.pages_given = m.pages_given;
  s.pages_taken = m.pages_taken;
  if (m.last_wake) s.last_wake_s = std::chrono::duration<double>(*m.last_wake).count();
  if (m.last_load) s.last_load_s = std::chrono::duration<double>(*m.last_load).count();
  if (m.state == model_state::loading && m.progress) {
    s.done = m.progress->done;
    s.total = m.progress->total;
  }
  if (const auto at = m.ended->last())
    s.last_used_s = std::chrono::duration<double>(time.now() - *at).count();
  s.share = m.spec.share.value_or(1);
  s.pinned = m.spec.pinned;
  s.limits = m.spec.limits;
  if (m.sleeper) add_sleeper(s, m);
  if (!m.served) return s;
  const auto parts = parts_of(m);
  s.share_asked = parts.asked;
  s.share_got = parts.got;
  s.context = m.served->context;
  for (std::size_t i = 0; i < m.hosts.size(); ++i) {
    const model_place& place = *m.served->places[i];
    add_bytes(s.bytes, m.use_of(i));
    s.kv_tokens += m.kv_tokens_of(i);
    const auto jobs = place.admission->unfinished();
    const auto counts = hosts[m.hosts[i]]->published().look()->of(place.engine).counts;
    const auto running = std::min(jobs, counts.prefilling + counts.decoding);
    s.running += running;
    s.queued += jobs - running;
    if (jobs > 0) s.last_used_s = 0;
  }
  return s;
}

void service::parts::add_pages(std::vector<device_account>& to, const known_model& m) const {
  for (std::size_t i = 0; i < m.hosts.size(); ++i) {
    const model_place& place = *m.served->places[i];
    const auto at = std::ranges::find(to, place.device, &device_account::device);
    const auto counts = hosts[m.hosts[i]]->published().look()->of(place.engine).counts;
    if (at == to.end() || counts.pages_total == 0) continue;
    const std::uint64_t page = place.memory.pages / counts.pages_total;
    const auto add = [&](std::uint64_t& sum, std::uint32_t pages) {
      const std::uint64_t left = at->lines.pages - at->pages_used - at->pages_cached;
      sum += std::min(left, pages * page);
    };
    add(at->pages_used, counts.pages_used);
    add(at->pages_cached, counts.pages_cached);
  }
}

device_parts service::parts::parts_of(const known_model& m) const {
  device_parts sum;
  const auto now = time.now();
  for (std::size_t i = 0; i < m.hosts.size(); ++i) {
    const auto one = part_of(*hosts[m.hosts[i]]->published().look(), m.served->places[i]->engine, now);
    sum.asked += one.asked;
    sum.got += one.got;
  }
  if (m.hosts.empty()) return sum;
  const auto places = static_cast<double>(m.hosts.size());
  return {sum.asked / places, sum.got / places};
}

// What a request is told whose model is not ready, and that does not wait. `wanted`: it would have waited.
core::error service::parts::not_loaded(const model_list::snapshot& all, const known_model& m,
                                       bool wanted) const {
  auto e = core::make_error(core::errc::unavailable, "{} is not loaded: it is {}{}", m.spec.name,
                            name(m.state), wanted ? ", and this server loads no models for requests" : "");
  e.param = "model";
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(model_list::predicted_load(all, m));
  e.retry_after_ms =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(ms.count(), least_retry_ms, most_retry_ms));
  return e;
}

core::result<> service::parts::find_model(arrival& a) {
  const auto all = list.look();
  const auto known = list.known(*all, a.asked.model);
  if (!known) return known.error();
  const known_model& m = **known;
  a.ended = m.ended;
  const auto stay = std::min<core::duration>(a.asked.stay, demand.longest_stay);
  a.way = m.served ? m.use->enter(time.now(), stay) : nullptr;
  if (a.way) {
    a.model = m.served;
    return {};
  }
  const bool wants = a.asked.when_not_loaded == request::load::wait;
  const bool refuses = a.asked.when_not_loaded == request::load::refuse;
  const bool loads = m.far ? m.on_demand : demand.on;
  if (loads && !refuses) {
    a.asked.model = m.spec.name;
    a.waits = true;
    a.far = m.far;
    a.model = m.sleeper;
    return {};
  }
  if (loads || refuses || wants) return not_loaded(*all, m, wants);
  auto found = list.find(m.spec.name);
  if (!found) return found.error();
  a.model = std::move(*found);  // it drains, and its admission says so; or it has become ready since
  return {};
}

void service::parts::check_and_wait(const std::shared_ptr<arrival>& a) {
  post(pool, a, [this, a](core::turn& at) {
    if (!a->judge(at)) return;
    a->model = nullptr;
    wait_for_model(a);
  });
}

// The model comes by way of the registry's thread; the text begins when it is there.
void service::parts::wait_for_model(const std::shared_ptr<arrival>& a) {
  model_wish w;
  w.model = a->asked.model;
  w.key = a->asked.who.key;
  w.since = a->choices.front()->created;
  w.until = w.since + demand.load_wait;
  const auto deadline = a->asked.deadline ? w.since + *a->asked.deadline : core::time_point::max();
  w.until = std::min(w.until, deadline);
  w.stay = std::min<core::duration>(a->asked.stay, demand.longest_stay);
  w.gone = [a] { return a->abandoned(); };
  w.begins = [a, name = w.model](std::uint32_t ahead) {
    for (const auto& s : a->choices)
      core::insist([&] { boost::asio::post(s->shard, [s, name, ahead] { s->waits(name, ahead); }); });
  };
  w.done = [this, a, deadline](core::result<model_way> r) {
    if (r) {
      a->model = std::move(r->model);
      a->way = std::move(r->way);
      return begin_text(a);
    }
    if (time.now() < deadline) return a->refuse(r.error());
    for (const auto& s : a->choices) s->cancel(core::finish_reason::timeout);
  };
  if (!a->far) return models.wish(std::move(w));
  if (const auto fleet = finder()) return fleet->wish(std::move(w));
  w.done(core::make_error(core::errc::unavailable, "the fleet is gone"));
}

std::optional<load_state> service::loading() const {
  if (p_->list.started()) return std::nullopt;
  load_state next;
  const auto all = p_->list.look();
  for (const auto& m : all->known) {
    if (m.state == model_state::loading && m.progress)
      return load_state{m.spec.name, m.progress->done, m.progress->total};
    if (next.model.empty() && !m.served) next.model = m.spec.name;
  }
  return next;
}

void service::load_model(load_order o, executor ex, order_replies to) {
  p_->models.load(std::move(o), std::move(ex), std::move(to));
}

void service::unload_model(unload_order o, executor ex, order_replies to) {
  p_->models.unload(std::move(o), std::move(ex), std::move(to));
}

void service::swap_models(swap_order o, executor ex, order_replies to) {
  p_->models.swap(std::move(o), std::move(ex), std::move(to));
}

void service::set_terms(terms_order o, executor ex, order_replies to) {
  p_->models.set_terms(std::move(o), std::move(ex), std::move(to));
}

void service::sleep_model(sleep_order o, executor ex, order_replies to) {
  p_->models.sleep(std::move(o), std::move(ex), std::move(to));
}

void service::wake_model(wake_order o, executor ex, order_replies to) {
  p_->models.wake(std::move(o), std::move(ex), std::move(to));
}

core::result<std::vector<load_step>> service::parts::steps_for(const load_order& o,
                                                               const std::vector<std::string>& out) const {
  const auto all = list.look();
  const auto there =
      std::ranges::find(all->known, o.spec.name, [](const known_model& m) { return m.spec.name; });
  const auto spec = spec_of(o, there == all->known.end() ? nullptr : &*there);
  if (spec.source.empty())
    return core::make_error(core::errc::model_not_found, "no model is called '{}'",
                            core::shortened(spec.name));
  const auto on = choose_hosts(o, hosts, all->known, {out.begin(), out.end()}, most_models);
  if (!on) return on.error();
  return steps_of(spec, *on);
}

void service::plan_model(load_order in, std::vector<std::string> out, executor ex,
                         std::function<void(boost::system::result<std::string, order_error>)> done) {
  using answer = boost::system::result<std::string, order_error>;
  auto steps = p_->steps_for(in, out);
  if (!steps) return post_call(ex, done, answer(order_error{steps.error(), {}}));
  const auto made = std::make_shared<memory_book::planned>(order_error{});
  p_->read_files(
      [p = p_.get(), steps = std::move(*steps), out = std::move(out), made] {
        *made = p->book.plan(steps, {out.begin(), out.end()});
      },
      ex,
      [done, made](std::optional<core::error> wrong) {
        if (wrong) return done(answer(order_error{std::move(*wrong), {}}));
        if (!*made) return done(answer(made->error()));
        done(answer(core::plan_json(**made)));
      });
}

models_picture service::parts::all_models() const {
  const auto all = list.look();
  models_picture out;
  out.version = all->version;
  for (const auto& m : all->known) out.models.push_back(status_of(m));
  out.devices = book.accounts();
  for (const auto& m : all->known)
    if (m.served) add_pages(out.devices, m);
  const auto room = book.sleep_account();
  out.sleep_total = room.total;
  out.sleep_taken = room.taken;
  return out;
}

models_picture service::all_models() const { return p_->all_models(); }

std::shared_ptr<void> service::follow_models(executor ex, std::function<void()> changed) {
  return p_->list.follow(std::move(ex), std::move(changed));
}

}  // namespace weir::actors
