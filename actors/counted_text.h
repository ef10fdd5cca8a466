// counted_text.h — counts work on a text that makes no job, such as tokenising it.
//
// Thread safety: as job_account.h; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "actors/request.h"
#include "core/clock.h"

namespace weir::actors {

// Work on a text that accounts count as an unfinished job while the object lives.
class counted_text {
 public:
  counted_text(job_accounts accounts, const core::clock& time) : accounts_(std::move(accounts)), time_(time) {
    for (const auto& a : accounts_)
      if (a) a->begun();
  }
  ~counted_text() {
    for (const auto& a : accounts_)
      if (a) a->ended();
  }
  counted_text(const counted_text&) = delete;
  counted_text& operator=(const counted_text&) = delete;
  void used(std::size_t tokens) const {
    for (const auto& a : accounts_)
      if (a) a->admitted(0, static_cast<std::uint32_t>(tokens), time_.now());
  }

 private:
  const job_accounts accounts_;
  const core::clock& time_;
};

}  // namespace weir::actors
