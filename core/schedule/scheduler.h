// scheduler.h — chooses the rows of a step: one for every decoding sequence, and slices of the unfinished
// prompts.
//
// Several prompts may share a step. They are served in the order of pending rows plus prompt_turn, the number
// of prompt rows chosen before the sequence was admitted; ties go to the earlier admission. Short prompts are
// therefore quick, and a prompt of R rows waits for at most R rows of prompts that were admitted after it.
//
// Left out of a step are sequences that are `held`, and rows that a paced model does not yet allow
// (model::due).
//
// Thread safety: the owner's thread only. plan() does not allocate once the vectors have reached a batch's
// size.
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

  // Chooses the rows of the next step; the batch is empty where no row is due. The reference stays valid; the
  // next plan() overwrites the batch. REQUIRES: no sequence in `running` has ended.
  const batch& plan(std::span<const std::unique_ptr<sequence>> running, const model& m, time_point now);

  // Prompt rows chosen by all plans so far.
  std::uint64_t prompt_rows() const noexcept { return all_prompt_rows_; }

  // Page copies that the next forward makes before it computes rows. Admission appends to them; they outlive
  // empty plans, and computed() clears them.
  std::vector<page_copy>& copies() noexcept { return batch_.copies; }

  // For each slice of the latest plan, its sequence.
  std::span<sequence* const> sequences() const noexcept { return chosen_; }

  // When the earliest row falls due that the latest plan left out; time_point::max() if it left none out.
  time_point next_due() const noexcept { return next_due_; }

  // Rows of a plan by kind, and the most prompt rows that its budget allowed.
  struct load {
    std::uint32_t decode_rows = 0, prompt_rows = 0, granted = 0;
  };
  load last_load() const noexcept { return {decode_rows_, prompt_rows_, budget_.granted()}; }

  // Counts the latest plan's rows as computed, and calls f(sequence&) for each of its sequences. To be called
  // once a plan, when its forward has been computed or has begun on a device that works in order.
  template <class F>
  void computed(time_point now, F f) {
    batch_.copies.clear();
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      sequence& s = *chosen_[i];
      s.computed += batch_.slices[i].rows;
      if (paced_) s.computed_at = now;
      f(s);
    }
  }

  // Tells the prefill budget how long a step with this load took.
  void observe(const load& l, duration took);

 private:
  // Adds the next `rows` rows of a sequence to the batch, or notes in next_due_ when they fall due.
  void take(sequence& s, std::uint32_t rows, const model& m, time_point now);

  prefill_budget budget_;
  batch batch_;
  std::vector<sequence*> chosen_;   // [slices] whose rows each slice holds
  std::vector<sequence*> prompts_;  // sequences with prompt rows to compute, in the order they are served
  std::uint32_t decode_rows_ = 0, prompt_rows_ = 0;  // of the latest plan
  std::uint64_t all_prompt_rows_ = 0;                // of all plans
  time_point next_due_{};
  bool paced_ = false;  // the latest plan's model is paced
};

}  // namespace weir::core
