#include "actors/model_registry.h"

#include <algorithm>
#include <boost/asio/strand.hpp>
#include <limits>
#include <utility>

#include "actors/model_demand.h"
#include "actors/runtime/spawn.h"
#include "core/insist.h"
#include "core/shortened.h"

namespace weir::actors {
namespace {

namespace asio = boost::asio;
using namespace registry_messages;
using core::errc;

constexpr std::size_t waiting_orders = 64;  // more are refused
constexpr std::size_t most_names = 2000;    // of models that are known

// A message that no step waits for: orders, and what requests ask.
bool is_order(const order& o) {
  return !std::holds_alternative<grown>(o.what) && !std::holds_alternative<look_round>(o.what) &&
         !std::holds_alternative<wished>(o.what) &&
         !std::holds_alternative<registry_messages::end_wishes>(o.what);
}

}  // namespace

class model_registry::mind : public model_demand {
 public:
  using model_demand::model_demand;

  void begin(const self_type& self) {
    mail_ = self.self();
    give_up_steps(self.get_executor());
    timer_ = p_.time.make_timer(self.get_executor(),
                                [to = mail_] { core::insist([&] { to.tell(order(time_passed())); }); });
    begin_demand(self);
  }

  asio::awaitable<void> carry_out(self_type& self, order& o) {
    busy_since_ = p_.time.now();
    if (is_order(o)) {
      co_await growth_over(self);
      barred_.clear();
    }
    if (auto* s = std::get_if<registry_messages::start>(&o.what)) co_await run(self, *s);
    if (auto* l = std::get_if<asked<load_order>>(&o.what)) co_await run(self, *l);
    if (auto* u = std::get_if<asked<unload_order>>(&o.what)) co_await run(self, *u);
    if (auto* s = std::get_if<asked<swap_order>>(&o.what)) co_await run(self, *s);
    if (auto* t = std::get_if<asked<terms_order>>(&o.what)) run(*t);
    if (auto* s = std::get_if<asked<sleep_order>>(&o.what)) co_await run(self, *s);
    if (auto* w = std::get_if<asked<wake_order>>(&o.what)) co_await run(self, *w);
    heard(o);
    co_await serve(self);
  }

 private:
  // ---- what an order needs

  core::result<std::vector<std::size_t>> hosts_for(const load_order& o,
                                                   const std::set<std::string>& leaving) const {
    return choose_hosts(o, p_.hosts, p_.list.look()->known, leaving, p_.most_models);
  }

  // The entry of a model that is to be loaded, which is made where its name is new.
  core::result<entry*> entry_for(const load_order& o, const std::set<std::string>& leaving) {
    auto* e = find(o.spec.name);
    const bool taken = e && e->state != model_state::absent && e->state != model_state::failed;
    if (taken && !leaving.contains(o.spec.name))
      return core::make_error(errc::already_there, "a model is called '{}' already, and it is {}",
                              core::shortened(o.spec.name), name(e->state));
    if (e) return e;
    if (p_.list.aliases().contains(o.spec.name))
      return core::bad_param("name", "'{}' is an alias of the model '{}'", core::shortened(o.spec.name),
                             core::shortened(p_.list.behind(o.spec.name)));
    if (o.spec.source.empty())
      return core::make_error(errc::model_not_found, "no model is called '{}'", core::shortened(o.spec.name));
    if (known_.size() >= most_names)
      return core::make_error(errc::overloaded, "{} names of models are known, which are the most",
                              most_names);
    add(o.spec);
    return &known_.back();
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
    auto spec = spec_of(a.what, *e);
    auto promised = co_await book(self, steps_of(spec, *on));
    if (!promised) {
      if (fresh) forget(a.what.spec.name);
      co_return answer(a.ex, a.to.begun, promised.error());
    }
    (*e)->spec = std::move(spec);
    promise(**e, std::move(promised->of.at((*e)->spec.name)));
    (*e)->state = model_state::loading;
    answer(a.ex, a.to.begun, status(**e));
    const auto wrong = co_await bring_up(self, **e, std::move(*on), {});
    if (wrong) co_return answer(a.ex, a.to.done, fault_of(*wrong));
    answer(a.ex, a.to.done, status(**e));
  }

