#include "actors/model_registry.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <list>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "actors/runtime/context.h"
#include "actors/runtime/spawn.h"
#include "core/cache/page.h"
#include "core/insist.h"
#include "core/memory/plan_text.h"
#include "core/shortened.h"

namespace weir::actors {
namespace registry_messages {

struct start {
  model_progress progress;
  executor ex;
  std::function<void(core::result<>)> done;
};
template <class Order>
struct asked {
  Order what;
  executor ex;
  order_replies to;
};

// What the steps of an order wait for.
struct opened {
  host::opened result;
};
struct closed {
  core::engine_totals counted;
};
struct files_read {
  std::optional<core::error> wrong;
};
struct time_passed {};

struct order {
  std::variant<start, asked<load_order>, asked<unload_order>, asked<swap_order>, opened, closed, files_read,
               time_passed>
      what;
  template <class T>
  explicit order(T t) : what(std::move(t)) {}
};

}  // namespace registry_messages

namespace {

namespace asio = boost::asio;
using namespace registry_messages;
using core::errc;
using core::time_point;

constexpr std::size_t waiting_orders = 64;   // more are refused
constexpr std::size_t most_names = 2000;     // of models that are known
constexpr std::uint32_t least_retry_ms = 1000, most_retry_ms = 120'000;
constexpr core::duration look_again = std::chrono::milliseconds(10);  // while jobs run to their ends

order_error fault_of(core::error e) { return {std::move(e), {}}; }

void answer(const executor& ex, const std::function<void(order_replies::answer)>& to,
            order_replies::answer what) {
  if (to) core::insist([&] { asio::post(ex, [to, what] { to(what); }); });
}

core::error ended_early() { return core::make_error(errc::unavailable, "the service has ended"); }

std::uint64_t milliseconds(core::duration d) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::milliseconds>(d).count()));
}

}  // namespace

class model_registry::mind {
 public:
  using self_type = context<order>;

  explicit mind(model_registry::parts p) : p_(std::move(p)) {
    for (const auto& step : p_.start)
      if (step.copy == 0) {
        add(step.spec);
        known_.back().state = model_state::loading;  // or about to be
      }
    for (const auto& spec : p_.known)
      if (!find(spec.name)) add(spec);
    publish();
  }

  void begin(const self_type& self) {
    mail_ = self.self();
    give_up_steps();
    timer_ = p_.time.make_timer(self.get_executor(), [to = mail_] {
      core::insist([&] { to.tell(order(time_passed())); });
    });
  }

  asio::awaitable<void> carry_out(self_type& self, order& o) {
    busy_since_ = p_.time.now();
    if (auto* s = std::get_if<registry_messages::start>(&o.what)) co_await run(self, *s);
    if (auto* l = std::get_if<asked<load_order>>(&o.what)) co_await run(self, *l);
    if (auto* u = std::get_if<asked<unload_order>>(&o.what)) co_await run(self, *u);
    if (auto* s = std::get_if<asked<swap_order>>(&o.what)) co_await run(self, *s);
  }

  void refuse(order& o, const core::error& why) const {
    if (auto* s = std::get_if<registry_messages::start>(&o.what))
      asio::post(s->ex, [done = s->done, why] { done(why); });
    const auto say_no = [&](const auto* a) {
      if (a) answer(a->ex, a->to.begun, fault_of(why));
    };
    say_no(std::get_if<asked<load_order>>(&o.what));
    say_no(std::get_if<asked<unload_order>>(&o.what));
    say_no(std::get_if<asked<swap_order>>(&o.what));
  }

 private:
  // The order under way threw, for want of memory: what it had begun is not finished any more.
  void give_up_steps() {
    for (auto& e : known_) {
      if (e.state == model_state::loading && e.progress) {
        e.state = model_state::failed;
        e.reason = "the load was not finished";
      }
      if (e.state == model_state::draining && e.served) end_drain({&e});
    }
    progress_.reset();
  }

  // A model that is known, and the hosts of its places.
  struct entry : known_model {
    std::vector<std::size_t> on;  // by place
    memory_promise memory;        // of its places
  };

