#include "actors/model_steps.h"

#include <boost/asio/post.hpp>

#include "core/insist.h"
#include "core/memory/plan_text.h"

namespace weir::actors {

namespace asio = boost::asio;
using namespace registry_messages;
using core::errc;

namespace {

constexpr core::duration look_again = std::chrono::milliseconds(10);  // while jobs run to their ends

std::uint64_t milliseconds(core::duration d) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(d).count()));
}

}  // namespace

void answer(const executor& ex, const std::function<void(order_replies::answer)>& to,
            order_replies::answer what) {
  if (to) core::insist([&] { asio::post(ex, [to, what] { to(what); }); });
}

core::error ended_early() { return core::make_error(errc::unavailable, "the service has ended"); }

model_steps::model_steps(model_registry::parts p) : p_(std::move(p)) {
  for (const auto& step : p_.start)
    if (step.copy == 0) {
      add(step.spec);
      known_.back().state = model_state::loading;  // or about to be
    }
  for (const auto& spec : p_.known)
    if (!find(spec.name)) add(spec);
  publish();
}

void model_steps::refuse(order& o, const core::error& why) {
  if (auto* s = std::get_if<registry_messages::start>(&o.what))
    asio::post(s->ex, [done = s->done, why] { done(why); });
  const auto say_no = [&](const auto* a) {
    if (a) answer(a->ex, a->to.begun, fault_of(why));
  };
  say_no(std::get_if<asked<load_order>>(&o.what));
  say_no(std::get_if<asked<unload_order>>(&o.what));
  say_no(std::get_if<asked<swap_order>>(&o.what));
  say_no(std::get_if<asked<terms_order>>(&o.what));
  say_no(std::get_if<asked<sleep_order>>(&o.what));
  say_no(std::get_if<asked<wake_order>>(&o.what));
}

void model_steps::give_up_steps(const executor& ex) {
  given_.clear();
  growing_.reset();
  for (auto& e : known_) {
    if (e.napping) give_up_nap(e, ex);
    if (e.state == model_state::loading && e.progress) {
      e.state = model_state::failed;
      e.reason = "the load was not finished";
    }
    if (e.state == model_state::draining && e.served) end_drain({&e});
  }
  progress_.reset();
}

// Nobody knows which of its engines sleep: all are closed.
void model_steps::give_up_nap(entry& e, const executor& ex) {
  const auto m = e.texts();
  for (std::size_t i = 0; i < e.hosts.size(); ++i)
    p_.hosts[e.hosts[i]]->close(m->places[i]->engine, ex, [](core::engine_totals) {});
  p_.memory.release(e.memory);
  e.napping = false;
  e.hosts.clear();
  e.devices.clear();
  e.served = e.sleeper = nullptr;
  e.level.reset();
  e.asleep_bytes = 0;
  e.state = model_state::failed;
  e.reason = "the sleep or the wake was not finished";
}

void model_steps::add(const model_spec& spec) {
  entry e;
  e.spec = spec;
  known_.push_back(std::move(e));
}

model_steps::entry* model_steps::find(std::string_view name) {
  const auto at = std::ranges::find(known_, name, [](const entry& e) { return e.spec.name; });
  return at == known_.end() ? nullptr : &*at;
}

void model_steps::publish() {
  model_list::snapshot s;
  s.past = past_;
  s.past_ended = past_ended_;
  s.load_rate = load_rate_;
  for (const auto& e : known_) {
    s.known.push_back(e);
    if (e.served) s.served.push_back(e.served);
  }
  p_.list.publish(std::move(s));
}

core::error model_steps::busy() const {
  auto e = core::make_error(errc::busy, "another order for models is being carried out: {}", what_);
  const auto spent = milliseconds(p_.time.now() - busy_since_);
  std::uint64_t left = 0;
  if (progress_) {
    const auto done = progress_->done.load(), total = progress_->total.load();
    if (done > 0 && total > done)
      left = static_cast<std::uint64_t>(static_cast<double>(spent) * static_cast<double>(total - done) /
                                        static_cast<double>(done));
  }
  e.retry_after_ms =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(left, least_retry_ms, most_retry_ms));
  return e;
}

asio::awaitable<host::opened> model_steps::open(self_type& self, std::size_t on, model_spec spec,
                                                model_progress both) {
  auto done = [to = mail_](host::opened r) { core::insist([&] { to.tell(order(opened{r})); }); };
  p_.hosts[on]->open(std::move(spec), std::move(both), self.get_executor(), std::move(done));
  auto r = co_await next<opened>(self);
  if (!r) co_return host::opened(ended_early());
  co_return std::move(r->result);
}

