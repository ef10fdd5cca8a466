#include "actors/model_registry.h"

#include <algorithm>
#include <boost/asio/strand.hpp>
#include <limits>
#include <utility>

#include "actors/model_steps.h"
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

}  // namespace

class model_registry::mind : public model_steps {
 public:
  using model_steps::model_steps;

  void begin(const self_type& self) {
    mail_ = self.self();
    give_up_steps();
    timer_ = p_.time.make_timer(self.get_executor(),
                                [to = mail_] { core::insist([&] { to.tell(order(time_passed())); }); });
  }

  asio::awaitable<void> carry_out(self_type& self, order& o) {
    busy_since_ = p_.time.now();
    if (auto* s = std::get_if<registry_messages::start>(&o.what)) co_await run(self, *s);
    if (auto* l = std::get_if<asked<load_order>>(&o.what)) co_await run(self, *l);
    if (auto* u = std::get_if<asked<unload_order>>(&o.what)) co_await run(self, *u);
    if (auto* s = std::get_if<asked<swap_order>>(&o.what)) co_await run(self, *s);
    if (auto* s = std::get_if<asked<share_order>>(&o.what)) run(*s);
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

  core::result<entry*> running(std::string_view name) {
    auto* e = find(name);
    if (!e) return core::make_error(errc::model_not_found, "no model is called '{}'", core::shortened(name));
    if (e->state != model_state::ready)
      return core::make_error(errc::model_not_found, "{} is not loaded: it is {}", e->spec.name,
                              actors::name(e->state));
    return e;
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
      const auto left = unfinished(out);
      end_drain(out);
      if (fresh) forget(a.what.in.spec.name);
      auto why = core::make_error(errc::busy, "{} jobs still run after {:.0f} s; nothing was changed", left,
                                  std::chrono::duration<double>(limit).count());
      why.retry_after_ms = least_retry_ms;
      co_return answer(a.ex, a.to.done, fault_of(std::move(why)));
    }
    co_await exchange(self, a, out, **in, std::move(spec), std::move(*on));
  }

  void run(asked<share_order>& a) {
    auto* const e = find(a.what.name);
    if (!e) {
      auto why =
          core::make_error(errc::model_not_found, "no model is called '{}'", core::shortened(a.what.name));
      return answer(a.ex, a.to.begun, fault_of(std::move(why)));
    }
    e->spec.share = a.what.weight;
    if (e->served)
      for (std::size_t i = 0; i < e->hosts.size(); ++i)
        p_.hosts[e->hosts[i]]->set_share(e->served->places[i]->engine, a.what.weight);
    publish();
    answer(a.ex, a.to.begun, status(*e));
    answer(a.ex, a.to.done, status(*e));
  }

  // Promises a model's memory and loads it.
  asio::awaitable<std::optional<core::error>> come_up(self_type& self, entry& e,
                                                      std::vector<std::size_t> on) {
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
  asio::awaitable<void> exchange(self_type& self, asked<swap_order>& a, const std::vector<entry*>& out,
                                 entry& in, model_spec spec, std::vector<std::size_t> on) {
    std::vector<std::pair<entry*, std::vector<std::size_t>>> were;
    for (auto* e : out) {
      were.emplace_back(e, e->hosts);
      co_await take_down(self, *e);
    }
    const model_spec before = std::exchange(in.spec, std::move(spec));
    auto wrong = co_await come_up(self, in, std::move(on));
    if (!wrong) co_return answer(a.ex, a.to.done, status(in));
    if (self.stopping()) co_return;
    if (std::ranges::find(out, &in) != out.end()) in.spec = before;
    for (auto& [e, hosts] : were) {
      const auto not_back = co_await come_up(self, *e, hosts);
      wrong->message +=
          not_back ? fmt::format("; {} could not be loaded again: {}", e->spec.name, not_back->message)
                   : fmt::format("; {} is loaded again", e->spec.name);
    }
    answer(a.ex, a.to.done, fault_of(*wrong));
  }
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
void model_registry::share(share_order o, executor ex, order_replies to) {
  send(mail_, std::move(o), ex, std::move(to));
}

}  // namespace weir::actors