  void add(const model_spec& spec) {
    entry e;
    e.spec = spec;
    known_.push_back(std::move(e));
  }
  entry* find(std::string_view name) {
    const auto at = std::ranges::find(known_, name, [](const entry& e) { return e.spec.name; });
    return at == known_.end() ? nullptr : &*at;
  }

  void publish() {
    model_list::snapshot s;
    s.past = past_;
    s.past_ended = past_ended_;
    for (const auto& e : known_) {
      s.known.push_back(e);
      if (e.served) s.served.push_back(e.served);
    }
    p_.list.publish(std::move(s));
  }

  order_replies::answer status(const entry& e) const { return p_.describe(e); }

  // ---- waiting for a step. Orders that come meanwhile are refused.

  core::error busy() const {
    auto e = core::make_error(errc::busy, "another order for models is being carried out: {}", what_);
    const auto spent = milliseconds(p_.time.now() - busy_since_);
    std::uint64_t left = 0;
    if (progress_) {
      const auto done = progress_->done.load(), total = progress_->total.load();
      if (done > 0 && total > done)
        left = static_cast<std::uint64_t>(static_cast<double>(spent) * static_cast<double>(total - done) /
                                          static_cast<double>(done));
    }
    e.retry_after_ms = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(left, least_retry_ms, most_retry_ms));
    return e;
  }

  // The next message of a kind; nullopt: the registry ends.
  template <class T>
  asio::awaitable<std::optional<T>> next(self_type& self) {
    for (;;) {
      auto m = co_await self.async_receive();
      if (!m) co_return std::nullopt;
      if (auto* wanted = std::get_if<T>(&m->what)) co_return std::optional<T>(std::move(*wanted));
      refuse(*m, busy());
    }
  }

  // ---- steps

  asio::awaitable<host::opened> open(self_type& self, std::size_t on, model_spec spec, model_progress both) {
    auto done = [to = mail_](host::opened r) {
      core::insist([&] { to.tell(order(opened{r})); });
    };
    p_.hosts[on]->open(std::move(spec), std::move(both), self.get_executor(), std::move(done));
    auto r = co_await next<opened>(self);
    if (!r) co_return host::opened(ended_early());
    co_return std::move(r->result);
  }

  asio::awaitable<bool> close(self_type& self, std::size_t on, engine_id engine, core::engine_totals& into) {
    auto done = [to = mail_](core::engine_totals t) {
      core::insist([&] { to.tell(order(closed{t})); });
    };
    p_.hosts[on]->close(engine, self.get_executor(), std::move(done));
    const auto r = co_await next<closed>(self);
    if (r) add_to(into, r->counted);
    co_return r.has_value();
  }

  static void add_to(core::engine_totals& all, const core::engine_totals& more) {
    core::engine_counts sum;
    static_cast<core::engine_totals&>(sum) = all;
    core::engine_counts next;
    static_cast<core::engine_totals&>(next) = more;
    sum += next;
    all = sum;
  }

  static std::vector<load_step> steps_of(const model_spec& spec, const std::vector<std::size_t>& on) {
    std::vector<load_step> out;
    for (std::uint32_t copy = 0; copy < on.size(); ++copy) out.push_back({spec, copy, on[copy]});
    return out;
  }

  // Calls `work`, which reads headers of files. False: it was not done, for the reason in `wrong`.
  asio::awaitable<bool> read(self_type& self, std::function<void()> work, core::error& wrong) {
    auto done = [to = mail_](std::optional<core::error> e) {
      core::insist([&] { to.tell(order(files_read{e})); });
    };
    p_.read(std::move(work), std::move(done));
    auto r = co_await next<files_read>(self);
    if (r && !r->wrong) co_return true;
    wrong = r ? std::move(*r->wrong) : ended_early();
    co_return false;
  }

  asio::awaitable<memory_book::promises> book(self_type& self, std::vector<load_step> steps) {
    const auto out = std::make_shared<memory_book::promises>(order_error{});
    core::error wrong;
    std::function<void()> work = [&book = p_.memory, steps = std::move(steps), out] {
      *out = book.book(steps);
    };
    const bool read_all = co_await read(self, std::move(work), wrong);
    if (!read_all) co_return fault_of(std::move(wrong));
    co_return std::move(*out);
  }

  // Whether the models fit once those of `leaving` have gone; nullopt: they do.
  asio::awaitable<std::optional<order_error>> lacks(self_type& self, std::vector<load_step> steps,
                                                    std::set<std::string> leaving) {
    const auto out = std::make_shared<memory_book::planned>(order_error{});
    core::error wrong;
    std::function<void()> work = [&book = p_.memory, steps = std::move(steps), leaving = std::move(leaving),
                                  out] { *out = book.plan(steps, leaving); };
    const bool read_all = co_await read(self, std::move(work), wrong);
    if (!read_all) co_return fault_of(std::move(wrong));
    if (!*out) co_return out->error();
    const auto& plan = **out;
    if (plan.fits()) co_return std::nullopt;
    co_return order_error{core::make_error(errc::does_not_fit, "{}", core::shortage_text(plan)),
                          core::plan_json(plan)};
  }

  void promise(entry& e, memory_promise m) {
    e.memory = std::move(m);
    e.predicted = {};
    for (const auto& part : e.memory.parts) {
      e.predicted.weights += part.lines.weights;
      e.predicted.pages += part.lines.pages;
      e.predicted.workspaces += part.lines.workspaces;
      e.predicted.runtime += part.lines.runtime;
    }
  }

  // Loads a model, whose memory was promised, onto hosts, one place after the other. On an error nothing of
  // it is left, and the promise is taken back.
  asio::awaitable<std::optional<core::error>> bring_up(self_type& self, entry& e, std::vector<std::size_t> on,
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
    model_progress both = [so_far, progress](const std::string& name, std::uint64_t done,
                                             std::uint64_t total) {
      so_far->done = done;
      so_far->total = total;
      if (progress) progress(name, done, total);
    };
    std::shared_ptr<served_model> made;
    e.on.clear();
    std::optional<core::error> wrong;
    for (const auto i : on) {
      auto spec = e.spec;
      if (e.memory.pages) spec.pages = e.memory.pages;
      auto r = co_await open(self, i, std::move(spec), both);
      if (!r) {
        wrong = std::move(r.error());
        break;
      }
      if (!made) made = std::make_shared<served_model>(**r);
      else add_place(*made, **r);
      settle(e, made->places.back()->memory);
      e.on.push_back(i);
    }
    if (wrong) {
      if (made) co_await close_places(self, e, *made);
      p_.memory.release(e.memory);
      e.state = model_state::failed;
      e.reason = wrong->message;
      e.devices.clear();
      ++e.load_failures;
    } else {
      ++e.loads;
      e.last_load = p_.time.now() - began;
      made->ended = e.ended;
      e.served = std::move(made);
      e.state = model_state::ready;
    }
    progress_.reset();
    publish();
    co_return wrong;
  }

  void settle(entry& e, const memory_use& measured) {
    const auto line = p_.memory.settle(e.memory, e.on.size(), measured);
    if (!line.empty()) p_.seen->tell("memory", line);
  }

  static void add_place(served_model& m, const served_model& more) {
    m.context = std::min(m.context, more.context);
    m.places.push_back(more.places.front());
  }

  asio::awaitable<void> close_places(self_type& self, entry& e, const served_model& m) {
    for (std::size_t i = 0; i < e.on.size(); ++i) {
      const bool closed = co_await close(self, e.on[i], m.places[i]->engine, e.past);
      if (!closed) break;
    }
    e.on.clear();
  }

  // From now on the models take no jobs.
  void begin_drain(const std::vector<entry*>& all, core::duration limit) {
    for (auto* e : all) {
      e->state = model_state::draining;
      for (const auto& place : e->served->places)
        core::insist([&] {
          auto why = core::make_error(errc::unavailable, "{} is being unloaded", e->spec.name);
          why.retry_after_ms = static_cast<std::uint32_t>(
              std::clamp<std::uint64_t>(milliseconds(limit), least_retry_ms, most_retry_ms));
          place->admission->close(admission_control::door::drain, std::move(why));
        });
    }
    publish();
  }

  void end_drain(const std::vector<entry*>& all) {
    for (auto* e : all) {
      e->state = model_state::ready;
      for (const auto& place : e->served->places) place->admission->reopen(admission_control::door::drain);
    }
    publish();
  }

  static std::uint32_t unfinished(const std::vector<entry*>& all) {
    std::uint32_t n = 0;
    for (const auto* e : all)
      for (const auto& place : e->served->places) n += place->admission->unfinished();
    return n;
  }

  // Waits until the models have no job. False: some still run when the time is over, or the registry ends.
  asio::awaitable<bool> drained(self_type& self, const std::vector<entry*>& all, core::duration limit) {
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

  // REQUIRES: the model is draining. Jobs that it still has end with an error.
  asio::awaitable<void> take_down(self_type& self, entry& e) {
    what_ = e.spec.name + " is being unloaded";
    const auto was = std::move(e.served);
    e.served = nullptr;
    co_await close_places(self, e, *was);
    p_.memory.release(e.memory);
    e.state = model_state::absent;
    e.devices.clear();
    e.progress.reset();
    publish();
  }

  void forget(std::string_view name) {
    const auto at = std::ranges::find(known_, name, [](const entry& e) { return e.spec.name; });
    add_to(past_, at->past);
    for (const auto n : at->ended->look()) past_ended_ += n;
    known_.erase(at);
    publish();
  }

  // ---- what an order needs

  core::result<std::vector<std::size_t>> hosts_for(const load_order& o,
                                                   const std::set<const entry*>& leaving) const {
    std::vector<std::string> devices;
    std::vector<std::size_t> models;
    for (std::size_t i = 0; i < p_.hosts.size(); ++i) {
      devices.push_back(p_.hosts[i]->device());
      std::size_t n = 0;
      for (const auto& e : known_)
        if (!leaving.contains(&e)) n += static_cast<std::size_t>(std::ranges::count(e.on, i));
      models.push_back(n);
    }
    return choose_hosts(o.devices, devices, models, p_.most_models);
  }

  // The entry of a model that is to be loaded, which is made where its name is new.
  core::result<entry*> entry_for(const load_order& o, const std::set<const entry*>& leaving) {
    auto* e = find(o.spec.name);
    if (e && e->state != model_state::absent && e->state != model_state::failed && !leaving.contains(e))
      return core::make_error(errc::already_there, "a model is called '{}' already, and it is {}",
                              core::shortened(o.spec.name), name(e->state));
    if (!e && o.spec.source.empty())
      return core::make_error(errc::model_not_found, "no model is called '{}'",
                              core::shortened(o.spec.name));
    if (!e && known_.size() >= most_names)
      return core::make_error(errc::overloaded, "{} names of models are known, which are the most",
                              most_names);
    if (!e) {
      add(o.spec);
      e = &known_.back();
    } else if (!o.spec.source.empty() && !leaving.contains(e)) {
      e->spec = o.spec;
    }
    return e;
  }

  core::result<entry*> running(std::string_view name) {
    auto* e = find(name);
    if (!e) return core::make_error(errc::model_not_found, "no model is called '{}'", core::shortened(name));
    if (e->state != model_state::ready)
      return core::make_error(errc::model_not_found, "{} is not loaded: it is {}", e->spec.name,
                              actors::name(e->state));
    return e;
  }

  static std::optional<std::uint32_t> pages_of(const load_order& o) {
    if (!o.kv_tokens) return std::nullopt;
    return static_cast<std::uint32_t>(core::pages_for(*o.kv_tokens));
  }

  core::duration limit_of(const std::optional<std::chrono::nanoseconds>& asked) const {
    return asked ? *asked : p_.drain;
  }

  // ---- orders

  // Memory is promised to all models at once, and then they are loaded in the order of the plan.
  asio::awaitable<void> run(self_type& self, registry_messages::start& s) {
    what_ = "the models of the start are being loaded";
    auto promised = co_await book(self, p_.start);
    std::optional<core::error> wrong;
    if (!promised) wrong = promised.error().fault;
    for (std::size_t i = 0; !wrong && i < promised->order.size(); ++i) {
      auto& e = *find(promised->order[i]);
      std::vector<std::size_t> on;
      for (const auto& step : p_.start)
        if (step.spec.name == e.spec.name) on.push_back(step.host);
      promise(e, std::move(promised->of.at(e.spec.name)));
      wrong = co_await bring_up(self, e, std::move(on), s.progress);
    }
    if (!wrong) p_.list.set_started();
    const auto result = wrong ? core::result<>(*wrong) : core::result<>();
    core::insist([&] { asio::post(s.ex, [done = s.done, result] { done(result); }); });
  }

  asio::awaitable<void> run(self_type& self, asked<load_order>& a) {
    auto on = hosts_for(a.what, {});
    if (!on) co_return answer(a.ex, a.to.begun, fault_of(on.error()));
    const bool fresh = !find(a.what.spec.name);
    auto e = entry_for(a.what, {});
    if (!e) co_return answer(a.ex, a.to.begun, fault_of(e.error()));
    what_ = (*e)->spec.name + " is being loaded";
    (*e)->spec.pages = pages_of(a.what);
    auto promised = co_await book(self, steps_of((*e)->spec, *on));
    if (!promised) {
      if (fresh) forget(a.what.spec.name);
      co_return answer(a.ex, a.to.begun, promised.error());
    }
    promise(**e, std::move(promised->of.at((*e)->spec.name)));
    (*e)->state = model_state::loading;
    answer(a.ex, a.to.begun, status(**e));
    const auto wrong = co_await bring_up(self, **e, std::move(*on), {});
    if (wrong) co_return answer(a.ex, a.to.done, fault_of(*wrong));
    answer(a.ex, a.to.done, status(**e));
  }

  asio::awaitable<void> run(self_type& self, asked<unload_order>& a) {
    auto* const known = find(a.what.name);
    if (known && a.what.forget && known->state != model_state::ready) {
      const auto last = status(*known);
      forget(a.what.name);
      answer(a.ex, a.to.begun, last);
      co_return answer(a.ex, a.to.done, last);
    }
    auto e = running(a.what.name);
    if (!e) co_return answer(a.ex, a.to.begun, fault_of(e.error()));
    const std::vector<entry*> all{*e};
    const auto limit = limit_of(a.what.drain);
    what_ = a.what.name + " is being unloaded";
    begin_drain(all, limit);
    answer(a.ex, a.to.begun, status(**e));
    co_await drained(self, all, limit);
    if (self.stopping()) co_return;
    co_await take_down(self, **e);
    const auto last = status(**e);
    if (a.what.forget) forget(a.what.name);
    answer(a.ex, a.to.done, last);
  }

  asio::awaitable<void> run(self_type& self, asked<swap_order>& a) {
    std::vector<entry*> out;
    std::set<const entry*> leaving;
    for (const auto& name : a.what.out) {
      auto e = running(name);
      if (!e) co_return answer(a.ex, a.to.begun, fault_of(e.error()));
      if (leaving.insert(*e).second) out.push_back(*e);
    }
    auto on = hosts_for(a.what.in, leaving);
    if (!on) co_return answer(a.ex, a.to.begun, fault_of(on.error()));
    const bool fresh = !find(a.what.in.spec.name);
    const auto in = entry_for(a.what.in, leaving);
    if (!in) co_return answer(a.ex, a.to.begun, fault_of(in.error()));
    const auto limit = limit_of(a.what.drain);
    what_ = a.what.in.spec.name + " takes the place of others";
    auto spec = (*in)->spec;
    if (!a.what.in.spec.source.empty()) spec = a.what.in.spec;
    spec.pages = pages_of(a.what.in);
    auto short_of = co_await lacks(self, steps_of(spec, *on), {a.what.out.begin(), a.what.out.end()});
    if (short_of) {
      if (fresh) forget(a.what.in.spec.name);
      co_return answer(a.ex, a.to.begun, std::move(*short_of));
    }
    begin_drain(out, limit);
    answer(a.ex, a.to.begun, status(**in));
    const bool empty = co_await drained(self, out, limit);
    if (self.stopping()) co_return;
    if (!empty) {
      const auto left = unfinished(out);
      end_drain(out);
      if (fresh) forget(a.what.in.spec.name);
      auto why = core::make_error(errc::busy, "{} jobs still run after {:.0f} s; nothing was changed", left,
                                  std::chrono::duration<double>(limit).count());
      why.retry_after_ms = least_retry_ms;
      co_return answer(a.ex, a.to.done, fault_of(std::move(why)));
    }
    co_await exchange(self, a, out, **in, std::move(*on));
  }

  // Promises a model's memory and loads it.
  asio::awaitable<std::optional<core::error>> come_up(self_type& self, entry& e, std::vector<std::size_t> on) {
    auto promised = co_await book(self, steps_of(e.spec, on));
    if (!promised) {
      e.state = model_state::failed;
      e.reason = promised.error().fault.message;
      publish();
      co_return promised.error().fault;
    }
    promise(e, std::move(promised->of.at(e.spec.name)));
    co_return co_await bring_up(self, e, std::move(on), {});
  }

  // The part of a swap that begins when no job is left.
  asio::awaitable<void> exchange(self_type& self, asked<swap_order>& a, const std::vector<entry*>& out, entry& in,
                                 std::vector<std::size_t> on) {
    std::vector<std::pair<entry*, std::vector<std::size_t>>> were;
    for (auto* e : out) {
      were.emplace_back(e, e->on);
      co_await take_down(self, *e);
    }
    const model_spec before = in.spec;
    if (!a.what.in.spec.source.empty()) in.spec = a.what.in.spec;
    in.spec.pages = pages_of(a.what.in);
    auto wrong = co_await come_up(self, in, std::move(on));
    if (!wrong) co_return answer(a.ex, a.to.done, status(in));
    if (self.stopping()) co_return;
    if (std::ranges::find(out, &in) != out.end()) in.spec = before;
    for (auto& [e, hosts] : were) {
      const auto not_back = co_await come_up(self, *e, hosts);
      wrong->message += not_back ? fmt::format("; {} could not be loaded again: {}", e->spec.name,
                                               not_back->message)
                                 : fmt::format("; {} is loaded again", e->spec.name);
    }
    answer(a.ex, a.to.done, fault_of(*wrong));
  }

  const model_registry::parts p_;
  ref<order> mail_;
  std::unique_ptr<timekeeper::timer> timer_;
  std::list<entry> known_;  // in the order in which their names came
  core::engine_totals past_;  // of models that are forgotten
  std::uint64_t past_ended_ = 0;
  std::string what_;                              // the order under way, for people
  std::shared_ptr<const load_progress> progress_;  // of the load under way; null: none is
  time_point busy_since_{};
};

