// job_account.h — what the jobs of one client have used so far, counted as they run.
//
// The service counts: a job when its request is read, its prompt when it is admitted, each token of its
// answer when its shard takes the token, and its end. A request names the accounts that count it
// (request::accounts): one of its client, for limits, and one of the client's name, for statistics.
//
// Thread safety: any thread, no lock. A reader may see only a part of what one job adds.
#pragma once

#include <atomic>
#include <cstdint>

#include "actors/token_allowance.h"

namespace weir::actors {

class job_account {
 public:
  // ---- read by limits and statistics

  std::uint64_t unfinished() const noexcept { return load(unfinished_); }  // read, and not ended or refused
  std::uint64_t jobs() const noexcept { return load(jobs_); }  // admitted so far; choices are jobs
  std::uint64_t prompt_tokens() const noexcept { return load(prompt_tokens_); }  // a prompt of n choices once
  std::uint64_t output_tokens() const noexcept { return load(output_tokens_); }  // those that end jobs, too

  token_allowance allowance;  // charged with all tokens above; without a limit until one is set

  // ---- called by the service

  void begun() noexcept { add(unfinished_, 1); }
  void ended() noexcept { unfinished_.fetch_sub(1, std::memory_order_relaxed); }
  // Jobs with one prompt were admitted.
  void admitted(std::uint32_t jobs, std::uint32_t prompt_tokens, core::time_point at) noexcept {
    add(jobs_, jobs);
    add(prompt_tokens_, prompt_tokens);
    allowance.charge(prompt_tokens, at);
  }
  void output(std::uint32_t tokens, core::time_point at) noexcept {
    add(output_tokens_, tokens);
    allowance.charge(tokens, at);
  }

 private:
  using count = std::atomic<std::uint64_t>;
  static std::uint64_t load(const count& c) noexcept { return c.load(std::memory_order_relaxed); }
  static void add(count& c, std::uint64_t n) noexcept { c.fetch_add(n, std::memory_order_relaxed); }

  count unfinished_{0}, jobs_{0}, prompt_tokens_{0}, output_tokens_{0};
};

}  // namespace weir::actors
