// model_steps.h — the steps that orders for models are made of, and the models themselves, as the model
// registry (model_registry.h) has them. A step that waits is a coroutine: orders that come meanwhile are
// refused as busy.
//
// Thread safety: the registry's thread only.
#pragma once

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "actors/load_line.h"
#include "actors/model_registry.h"
#include "actors/runtime/context.h"

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
struct napped {
  core::result<> result;
};
struct resized {
  core::result<> result;
};
struct grown {  // the growth of a pool, for which no step waits
  core::result<> result;
};
struct files_read {
  std::optional<core::error> wrong;
};
struct time_passed {};

// Requests that wait for models (load_line.h).
struct wished {
  model_wish what;
};
struct end_wishes {
  core::error why;
};
struct look_round {};  // time to see who left, whose time is over, and who rests

struct order {
  std::variant<start, asked<load_order>, asked<unload_order>, asked<swap_order>, asked<terms_order>,
               asked<sleep_order>, asked<wake_order>, opened, closed, napped, resized, grown, files_read,
               time_passed, wished, end_wishes, look_round>
      what;
  template <class T>
  explicit order(T t) : what(std::move(t)) {}
};

}  // namespace registry_messages

// The model of an answer is copied: the answer is posted until there is memory for it.
void answer(const executor& ex, const std::function<void(order_replies::answer)>& to,
            order_replies::answer what);
inline order_error fault_of(core::error e) { return {std::move(e), {}}; }
core::error ended_early();

class model_steps {
 public:
  using self_type = context<registry_messages::order>;

  // The models of the start and those that are absent until an order names them.
  explicit model_steps(model_registry::parts p);
  virtual ~model_steps() = default;
  model_steps(const model_steps&) = delete;
  model_steps& operator=(const model_steps&) = delete;

  // Refuses an order.
  static void refuse(registry_messages::order& o, const core::error& why);

 protected:
  // The order under way threw, for want of memory: what it had begun is not finished any more.
  void give_up_steps(const executor& ex);

  // A model that is known, and what was promised to its places.
  struct entry : known_model {
    memory_promise memory;
    bool napping = false;  // its engines are being put to sleep or woken
  };
  void give_up_nap(entry& e, const executor& ex);
  void add(const model_spec& spec);
  entry* find(std::string_view name);
  void publish();
  order_replies::answer status(const entry& e) const { return p_.describe(e); }

  // ---- waiting for a step. Orders that come meanwhile are refused.

  core::error busy() const;

  // Acts on a message that no step waits for and that is no order. False: it is something else.
  virtual bool heard(registry_messages::order& o) = 0;

  // Waits for the next message of type T. nullopt: the registry was stopped.
  template <class T>
  boost::asio::awaitable<std::optional<T>> next(self_type& self) {
    for (;;) {
      auto m = co_await self.async_receive();
      if (!m) co_return std::nullopt;
      if (auto* wanted = std::get_if<T>(&m->what)) co_return std::optional<T>(std::move(*wanted));
      if (!heard(*m)) refuse(*m, busy());
    }
  }

  // ---- steps
  boost::asio::awaitable<host::opened> open(self_type& self, std::size_t on, model_spec spec,
                                            model_progress both);
  boost::asio::awaitable<bool> close(self_type& self, std::size_t on, engine_id engine,
                                     core::engine_totals& into);
  // Calls `work`, which reads headers of files. False: it was not done, for the reason in `wrong`.
  boost::asio::awaitable<bool> read(self_type& self, std::function<void()> work, core::error& wrong);
  boost::asio::awaitable<memory_book::promises> book(self_type& self, std::vector<load_step> steps);
  boost::asio::awaitable<memory_book::promises> book_now(self_type& self, std::vector<load_step> steps);
  // A plan as if the models of `leaving` had gone.
  boost::asio::awaitable<memory_book::planned> plan(self_type& self, std::vector<load_step> steps,
                                                    std::set<std::string> leaving,
                                                    std::set<std::string> sleeping = {});
  // Whether the models fit once those of `leaving` have gone; nullopt: they do.
  boost::asio::awaitable<std::optional<order_error>> lacks(self_type& self, std::vector<load_step> steps,
                                                           std::set<std::string> leaving);