model_registry::model_registry(executor where, parts p) {
  auto m = std::make_shared<mind>(std::move(p));
  auto over = std::make_shared<std::promise<void>>();
  ended_ = over->get_future();
  options opt;
  opt.name = "models";
  opt.mailbox = 2 * waiting_orders;  // the ends of steps find room, too
  opt.restart = {.when = restart_when::on_error, .max = std::numeric_limits<int>::max(), .first_delay = {}};
  mail_ = spawn<order>(where, opt, [m, over](context<order> self) -> asio::awaitable<void> {
    m->begin(self);
    while (auto o = co_await self.async_receive()) co_await m->carry_out(self, *o);
    over->set_value();
  });
}

void model_registry::stop(bool wait) {
  mail_.stop();
  if (wait) ended_.wait();
}

namespace {

// The answers to one order come in their order, whatever the executor does with handlers of its own.
template <class Order>
void send(const ref<order>& to, Order what, const executor& where, order_replies replies) {
  const executor ex = asio::make_strand(where);
  const auto begun = replies.begun;
  auto how = sent::full;
  if (to.backlog() < waiting_orders) how = to.tell(order(asked<Order>{std::move(what), ex, std::move(replies)}));
  if (how == sent::ok) return;
  auto why = how == sent::closed ? ended_early()
                                 : core::make_error(errc::busy, "{} orders for models wait already",
                                                    waiting_orders);
  why.retry_after_ms = least_retry_ms;
  answer(ex, begun, fault_of(std::move(why)));
}

}  // namespace

void model_registry::start(model_progress progress, executor ex, std::function<void(core::result<>)> done) {
  mail_.tell(order(registry_messages::start{std::move(progress), std::move(ex), std::move(done)}));
}
void model_registry::load(load_order o, executor ex, order_replies to) {
  send(mail_, std::move(o), ex, std::move(to));
}
void model_registry::unload(unload_order o, executor ex, order_replies to) {
  send(mail_, std::move(o), ex, std::move(to));
}
void model_registry::swap(swap_order o, executor ex, order_replies to) {
  send(mail_, std::move(o), ex, std::move(to));
}

}  // namespace weir::actors
