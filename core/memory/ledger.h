// ledger.h — the account of one device's memory: what lies there that is not of this process' models, what
// each model was granted, and what it was measured to take. Nothing is to be allocated for a model that was
// not granted first.
//
//   total = outside + context + reserve + lines of all models + free
//
// All figures are bytes, and no sum of them overflows: what is more than 64 bits can count does not fit.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/memory/pools.h"

namespace weir::core {

// What a model takes of a device.
struct memory_lines {
  std::uint64_t weights = 0, workspaces = 0, runtime = 0;  // runtime: code and recorded steps
  std::uint64_t staging = 0;                               // while it loads
  std::uint64_t pages = 0;                                 // of keys and values

  friend bool operator==(const memory_lines&, const memory_lines&) = default;
};

// Calls f(name, bytes) for each line, in the order in which a load allocates them.
template <class F>
void for_lines(const memory_lines& l, const F& f) {
  f("weights", l.weights);
  f("workspaces", l.workspaces);
  f("runtime", l.runtime);
  f("staging", l.staging);
  f("pages", l.pages);
}
std::uint64_t bytes_of(const memory_lines& l) noexcept;  // of all lines; at most what 64 bits can count

// a + b, or the most that 64 bits can count.
constexpr std::uint64_t sum_of(std::uint64_t a, std::uint64_t b) noexcept {
  return a + b < a ? ~0ull : a + b;
}

// Whether the weights of a model that sleeps stay where they are, as the device's memory is the host's.
constexpr bool weights_stay(std::string_view device) noexcept {
  return device == "cpu" || device == "reference";
}

// What a model that sleeps keeps of them: pages are free, and so are weights, unless they stay.
constexpr memory_lines asleep_part(memory_lines l, std::string_view device) noexcept {
  l.pages = 0;
  if (!weights_stay(device)) l.weights = 0;
  return l;
}

// A device before it has models.
struct device_share {
  std::string name;           // cpu, reference, cuda:0, sim
  std::uint64_t total = 0;    // 0: unknown; the device then grants everything
  std::uint64_t outside = 0;  // of other processes, and what else nobody here accounts for
  std::uint64_t context = 0;  // of this process before any model
  std::uint64_t reserve = 0;  // is left free

  friend bool operator==(const device_share&, const device_share&) = default;
};

class ledger {
 public:
  using grant_id = std::uint64_t;  // no two grants of a ledger have the same

  // One model's entry.
  struct entry {
    std::string model;
    memory_lines predicted;                // as granted
    std::optional<memory_lines> measured;  // once it was settled; counts from then on
    bool asleep = false;                   // it takes asleep_part() alone
    std::optional<auto_pool> pool;         // its pages, where their number can change

    memory_lines whole() const noexcept { return measured.value_or(predicted); }  // of the model awake
    friend bool operator==(const entry&, const entry&) = default;
  };

  explicit ledger(device_share d) : device_(std::move(d)) {}

  // Books what a model will take. Error: does_not_fit, where nothing is booked; the message names the
  // device, the first line for which there is no room, the bytes that are missing and those that are free.
  result<grant_id> grant(std::string model, const memory_lines& lines);

  // Takes a model's entry out: the account is then as it was before grant(), to the byte, but for a drift
  // that was found meanwhile. An id that is not there changes nothing.
  void release(grant_id id);

  // A model sleeps from now on: what asleep_part() leaves out is free. An id that is not there changes
  // nothing.
  void sleep(grant_id id);
  // Takes the memory of a model that sleeps again. Error: does_not_fit, with the numbers; it sleeps on then.
  // An id that is not there, or is awake, changes nothing.
  result<void> wake(grant_id id);

  // The pages of a model are a pool that can change: `p.pages` of `p.page_bytes` bytes are what its line of
  // pages says. An id that is not there changes nothing.
  void set_pool(grant_id id, const auto_pool& p);
  // How many pages of a pool are in use now. An id that is not there, or has no pool, changes nothing.
  void note_used(grant_id id, std::uint64_t pages);
  // A pool has `pages` pages from now on. Error: does_not_fit, with the numbers, where it grows by more than
  // is free; it is as it was then. REQUIRES: the entry has a pool, and is awake
  result<void> resize(grant_id id, std::uint64_t pages);

  // What a measurement found beside the account.
  struct drift {
    std::uint64_t predicted_free = 0, measured_free = 0;  // of the device, its reserve included
  };

  // Replaces what the model was granted by what it was measured to take. `device_free`: the free bytes that
  // the device reported at the same moment, when every granted model was loaded. Where these differ by more
  // than 2 % of the device and more than 256 MiB from what the account says, the measurement is believed: the
  // difference goes to `outside`, and both figures are returned, for the log. nullopt: what is free is not
  // known, or says nothing now.
  std::optional<drift> settle(grant_id id, const memory_lines& measured,
                              std::optional<std::uint64_t> device_free);

  const device_share& device() const noexcept { return device_; }
  // What a model takes now, what it takes while it sleeps, and what that frees, in bytes.
  std::uint64_t held_by(const entry& e) const noexcept {
    return e.asleep ? asleep_bytes(e) : bytes_of(e.whole());
  }
  std::uint64_t asleep_bytes(const entry& e) const noexcept {
    return bytes_of(asleep_part(e.whole(), device_.name));
  }
  std::uint64_t freed_by_sleep(const entry& e) const noexcept {
    return bytes_of(e.whole()) - asleep_bytes(e);
  }
  const std::map<grant_id, entry>& entries() const noexcept { return entries_; }
  std::uint64_t taken() const noexcept;  // by all models
  memory_lines taken_lines() const noexcept;  // the same by lines
  // Bytes that can still be granted; the most that 64 bits can count where the total is unknown.
  std::uint64_t free() const noexcept;

 private:
  device_share device_;
  std::map<grant_id, entry> entries_;
  grant_id next_ = 1;
};

}  // namespace weir::core