asio::awaitable<bool> model_steps::close(self_type& self, std::size_t on, engine_id engine,
                                         core::engine_totals& into) {
  auto done = [to = mail_](core::engine_totals t) { core::insist([&] { to.tell(order(closed{t})); }); };
  p_.hosts[on]->close(engine, self.get_executor(), std::move(done));
  const auto r = co_await next<closed>(self);
  if (r) into += r->counted;
  co_return r.has_value();
}

asio::awaitable<bool> model_steps::read(self_type& self, std::function<void()> work, core::error& wrong) {
  auto done = [to = mail_](std::optional<core::error> e) {
    core::insist([&] { to.tell(order(files_read{e})); });
  };
  p_.read(std::move(work), std::move(done));
  auto r = co_await next<files_read>(self);
  if (r && !r->wrong) co_return true;
  wrong = r ? std::move(*r->wrong) : ended_early();
  co_return false;
}

asio::awaitable<memory_book::promises> model_steps::book_now(self_type& self, std::vector<load_step> steps) {
  const auto out = std::make_shared<memory_book::promises>(order_error{});
  core::error wrong;
  std::function<void()> work = [&book = p_.memory, steps = std::move(steps), out] {
    *out = book.book(steps);
  };
  const bool read_all = co_await read(self, std::move(work), wrong);
  if (!read_all) co_return fault_of(std::move(wrong));
  co_return std::move(*out);
}

asio::awaitable<memory_book::planned> model_steps::plan(self_type& self, std::vector<load_step> steps,
                                                        std::set<std::string> leaving,
                                                        std::set<std::string> sleeping) {
  note_used();
  const auto out = std::make_shared<memory_book::planned>(order_error{});
  core::error wrong;
  std::function<void()> work = [&book = p_.memory, steps = std::move(steps), leaving = std::move(leaving),
                                sleeping = std::move(sleeping),
                                out] { *out = book.plan(steps, leaving, sleeping); };
  const bool read_all = co_await read(self, std::move(work), wrong);
  if (!read_all) co_return fault_of(std::move(wrong));
  co_return std::move(*out);
}

asio::awaitable<std::optional<order_error>> model_steps::lacks(self_type& self, std::vector<load_step> steps,
                                                               std::set<std::string> leaving) {
  const auto made = co_await plan(self, std::move(steps), std::move(leaving));
  if (!made) co_return made.error();
  if (made->fits()) co_return std::nullopt;
  co_return order_error{core::make_error(errc::does_not_fit, "{}", core::shortage_text(*made)),
                        core::plan_json(*made)};
}

void model_steps::promise(entry& e, memory_promise m) {
  e.memory = std::move(m);
  e.predicted = {};
  for (const auto& part : e.memory.parts) {
    e.predicted.weights += part.lines.weights;
    e.predicted.pages += part.lines.pages;
    e.predicted.workspaces += part.lines.workspaces;
    e.predicted.runtime += part.lines.runtime;
  }
}

asio::awaitable<std::optional<core::error>> model_steps::bring_up(self_type& self, entry& e,
                                                                  std::vector<std::size_t> on,
                                                                  model_progress progress) {
  what_ = e.spec.name + " is being loaded";
  const auto began = p_.time.now();
  const auto so_far = std::make_shared<load_progress>();
  progress_ = so_far;
  e.progress = so_far;
  e.state = model_state::loading;
  e.reason.clear();
  e.devices.clear();
  for (const auto i : on) e.devices.push_back(p_.hosts[i]->device());
  publish();
  model_progress both = [so_far, progress](const std::string& name, std::uint64_t done, std::uint64_t total) {
    so_far->done = done;
    so_far->total = total;
    if (progress) progress(name, done, total);
  };
  std::shared_ptr<served_model> made;
  e.hosts.clear();
  e.pool_pages.clear();
  std::optional<core::error> wrong;
  for (const auto i : on) {
    auto spec = e.spec;
    spec.unwanted = {so_far, &so_far->unwanted};
    if (e.memory.pages) spec.pages = e.memory.pages;
    if (const auto useful = e.memory.parts.at(e.hosts.size()).useful; useful > 0) spec.most_pages = useful;
    auto r = co_await open(self, i, std::move(spec), both);
    if (!r) {
      wrong = std::move(r.error());
      break;
    }
    if (!made)
      made = std::make_shared<served_model>(**r);
    else
      add_place(*made, **r);
    settle(e, *made->places.back());
    e.hosts.push_back(i);
  }
  if (wrong) {
    if (made) co_await close_places(self, e, *made);
    p_.memory.release(e.memory);
    e.devices.clear();
    co_await take_back(self);
    note_failed_load(e, *wrong, *so_far);
  } else {
    given_.clear();
    note_load(e, p_.time.now() - began);
    if (e.sleeper) ++e.wakes;
    e.sleeper = nullptr;
    e.level.reset();
    made->ended = e.ended;
    e.served = std::move(made);
    e.state = model_state::ready;
    e.use->open();
  }
  progress_.reset();
  publish();
  co_return wrong;
}

