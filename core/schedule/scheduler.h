// scheduler.h — chooses a step's rows: one for every decoding sequence, and slices of the prompts that are
// not done.
//
// Prompts are served in order of admission, but for those that are held. Rows that a paced model says are not due yet stay out.
//
// Thread safety: the owner's thread. plan() does not allocate once the vectors have reached a batch's size.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/model/model.h"
#include "core/schedule/prefill_budget.h"
#include "core/schedule/sequence.h"

namespace weir::core {

class scheduler {
 public:
  scheduler(std::uint32_t max_batch, prefill_budget::limits l);

  // The next step's work; empty where nothing is due. REQUIRES: no sequence of `running` has ended.
  const batch& plan(std::span<const std::unique_ptr<sequence>> running, const model& m, time_point now);

  // Copies that the next forward owes.
  std::vector<page_copy>& copies() noexcept { return batch_.copies; }

  // Of the last plan: whose rows each slice holds, and when the earliest row that was left out falls due
  // (time_point max: none was).
  std::span<sequence* const> sequences() const noexcept { return chosen_; }
  time_point next_due() const noexcept { return next_due_; }

  // The last plan was computed, at `now`, in so much time.
  void computed(time_point now, duration took);

 private:
  void take(sequence& s, std::uint32_t rows, const model& m, time_point now);

  prefill_budget budget_;
  batch batch_;
  std::vector<sequence*> chosen_;  // [slices]
  std::uint32_t decode_rows_ = 0, prompt_rows_ = 0;
  time_point next_due_{};
};

}  // namespace weir::core
