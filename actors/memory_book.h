// memory_book.h — what each device of a service has promised to which model: one ledger a device
// (core/memory/ledger.h), and the plans that come before a promise (memory_plan.h). No model is loaded
// without one. Beside them stands the host memory for the weights of models that sleep.
//
// Thread safety: any thread. book() and plan() may take long: they read headers of files, and the first of
// them that needs a device measures it. The other members take no longer than copying what they return.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/load_plan.h"
#include "actors/memory_plan.h"
#include "actors/model_orders.h"
#include "actors/model_place.h"
#include "core/memory/ledger.h"

namespace weir::actors {

// A model's promises, by place.
struct memory_promise {
  struct part {
    std::string device;
    core::ledger::grant_id id = 0;
    core::memory_lines lines;
    // Of an auto pool: the pages that it keeps when others come, and those that are of use. 0: it is none.
    std::uint64_t floor = 0, useful = 0;
  };
  std::vector<part> parts;
  std::optional<std::uint32_t> pages;  // of each of its pools; nullopt: what is free once all else is there
  std::uint64_t asleep = 0;            // bytes of host memory that are held for its sleep
  bool copied = false;                 // its weights were copied there: they are held until the release
};

// A pool of a model that is loaded, and the pages that it is to have.
struct pool_change {
  std::string device, model;
  core::ledger::grant_id grant = 0;
  std::uint64_t before = 0, pages = 0;

  bool is_of(const memory_promise::part& p) const { return p.id == grant && p.device == device; }
};

class memory_book {
 public:
  // `hosts`: the device of each host. `measured`: devices that were measured already, by name.
  // `sleep_bytes`: host memory for weights that sleep.
  memory_book(owner_options o, std::vector<std::string> hosts, std::vector<planned_device> measured,
              std::uint64_t sleep_bytes = 0);

  // Plans loads (load_step::host is an index of the hosts) as if the models of `leaving` had gone, and those
  // of `sleeping` slept. The plan also says which pools of loaded models give way (core/memory/plan.h).
  using planned = boost::system::result<core::memory_plan, order_error>;
  planned plan(std::span<const load_step> loads, const std::set<std::string>& leaving,
               const std::set<std::string>& sleeping = {});

  // Promises that were made together.
  struct booking {
    std::map<std::string, memory_promise> of;  // by the model's name
    std::vector<std::string> order;            // names of the models, as they are to be loaded
    std::vector<pool_change> gives;            // pools that have to give way first: nothing is promised yet
  };
  // Plans loads, and promises their memory, where no pool has to give way for it. Errors: does_not_fit with
  // the plan, and those of plan_memory(). An error means that nothing was promised.
  using promises = boost::system::result<booking, order_error>;
  promises book(std::span<const load_step> loads);

  // Takes back what was promised. A promise that is empty or was taken back changes nothing.
  void release(memory_promise& p);
  // Replaces the promise to a place by what the place was measured to take. Returns a line for the log where
  // the device's free memory differs much from its account, and an empty one elsewhere.
  std::string settle(memory_promise& p, std::size_t place, const model_place& measured);

  std::vector<device_account> accounts() const;
  // What a model takes of a device now, in bytes.
  std::uint64_t taken_by(std::string_view model, std::string_view device) const;

  // ---- pools that change their size (pools.h)

  // Takes note of how many pages of a place are in use now. A pool that gives way keeps these.
  void note_used(const memory_promise& p, std::size_t place, std::uint64_t pages);
  // A pool has so many pages from now on. Error: does_not_fit where it grows by more than is free, or the
  // promise is gone; nothing has changed then.
  core::result<void> resize(const pool_change& c, std::uint64_t pages);
  // What pools have to give so that a model can wake. Error: does_not_fit, with the numbers.
  core::result<std::vector<pool_change>> gives_for_wake(const memory_promise& p) const;
  // Returns which pool grows next, into memory that is free. Pools of `barred` are left out. nullopt: no pool
  // can grow.
  using pool_key = std::pair<std::string, core::ledger::grant_id>;
  std::optional<pool_change> next_growth(const std::set<pool_key>& barred) const;

  // ---- sleep at level host

  struct sleep_room {
    std::uint64_t total = 0, taken = 0;
    std::uint64_t free() const noexcept { return total - taken; }
  };
  sleep_room sleep_account() const;
  // Holds host memory for the weights of `model`. A model keeps it when it wakes, for its next sleep, until
  // its promise is released. Errors, about the field `level`: not_supported, where there is none for any
  // model; does_not_fit, with the numbers.
  core::result<void> hold_sleep(memory_promise& p, std::string_view model, std::uint64_t bytes);
  // The model does not sleep after all. What was copied stays held.
  void end_hold(memory_promise& p);
  // The model sleeps: its weights and pages are free on its devices.
  void sleep(const memory_promise& p);
  // Takes that memory again. Error: does_not_fit, with the numbers; nothing was taken.
  core::result<void> wake(const memory_promise& p);
  // Bytes of a device that would be free if the model slept.
  std::uint64_t freed_by_sleep(std::string_view model, std::string_view device) const;
  // What the wake of a model lacks once pools have given all that they can, if those of `leaving` have gone,
  // and those of `sleeping` sleep.
  struct shortage {
    std::string device;
    std::uint64_t bytes = 0;
    std::string why;  // for people
  };
  std::optional<shortage> lacks_to_wake(const memory_promise& p, const std::set<std::string>& leaving,
                                        const std::set<std::string>& sleeping) const;

 private:
  // A device for each host; only the devices of hosts that a load names are measured.
  core::result<std::vector<planned_device>> devices_of(std::span<const load_step> loads);
  core::result<core::memory_plan> plan_of(std::span<const load_step> loads,
                                          const std::set<std::string>& leaving,
                                          const std::set<std::string>& sleeping);
  void take_back(memory_promise& p);  // REQUIRES: the lock is held
  static std::vector<core::giving_pool> pools_without(const core::ledger& l,
                                                      const std::set<std::string>& leaving,
                                                      const std::set<std::string>& sleeping);
  // What a wake takes of each device.
  std::map<std::string, std::uint64_t> needs_of_wake(const memory_promise& p) const;
  static std::uint64_t taken_without(const core::ledger& l, const std::set<std::string>& leaving,
                                     const std::set<std::string>& sleeping);
  // Whether no other model is on the device of `m`. Such a model may take all memory that is free.
  bool is_alone(const core::memory_plan& p, const core::planned_model& m) const;

  const owner_options options_;
  const std::vector<std::string> hosts_;
  std::mutex measuring_;                         // held while a device is measured
  mutable std::mutex lock_;                      // of what follows
  std::map<std::string, planned_device> known_;  // by name
  std::map<std::string, core::ledger> ledgers_;  // by the device's name
  sleep_room sleep_;
};

}  // namespace weir::actors