  asio::awaitable<void> run(self_type& self, asked<unload_order>& a) {
    auto* const known = find(a.what.name);
    if (known && known->state == model_state::asleep) co_return co_await unload_sleeper(self, a, *known);
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

  asio::awaitable<void> unload_sleeper(self_type& self, asked<unload_order>& a, entry& e) {
    what_ = a.what.name + " is being unloaded";
    answer(a.ex, a.to.begun, status(e));
    co_await take_down(self, e);
    const auto last = status(e);
    if (a.what.forget) forget(a.what.name);
    answer(a.ex, a.to.done, last);
  }

  // What ends an order whose model has jobs for longer than it waits for them. It takes jobs again.
  core::error still_running(const std::vector<entry*>& all, core::duration limit) {
    const auto left = unfinished(all);
    end_drain(all);
    auto why = core::make_error(errc::busy, "{} jobs still run after {:.0f} s; nothing was changed", left,
                                std::chrono::duration<double>(limit).count());
    why.retry_after_ms = least_retry_ms;
    return why;
  }

  asio::awaitable<void> run(self_type& self, asked<swap_order>& a) {
    std::vector<entry*> out;
    std::set<std::string> leaving;
    for (const auto& name : a.what.out) {
      auto e = running(name);
      if (!e) co_return answer(a.ex, a.to.begun, fault_of(e.error()));
      if (leaving.insert(name).second) out.push_back(*e);
    }
    auto on = hosts_for(a.what.in, leaving);
    if (!on) co_return answer(a.ex, a.to.begun, fault_of(on.error()));
    const bool fresh = !find(a.what.in.spec.name);
    const auto in = entry_for(a.what.in, leaving);
    if (!in) co_return answer(a.ex, a.to.begun, fault_of(in.error()));
    const auto limit = limit_of(a.what.drain);
    what_ = a.what.in.spec.name + " takes the place of others";
    auto spec = spec_of(a.what.in, *in);
    auto short_of = co_await lacks(self, steps_of(spec, *on), std::move(leaving));
    if (short_of) {
      if (fresh) forget(a.what.in.spec.name);
      co_return answer(a.ex, a.to.begun, std::move(*short_of));
    }
    begin_drain(out, limit);
    answer(a.ex, a.to.begun, status(**in));
    const bool empty = co_await drained(self, out, limit);
    if (self.stopping()) co_return;
    if (!empty) {
      auto why = still_running(out, limit);
      if (fresh) forget(a.what.in.spec.name);
      co_return answer(a.ex, a.to.done, fault_of(std::move(why)));
    }
    co_await carry_out_swap(self, a, out, **in, std::move(spec), std::move(*on));
  }

  // ---- sleep and wake

  asio::awaitable<void> run(self_type& self, asked<sleep_order>& a) {
    const auto level = level_of(a.what);
    if (!level) co_return answer(a.ex, a.to.begun, fault_of(level.error()));
    entry& e = *find(a.what.name);
    const std::vector<entry*> all{&e};
    const auto limit = limit_of(a.what.drain);
    what_ = a.what.name + " is being put to sleep";
    if (*level) begin_drain(all, limit, "is being put to sleep");
    answer(a.ex, a.to.begun, status(e));
    if (*level) {
      const bool empty = co_await drained(self, all, limit);
      if (self.stopping()) co_return;
      if (!empty) {
        p_.memory.end_hold(e.memory);
        co_return answer(a.ex, a.to.done, fault_of(still_running(all, limit)));
      }
    }
    std::optional<core::error> wrong;
    if (*level == sleep_level::host)
      wrong = co_await put_to_sleep(self, e);
    else
      co_await drop_to_disk(self, e);
    if (self.stopping()) co_return;
    if (!wrong) co_return answer(a.ex, a.to.done, status(e));
    if (e.state == model_state::draining) end_drain(all);
    answer(a.ex, a.to.done, fault_of(*wrong));
  }

  asio::awaitable<void> run(self_type& self, asked<wake_order>& a) {
    auto e = sleeping(a.what.name);
    if (!e) co_return answer(a.ex, a.to.begun, fault_of(e.error()));
    what_ = a.what.name + " is being woken";
    if ((*e)->level == sleep_level::disk) co_return co_await load_sleeper(self, a, **e);
    note_used();
    if (const auto room = room_to_wake(**e); !room)
      co_return answer(a.ex, a.to.begun, fault_of(room.error()));
    (*e)->state = model_state::loading;
    answer(a.ex, a.to.begun, status(**e));
    const auto wrong = co_await wake_up(self, **e);
    if (self.stopping()) co_return;
    if (wrong) co_return answer(a.ex, a.to.done, fault_of(*wrong));
    answer(a.ex, a.to.done, status(**e));
  }

  asio::awaitable<void> load_sleeper(self_type& self, asked<wake_order>& a, entry& e) {
    load_order o;
    o.devices = e.was_on;
    const auto on = hosts_for(o, {});
    if (!on) co_return answer(a.ex, a.to.begun, fault_of(on.error()));
    auto promised = co_await book(self, steps_of(e.spec, *on));
    if (!promised) co_return answer(a.ex, a.to.begun, promised.error());
    promise(e, std::move(promised->of.at(e.spec.name)));
    e.state = model_state::loading;
    answer(a.ex, a.to.begun, status(e));
    const auto wrong = co_await bring_up(self, e, *on, {});
    if (wrong) co_return answer(a.ex, a.to.done, fault_of(*wrong));
    answer(a.ex, a.to.done, status(e));
  }

  void run(asked<terms_order>& a) {
    auto* const e = find(a.what.name);
    if (!e) {
      auto why =
          core::make_error(errc::model_not_found, "no model is called '{}'", core::shortened(a.what.name));
      return answer(a.ex, a.to.begun, fault_of(std::move(why)));
    }
    if (a.what.share) set_share(*e, *a.what.share);
    if (a.what.pinned) e->spec.pinned = *a.what.pinned;
    publish();
    answer(a.ex, a.to.begun, status(*e));
    answer(a.ex, a.to.done, status(*e));
  }

  void set_share(entry& e, double weight) {
    e.spec.share = weight;
    if (const auto m = e.texts())
      for (std::size_t i = 0; i < e.hosts.size(); ++i)
        p_.hosts[e.hosts[i]]->set_share(m->places[i]->engine, weight);
  }

  // The part of a swap that begins when no job is left.
  asio::awaitable<void> carry_out_swap(self_type& self, asked<swap_order>& a, const std::vector<entry*>& out,
                                       entry& in, model_spec spec, std::vector<std::size_t> on) {
    std::vector<leaving> all;
    for (auto* e : out) all.push_back({e, exit::unload});
    const auto wrong = co_await exchange(self, all, in, std::move(spec), std::move(on));
    if (!wrong) co_return answer(a.ex, a.to.done, status(in));
    if (!self.stopping()) answer(a.ex, a.to.done, fault_of(*wrong));
  }
};

model_registry::model_registry(executor where, parts p) {
  auto m = std::make_shared<mind>(std::move(p));
  auto over = std::make_shared<std::promise<void>>();
  ended_ = over->get_future();
  options opt;
  opt.name = "models";
  opt.mailbox = 2 * (waiting_orders + load_line::most);  // the ends of steps find room, too
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
  if (to.backlog() < waiting_orders)
    how = to.tell(order(asked<Order>{std::move(what), ex, std::move(replies)}));
  if (how == sent::ok) return;
  auto why = how == sent::closed
                 ? ended_early()
                 : core::make_error(errc::busy, "{} orders for models wait already", waiting_orders);
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
void model_registry::set_terms(terms_order o, executor ex, order_replies to) {
  send(mail_, std::move(o), ex, std::move(to));
}

void model_registry::sleep(sleep_order o, executor ex, order_replies to) {
  send(mail_, std::move(o), ex, std::move(to));
}
void model_registry::wake(wake_order o, executor ex, order_replies to) {
  send(mail_, std::move(o), ex, std::move(to));
}

void model_registry::wish(model_wish w) {
  const auto done = w.done;
  auto how = sent::full;
  if (mail_.backlog() < waiting_orders + load_line::most) how = mail_.tell(order(wished{std::move(w)}));
  if (how == sent::ok) return;
  auto why = how == sent::closed
                 ? ended_early()
                 : core::make_error(errc::overloaded, "{} requests wait for models", load_line::most);
  why.retry_after_ms = least_retry_ms;
  done(std::move(why));
}

void model_registry::end_wishes(core::error why) {
  core::insist([&] { mail_.tell(order(registry_messages::end_wishes{why})); });
}

}  // namespace weir::actors
