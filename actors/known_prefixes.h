// known_prefixes.h — what a fleet knows of the prefix cache of an engine, for the choice of the place of a
// job.
//
// Thread safety: any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/fleet/landmarks.h"
#include "core/job.h"

namespace weir::actors {

class known_prefixes {
 public:
  using list = std::shared_ptr<const core::fleet::landmark_list>;
  using counter = std::shared_ptr<std::atomic<std::uint64_t>>;

  // `kv_type`: of the engine's pages. `promised`: counts tokens that promise() was told.
  known_prefixes(std::string kv_type, counter promised)
      : kv_type_(std::move(kv_type)), promised_(std::move(promised)) {}

  const std::string& kv_type() const noexcept { return kv_type_; }
  void set(list now) {
    const std::lock_guard hold(lock_);
    list_.swap(now);
  }
  // Tokens of a prompt with these landmarks that are in the cache at least.
  std::uint32_t tokens(std::span<const std::uint64_t> of_prompt) const {
    const auto now = look();
    return now ? core::fleet::known_tokens(of_prompt, *now) : 0;
  }
  // A job was sent here that should find so many tokens.
  void promise(std::uint32_t tokens) const { promised_->fetch_add(tokens, std::memory_order_relaxed); }

 private:
  list look() const {
    const std::lock_guard hold(lock_);
    return list_;
  }

  const std::string kv_type_;
  const counter promised_;
  mutable std::mutex lock_;
  list list_;
};

// The landmarks of one prompt, which are computed when they are first asked for. One thread.
class prompt_landmarks {
 public:
  // The job must stay as it is.
  explicit prompt_landmarks(const core::job& j) : job_(j) {}

  // Tokens of the prompt that a place is known to have; 0 where nothing is known of it (null).
  std::uint32_t known_to(const known_prefixes* k) {
    if (!k || job_.prompt.empty()) return 0;
    const auto [at, fresh] = by_type_.try_emplace(k->kv_type());
    if (fresh) at->second = core::fleet::landmarks_of(job_.prompt, job_.cache_salt, k->kv_type());
    // The last token is always computed.
    return std::min(k->tokens(at->second), static_cast<std::uint32_t>(job_.prompt.size() - 1));
  }

 private:
  const core::job& job_;
  std::map<std::string, std::vector<std::uint64_t>> by_type_;  // by the type of keys and values
};

}  // namespace weir::actors
