// known_key.h — an API key of a running server: what its holder may do by now, and what its jobs have used.
//
// It lives on while the file of keys is read again: set() gives it the rights of its new line, and remove()
// says that its line is gone. Whoever holds a pointer to it sees both.
//
// Thread safety: any thread; set() one thread at a time. The lock of rights is held for one copy of a
// pointer, the lock of begin() while jobs are begun.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "actors/job_account.h"
#include "net/access/api_keys.h"

namespace weir::net {

// A limit of a key: how much of it is left, and when it is whole again.
struct limit_state {
  std::uint64_t limit = 0, left = 0;
  core::duration reset{};
};

class known_key {
 public:
  explicit known_key(const key_hash& h) : hash(h), identity(identity_of(h)) {}

  const key_hash hash;
  const std::uint64_t identity;

  std::shared_ptr<const key_rights> rights() const;  // never null
  void set(const key_rights& r, std::shared_ptr<actors::job_account> of_name, core::time_point now);

  bool removed() const noexcept { return removed_.load(std::memory_order_acquire); }
  void remove() noexcept { removed_.store(true, std::memory_order_release); }

  bool allows_model(std::string_view name) const;

  // The accounts that count the key's jobs: the key's own, and that of the key's name.
  std::array<std::shared_ptr<actors::job_account>, 2> accounts() const;

  // Why no job may begin now.
  struct limit_refusal {
    std::string message;
    std::chrono::milliseconds retry_after{0};
    bool never = false;  // the request alone has more jobs than the limit allows
  };
  // Calls f(), which submits `jobs` jobs with accounts(), unless a limit forbids it. No other jobs of the key
  // begin meanwhile, so that its limit of jobs is exact. For the limit of tokens, `retry_after` is exact if
  // no other job uses tokens meanwhile. For the limit of jobs it is a guess, since nobody knows when a job
  // ends.
  template <class F>
  std::optional<limit_refusal> begin(std::uint32_t jobs, core::time_point now, F f) {
    const std::lock_guard hold(beginning_);
    if (auto no = judge(jobs, now)) return no;
    f();
    return std::nullopt;
  }

  std::optional<limit_state> jobs_left() const;                        // nullopt: there is no limit
  std::optional<limit_state> tokens_left(core::time_point now) const;  // of a minute; nullopt: as above

 private:
  struct line {
    key_rights rights;
    std::shared_ptr<actors::job_account> of_name;
  };
  std::shared_ptr<const line> look() const;
  std::optional<limit_refusal> judge(std::uint32_t jobs, core::time_point now) const;

  const std::shared_ptr<actors::job_account> used_ = std::make_shared<actors::job_account>();
  std::atomic<bool> removed_{false};
  std::mutex beginning_;
  mutable std::mutex lock_;  // of line_
  std::shared_ptr<const line> line_ = std::make_shared<line>();
};

}  // namespace weir::net
