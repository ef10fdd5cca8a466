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
struct files_read {
  std::optional<core::error> wrong;
};
struct time_passed {};

struct order {
  std::variant<start, asked<load_order>, asked<unload_order>, asked<swap_order>, asked<share_order>, opened,
               closed, files_read, time_passed>
      what;
  template <class T>
  explicit order(T t) : what(std::move(t)) {}
};

}  // namespace registry_messages

// Bounds of what a client is told about when to come again.
inline constexpr std::uint32_t least_retry_ms = 1000, most_retry_ms = 120'000;

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
  ~model_steps() = default;
  model_steps(const model_steps&) = delete;
  model_steps& operator=(const model_steps&) = delete;

  // Refuses an order.
  static void refuse(registry_messages::order& o, const core::error& why);

 protected:
  // The order under way threw, for want of memory: what it had begun is not finished any more.
  void give_up_steps();

  // A model that is known, and what was promised to its places.
  struct entry : known_model {
    memory_promise memory;
  };
  void add(const model_spec& spec);
  entry* find(std::string_view name);
  void publish();
  order_replies::answer status(const entry& e) const { return p_.describe(e); }

  // ---- waiting for a step. Orders that come meanwhile are refused.

  core::error busy() const;

  // Waits for the next message of type T. nullopt: the registry was stopped.
  template <class T>
  boost::asio::awaitable<std::optional<T>> next(self_type& self) {
    for (;;) {
      auto m = co_await self.async_receive();
      if (!m) co_return std::nullopt;
      if (auto* wanted = std::get_if<T>(&m->what)) co_return std::optional<T>(std::move(*wanted));
      refuse(*m, busy());
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
  // Whether the models fit once those of `leaving` have gone; nullopt: they do.
  boost::asio::awaitable<std::optional<order_error>> lacks(self_type& self, std::vector<load_step> steps,
                                                           std::set<std::string> leaving);
  void promise(entry& e, memory_promise m);
  // Loads a model, whose memory was promised, onto hosts, one place after the other. On an error nothing of
  // it is left, and the promise is taken back.
  boost::asio::awaitable<std::optional<core::error>> bring_up(self_type& self, entry& e,
                                                              std::vector<std::size_t> on,
                                                              model_progress progress);
  void settle(entry& e, const memory_use& measured);
  static void add_place(served_model& m, const served_model& more);
  boost::asio::awaitable<void> close_places(self_type& self, entry& e, const served_model& m);
  // From now on the models take no jobs.
  void begin_drain(const std::vector<entry*>& all, core::duration limit);
  void end_drain(const std::vector<entry*>& all);
  static std::uint32_t unfinished(const std::vector<entry*>& all);
  // Waits until the models have no job. False: some still run when the time is over, or the registry ends.
  boost::asio::awaitable<bool> drained(self_type& self, const std::vector<entry*>& all, core::duration limit);
  // REQUIRES: the model is draining. Jobs that it still has end with an error.
  boost::asio::awaitable<void> take_down(self_type& self, entry& e);
  void forget(std::string_view name);

  const model_registry::parts p_;
  ref<registry_messages::order> mail_;
  std::unique_ptr<timekeeper::timer> timer_;
  std::list<entry> known_;    // in the order in which their names came
  core::engine_totals past_;  // of models that are forgotten
  std::uint64_t past_ended_ = 0;
  std::string what_;                               // the order under way, for people
  std::shared_ptr<const load_progress> progress_;  // of the load under way; null: none is
  core::time_point busy_since_{};
};

}  // namespace weir::actors
