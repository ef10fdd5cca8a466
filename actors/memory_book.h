// memory_book.h — what each device of a service has promised to which model: one ledger a device
// (core/memory/ledger.h), and the plans that come before a promise (memory_plan.h). No model is loaded
// without one.
//
// Thread safety: any thread. book() and plan() read headers of files, and measure a device when they first
// need it; everything else takes no longer than copying what it returns.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "actors/load_plan.h"
#include "actors/memory_plan.h"
#include "actors/model_orders.h"
#include "core/memory/ledger.h"

namespace weir::actors {

// A model's promises, by place.
struct memory_promise {
  struct part {
    std::string device;
    core::ledger::grant_id id = 0;
    core::memory_lines lines;
  };
  std::vector<part> parts;
  std::optional<std::uint32_t> pages;  // of each of its pools; nullopt: what is free once all else is there
};

class memory_book {
 public:
  // `hosts`: the device of each host. `measured`: devices that were measured already, by name.
  memory_book(owner_options o, std::vector<std::string> hosts, std::vector<planned_device> measured);

  // Plans loads (load_step::host is an index of the hosts) as if the models of `leaving` had gone.
  using planned = boost::system::result<core::memory_plan, order_error>;
  planned plan(std::span<const load_step> loads, const std::set<std::string>& leaving);

  // Plans them, and promises the memory: by model, and `order` has the models in the order of their loads.
  // Nothing is promised on an error: does_not_fit with the plan, and those of plan_memory().
  struct booking {
    std::map<std::string, memory_promise> of;
    std::vector<std::string> order;
  };
  using promises = boost::system::result<booking, order_error>;
  promises book(std::span<const load_step> loads);

  // Takes back what was promised. A promise that is empty or was taken back changes nothing.
  void release(memory_promise& p);
  // Notes what a place takes by measurement. Returns a line for the log where the device has much less or
  // more memory free than its account says; empty: it has not.
  std::string settle(memory_promise& p, std::size_t place, const memory_use& measured);

  std::vector<device_account> accounts() const;

 private:
  core::result<std::vector<planned_device>> devices_of(std::span<const load_step> loads);
  core::result<core::memory_plan> plan_of(std::span<const load_step> loads,
                                          const std::set<std::string>& leaving);
  void take_back(memory_promise& p);  // REQUIRES: the lock is held
  std::uint64_t taken_without(const core::ledger& l, const std::set<std::string>& leaving) const;
  // Whether a model has its device for itself, so that it may take what is free.
  bool is_alone(const core::memory_plan& p, const core::planned_model& m) const;

  const owner_options options_;
  const std::vector<std::string> hosts_;
  std::mutex measuring_;                         // held while a device is measured
  mutable std::mutex lock_;                      // of what follows
  std::map<std::string, planned_device> known_;  // by name
  std::map<std::string, core::ledger> ledgers_;  // by the device's name
};

}  // namespace weir::actors