// A load that nobody waited for any more is no failure.
void model_steps::note_failed_load(entry& e, const core::error& wrong, const load_progress& of) {
  if (of.unwanted) {
    e.state = e.sleeper ? model_state::asleep : model_state::absent;
    return;
  }
  e.sleeper = nullptr;
  e.level.reset();
  e.state = model_state::failed;
  e.reason = wrong.message;
  e.failed_at = p_.time.now();
  ++e.load_failures;
}

void model_steps::note_load(entry& e, core::duration took) {
  ++e.loads;
  e.last_load = took;
  e.was_on = e.devices;
  e.began = p_.time.now();
  const double seconds = std::chrono::duration<double>(took).count();
  if (e.predicted.weights == 0 || seconds <= 0) return;
  const double rate = static_cast<double>(e.predicted.weights) / seconds;
  load_rate_ = load_rate_ == 0 ? rate : (load_rate_ + rate) / 2;
}

void model_steps::settle(entry& e, const model_place& place) {
  e.pool_pages.push_back(place.pages);
  const auto line = p_.memory.settle(e.memory, e.hosts.size(), place);
  if (!line.empty()) p_.seen->tell("memory", line);
}

void model_steps::add_place(served_model& m, const served_model& more) {
  m.context = std::min(m.context, more.context);
  m.places.push_back(more.places.front());
}

asio::awaitable<void> model_steps::close_places(self_type& self, entry& e, const served_model& m) {
  for (std::size_t i = 0; i < e.hosts.size(); ++i) {
    const bool closed = co_await close(self, e.hosts[i], m.places[i]->engine, e.past);
    if (!closed) break;
  }
  e.hosts.clear();
}

void model_steps::begin_drain(const std::vector<entry*>& all, core::duration limit, std::string_view why) {
  for (auto* e : all) {
    e->state = model_state::draining;
    e->use->close();
    for (const auto& place : e->served->places)
      core::insist([&] {
        auto no = core::make_error(errc::unavailable, "{} {}", e->spec.name, why);
        no.retry_after_ms = static_cast<std::uint32_t>(
            std::clamp<std::uint64_t>(milliseconds(limit), least_retry_ms, most_retry_ms));
        place->admission->close(admission_control::door::drain, std::move(no));
      });
  }
  publish();
}

void model_steps::end_drain(const std::vector<entry*>& all) {
  for (auto* e : all) {
    e->state = model_state::ready;
    e->use->open();
    for (const auto& place : e->served->places) place->admission->reopen(admission_control::door::drain);
  }
  publish();
}

std::uint32_t model_steps::unfinished(const std::vector<entry*>& all) {
  std::uint32_t n = 0;
  for (const auto* e : all)
    for (const auto& place : e->served->places) n += place->admission->unfinished();
  return n;
}

asio::awaitable<bool> model_steps::drained(self_type& self, const std::vector<entry*>& all,
                                           core::duration limit) {
  const auto end = p_.time.now() + limit;
  while (unfinished(all) > 0) {
    const auto now = p_.time.now();
    if (now >= end) co_return false;
    timer_->set(std::min(now + look_again, end));
    const auto rung = co_await next<time_passed>(self);
    if (!rung) co_return false;
  }
  co_return true;
}

asio::awaitable<void> model_steps::give_all_back(self_type& self, entry& e, const served_model& was) {
  co_await close_places(self, e, was);
  p_.memory.release(e.memory);
  e.asleep_bytes = 0;
  e.devices.clear();
}

asio::awaitable<void> model_steps::take_down(self_type& self, entry& e) {
  what_ = e.spec.name + " is being unloaded";
  const auto was = e.texts();
  e.served = nullptr;
  e.sleeper = nullptr;
  e.level.reset();
  co_await give_all_back(self, e, *was);
  e.state = model_state::absent;
  e.progress.reset();
  publish();
}

void model_steps::forget(std::string_view name) {
  const auto at = std::ranges::find(known_, name, [](const entry& e) { return e.spec.name; });
  past_ += at->past;
  for (const auto n : at->ended->look()) past_ended_ += n;
  known_.erase(at);
  publish();
}

asio::awaitable<std::optional<core::error>> model_steps::come_up(self_type& self, entry& e,
                                                                 std::vector<std::size_t> on) {
  auto promised = co_await book(self, steps_of(e.spec, on));
  if (!promised) {
    if (!e.sleeper) e.state = model_state::failed;  // else it sleeps on
    e.reason = promised.error().fault.message;
    e.failed_at = p_.time.now();
    publish();
    co_return promised.error().fault;
  }
  promise(e, std::move(promised->of.at(e.spec.name)));
  co_return co_await bring_up(self, e, std::move(on), {});
}

}  // namespace weir::actors
