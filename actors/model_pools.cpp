// The registry's steps for pools of pages: they give way to a model that is loaded or woken, and grow again.
//
// Pools give way before any model leaves, since cached pages cost less than a load. Each pool gives whole
// steps, and keeps its floor and the pages that are in use (core/memory/pools.h). Where a pool cannot give
// what the plan says, the plan is made once more with the pages that are in use by then; where that fails,
// too, the order fails with the numbers. Pools grow once no order and no request waits for a model.
#include <utility>

#include "actors/model_steps.h"
#include "core/insist.h"

namespace weir::actors {

namespace asio = boost::asio;
using namespace registry_messages;
using core::errc;

namespace {

constexpr int times_asked = 2;

// Whether no pool is asked any more after this error: they were asked before, or a device has failed.
bool is_last(const core::error& why, int asked) {
  return why.code != errc::does_not_fit || asked + 1 == times_asked;
}

std::string short_text(const pool_change& c, const core::error& why) {
  return fmt::format("{} was to give {} of its {} pages on {}: {}", c.model, c.before - c.pages, c.before,
                     c.device, why.message);
}

}  // namespace

model_steps::pool_place model_steps::place_of(const pool_change& c) {
  for (auto& e : known_)
    for (std::size_t i = 0; i < e.memory.parts.size(); ++i)
      if (c.is_of(e.memory.parts[i]) && e.served && i < e.hosts.size()) return {&e, i};
  return {};
}

void model_steps::note_used() {
  for (const auto& e : known_) {
    if (!e.served) continue;
    for (std::size_t i = 0; i < e.hosts.size() && i < e.memory.parts.size(); ++i) {
      const auto seen = p_.hosts[e.hosts[i]]->published().look();
      p_.memory.note_used(e.memory, i, seen->of(e.served->places[i]->engine).counts.pages_used);
    }
  }
}

void model_steps::count_change(const pool_change& c, std::uint64_t pages) {
  const auto at = place_of(c);
  if (!at.who) return;
  at.who->pool_pages[at.place] = pages;
  if (pages < c.before) {
    ++at.who->gave_way;
    at.who->pages_given += c.before - pages;
  } else {
    ++at.who->grew;
    at.who->pages_taken += pages - c.before;
  }
}

asio::awaitable<core::result<>> model_steps::change_pool(self_type& self, pool_change c) {
  const auto at = place_of(c);
  if (!at.who) co_return core::make_error(errc::unavailable, "{} is not loaded any more", c.model);
  const bool grows = c.pages > c.before;
  if (grows) {
    const auto room = p_.memory.resize(c, c.pages);
    if (!room) co_return room.error();
  }
  auto done = [to = mail_](core::result<> r) { core::insist([&] { to.tell(order(resized{r})); }); };
  auto& host = *p_.hosts[at.who->hosts[at.place]];
  host.resize(at.who->served->places[at.place]->engine, static_cast<std::uint32_t>(c.pages),
              self.get_executor(), std::move(done));
  auto r = co_await next<resized>(self);
  if (!r) co_return ended_early();
  const bool shrank = !grows && r->result.has_value();
  const bool failed = grows && r->result.has_error();
  if (shrank || failed) (void)p_.memory.resize(c, shrank ? c.pages : c.before);  // fewer pages always fit
  if (r->result) {
    count_change(c, c.pages);
    publish();
  }
  co_return std::move(r->result);
}

asio::awaitable<std::optional<core::error>> model_steps::give_way(self_type& self,
                                                                  std::vector<pool_change> all) {
  for (const auto& c : all) {
    auto r = co_await change_pool(self, c);
    if (!r) {
      auto why = r.error();
      why.message = short_text(c, why);
      if (why.code == errc::busy) why.code = errc::does_not_fit;
      co_return why;
    }
    given_.push_back(c);
  }
  co_return std::nullopt;
}

asio::awaitable<void> model_steps::take_back(self_type& self) {
  for (auto all = std::exchange(given_, {}); !all.empty(); all.pop_back()) {
    if (self.stopping()) co_return;
    pool_change back = all.back();
    std::swap(back.before, back.pages);
    const auto r = co_await change_pool(self, back);
    if (!r && !self.stopping())
      p_.seen->tell("models", fmt::format("{} has {} pages of the {} that it gave, and grows later: {}",
                                          back.model, back.before, back.pages, r.error().message));
  }
}

asio::awaitable<memory_book::promises> model_steps::book(self_type& self, std::vector<load_step> steps) {
  for (int asked = 0;; ++asked) {
    note_used();
    auto made = co_await book_now(self, steps);
    if (made && made->gives.empty()) co_return made;
    std::optional<order_error> wrong;
    if (!made) {
      wrong = made.error();
    } else if (asked == times_asked) {
      wrong = fault_of(
          core::make_error(errc::does_not_fit, "pools were to give way more than {} times", times_asked));
    } else {
      const auto no = co_await give_way(self, made->gives);
      if (no && is_last(*no, asked)) wrong = fault_of(*no);
    }
    if (self.stopping()) co_return fault_of(ended_early());
    if (!wrong) continue;
    co_await take_back(self);
    co_return std::move(*wrong);
  }
}

asio::awaitable<std::optional<core::error>> model_steps::take_for_wake(self_type& self, entry& e) {
  for (int asked = 0;; ++asked) {
    note_used();
    auto gives = p_.memory.gives_for_wake(e.memory);
    std::optional<core::error> wrong;
    if (!gives) {
      wrong = gives.error();
    } else if (gives->empty() || asked == times_asked) {
      const auto taken = p_.memory.wake(e.memory);
      if (taken) co_return std::nullopt;
      wrong = taken.error();
    } else {
      const auto no = co_await give_way(self, std::move(*gives));
      if (no && is_last(*no, asked)) wrong = *no;
    }
    if (self.stopping()) co_return ended_early();
    if (!wrong) continue;
    co_await take_back(self);
    co_return wrong;
  }
}

// ---- growth

void model_steps::begin_growth(self_type& self) {
  if (growing_) return;
  while (auto c = p_.memory.next_growth(barred_)) {
    const auto at = place_of(*c);
    if (!at.who || at.who->state != model_state::ready || !p_.memory.resize(*c, c->pages)) {
      barred_.insert({c->device, c->grant});
      continue;
    }
    growing_ = std::move(c);
    auto done = [to = mail_](core::result<> r) { core::insist([&] { to.tell(order(grown{r})); }); };
    p_.hosts[at.who->hosts[at.place]]->resize(at.who->served->places[at.place]->engine,
                                              static_cast<std::uint32_t>(growing_->pages),
                                              self.get_executor(), std::move(done));
    return;
  }
}

void model_steps::end_growth(const grown& g) {
  const auto c = std::exchange(growing_, std::nullopt);
  if (!c) return;
  if (g.result) {
    count_change(*c, c->pages);
    publish();
    return;
  }
  (void)p_.memory.resize(*c, c->before);  // fewer pages always fit
  barred_.insert({c->device, c->grant});
}

asio::awaitable<void> model_steps::growth_over(self_type& self) {
  if (!growing_) co_return;
  what_ = "the pool of " + growing_->model + " is growing";
  const auto done = co_await next<grown>(self);
  if (done) end_growth(*done);
}

}  // namespace weir::actors
