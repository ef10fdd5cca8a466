// model_naps.h — how models sleep and wake: steps of the model registry (model_registry.h), each a
// transaction. A step that fails leaves the model as it was, or, where one of its engines broke, failed and
// without memory.
//
//   sleep, level host   host memory is held; each place's engine sleeps; its weights and pages are free
//   sleep, level disk   the engines are closed, and all memory is given back; tokenizer and template stay
//   wake                the memory is taken again, and each engine wakes; from the disk: a load
//
// Thread safety: the registry's thread only.
#pragma once

#include <optional>
#include <vector>

#include "actors/model_steps.h"

namespace weir::actors {

class model_naps : public model_steps {
 public:
  using model_steps::model_steps;

 protected:
  // How a model makes room for another one.
  enum class exit : std::uint8_t {
    unload,  // it is absent afterwards
    sleep,   // it sleeps on the host; where that fails it is unloaded, and the log says so
    deepen   // it slept on the host, and sleeps on the disk from now on
  };
  struct leaving {
    entry* who = nullptr;
    exit how = exit::unload;
  };

  // Bytes of host memory that a model's sleep takes. Error: not_supported, about `level`. REQUIRES: it is
  // served
  static core::result<std::uint64_t> sleep_bytes_of(const entry& e);
  // The level of a sleep that asks for none: host where it is possible now, else disk. REQUIRES: it is served
  sleep_level best_level(const entry& e) const;
  // Holds host memory for a sleep at level host. Errors: as memory_book::hold_sleep(), and sleep_bytes_of().
  core::result<void> hold_for(entry& e);

  // ---- what an order names. Errors: model_not_found, and as each says

  core::result<entry*> running(std::string_view name);
  // The level at which a model is to sleep, for which host memory is held where it is `host`. nullopt: it
  // sleeps on the host, and is to sleep on the disk. Errors: already_there, and those of hold_for().
  core::result<std::optional<sleep_level>> level_of(const sleep_order& o);
  // A model that sleeps. Error: already_there.
  core::result<entry*> sleeping(std::string_view name);
  // Whether a model that sleeps on the host can wake now. Error: does_not_fit.
  core::result<void> room_to_wake(const entry& e) const;

  // ---- steps

  // Puts a model to sleep on the host. On an error it is draining as before, and host memory is held no more;
  // or it is failed, where the error is internal. REQUIRES: it is draining and has no job; hold_for(e)
  boost::asio::awaitable<std::optional<core::error>> put_to_sleep(self_type& self, entry& e);
  // Puts a model to sleep on the disk. REQUIRES: it is draining and has no job, or sleeps on the host
  boost::asio::awaitable<void> drop_to_disk(self_type& self, entry& e);
  // Wakes a model that sleeps on the host. On an error it sleeps on; or is failed, where the error is
  // internal. REQUIRES: it sleeps at level host
  boost::asio::awaitable<std::optional<core::error>> wake_up(self_type& self, entry& e);

  // Takes models away, each as it says, and brings `in` up, by a wake where it sleeps on the host. Where that
  // fails, those that went come back, and the error says so. REQUIRES: those that are not asleep are
  // draining, and have no job
  boost::asio::awaitable<std::optional<core::error>> exchange(self_type& self,
                                                              const std::vector<leaving>& out, entry& in,
                                                              model_spec spec, std::vector<std::size_t> on);

  // Models of a host that are not asleep, whatever else they are.
  std::size_t awake_on(std::size_t host) const;

 private:
  boost::asio::awaitable<core::result<>> nap(self_type& self, std::size_t on, engine_id engine, bool sleeps);
  // Puts the first `count` places to sleep, or wakes them, to undo the opposite. False: one of them cannot.
  boost::asio::awaitable<bool> undo(self_type& self, entry& e, const served_model& m, std::size_t count,
                                    bool sleeps);
  // An engine of the model broke: all of them are closed.
  boost::asio::awaitable<void> break_down(self_type& self, entry& e, const core::error& why);
  boost::asio::awaitable<void> leave(self_type& self, const leaving& l);
  // What became of a model that had left, for the message of an error.
  boost::asio::awaitable<std::string> come_back(self_type& self, const leaving& l,
                                                std::vector<std::size_t> on);
};

}  // namespace weir::actors