  // ---- pools (model_pools.cpp). Pools give way before any model leaves: cached pages cost less than a load.

  // Tells the book how many pages of each pool are in use.
  void note_used();
  // Changes one pool, and its account. On an error it is as before.
  boost::asio::awaitable<core::result<>> change_pool(self_type& self, pool_change c);
  // Pools give way, one after the other. What they gave is in `given_`. An error ends it.
  boost::asio::awaitable<std::optional<core::error>> give_way(self_type& self, std::vector<pool_change> all);
  // Undoes give_way(), backwards: pools have the pages that they had.
  boost::asio::awaitable<void> take_back(self_type& self);
  // Takes the memory of a wake in its account; pools give way for it.
  boost::asio::awaitable<std::optional<core::error>> take_for_wake(self_type& self, entry& e);
  // Lets the pool that is next grow into what is free, where none is growing; no step waits for that.
  void begin_growth(self_type& self);
  void end_growth(const registry_messages::grown& g);
  // Waits for the end of a growth, before a step that takes memory or lets a model go.
  boost::asio::awaitable<void> growth_over(self_type& self);
  // The place that a pool belongs to; its entry is null where it is gone.
  struct pool_place {
    entry* who = nullptr;
    std::size_t place = 0;
  };
  pool_place place_of(const pool_change& c);
  void count_change(const pool_change& c, std::uint64_t pages);

  void promise(entry& e, memory_promise m);
  // Loads a model, whose memory was promised, onto hosts, one place after the other. On an error nothing of
  // it is left, and the promise is taken back.
  boost::asio::awaitable<std::optional<core::error>> bring_up(self_type& self, entry& e,
                                                              std::vector<std::size_t> on,
                                                              model_progress progress);
  void note_load(entry& e, core::duration took);
  void note_failed_load(entry& e, const core::error& wrong, const load_progress& of);
  void settle(entry& e, const model_place& place);
  static void add_place(served_model& m, const served_model& more);
  boost::asio::awaitable<void> close_places(self_type& self, entry& e, const served_model& m);
  // Closes the places, and gives back all memory of the model, on its devices and of the host.
  boost::asio::awaitable<void> give_all_back(self_type& self, entry& e, const served_model& was);
  // From now on the models take no jobs. `why`: what is done to them, for those that come too late.
  void begin_drain(const std::vector<entry*>& all, core::duration limit,
                   std::string_view why = "is being unloaded");
  // The models take jobs.
  void end_drain(const std::vector<entry*>& all);
  static std::uint32_t unfinished(const std::vector<entry*>& all);
  // Waits until the models have no job. False: some still run when the time is over, or the registry ends.
  boost::asio::awaitable<bool> drained(self_type& self, const std::vector<entry*>& all, core::duration limit);
  // Closes a model's engines and gives its memory back. Jobs that it still has end with an error. REQUIRES:
  // it is draining or asleep
  boost::asio::awaitable<void> take_down(self_type& self, entry& e);
  void forget(std::string_view name);
  // Promises a model's memory and loads it.
  boost::asio::awaitable<std::optional<core::error>> come_up(self_type& self, entry& e,
                                                             std::vector<std::size_t> on);

  const model_registry::parts p_;
  ref<registry_messages::order> mail_;
  std::unique_ptr<timekeeper::timer> timer_;
  std::list<entry> known_;    // in the order in which their names came
  core::engine_totals past_;  // of models that are forgotten
  std::uint64_t past_ended_ = 0;
  std::string what_;                         // the order under way, for people
  std::shared_ptr<load_progress> progress_;  // of the load under way; null: none is
  core::time_point busy_since_{};
  std::vector<pool_change> given_;  // by pools, for the order under way
  std::optional<pool_change> growing_;
  std::set<memory_book::pool_key> barred_;  // pools that could not grow since the last order
  double load_rate_ = 0;  // bytes a second of the last loads; 0: none was measured
};

}  // namespace weir::actors
