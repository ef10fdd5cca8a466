// The members of a service for models at run time.
#include <algorithm>
#include <chrono>

#include "actors/service_parts.h"
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
  if (m.last_load) s.last_load_s = std::chrono::duration<double>(*m.last_load).count();
  if (m.state == model_state::loading && m.progress) {
    s.done = m.progress->done;
    s.total = m.progress->total;
  }
  if (const auto at = m.ended->last())
    s.last_used_s = std::chrono::duration<double>(time.now() - *at).count();
  s.share = m.spec.share.value_or(1);
  s.limits = m.spec.limits;
  if (!m.served) return s;
  const auto parts = parts_of(m);
  s.share_asked = parts.asked;
  s.share_got = parts.got;
  s.context = m.served->context;
  for (std::size_t i = 0; i < m.hosts.size(); ++i) {
    const model_place& place = *m.served->places[i];
    add_bytes(s.bytes, place.memory);
    s.kv_tokens += place.kv_tokens;
    const auto jobs = place.admission->unfinished();
    const auto counts = hosts[m.hosts[i]]->published().look()->of(place.engine).counts;
    const auto running = std::min(jobs, counts.prefilling + counts.decoding);
    s.running += running;
    s.queued += jobs - running;
    if (jobs > 0) s.last_used_s = 0;
  }
  return s;
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

void service::share_model(share_order o, executor ex, order_replies to) {
  p_->models.share(std::move(o), std::move(ex), std::move(to));
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

models_picture service::all_models() const {
  const auto all = p_->list.look();
  models_picture out;
  out.version = all->version;
  for (const auto& m : all->known) out.models.push_back(p_->status_of(m));
  out.devices = p_->book.accounts();
  return out;
}

std::shared_ptr<void> service::follow_models(executor ex, std::function<void()> changed) {
  return p_->list.follow(std::move(ex), std::move(changed));
}

}  // namespace weir::actors
