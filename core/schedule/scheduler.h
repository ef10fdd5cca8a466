// scheduler.h — chooses a step's rows: one for every decoding sequence, and slices of the prompts that are
// not done.
//
// Several prompts share a step: the one with the fewest rows left first, and as old as it is. A prompt of R
// rows lets those that entered later compute at most R rows before its last, so that short ones are quick and
// long ones end. Those that are held are left out. Rows that a paced model says are not due yet stay out.
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

  // Prompt rows chosen so far, of all plans.
  std::uint64_t prompt_rows() const noexcept { return all_prompt_rows_; }

  // Copies that the next forward owes.
  std::vector<page_copy>& copies() noexcept { return batch_.copies; }

  // Of the last plan: whose rows each slice holds, and when the earliest row that was left out falls due
  // (time_point max: none was).
  std::span<sequence* const> sequences() const noexcept { return chosen_; }
  time_point next_due() const noexcept { return next_due_; }

  // What a plan costs, by kind of row; `granted`: prompt rows that it might have had.
  struct load {
    std::uint32_t decode_rows = 0, prompt_rows = 0, granted = 0;
  };
  load last_load() const noexcept { return {decode_rows_, prompt_rows_, budget_.granted()}; }

  // The last plan's rows are computed before anything that is planned from now on; f(sequence&) of each that
  // has some.
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

  // A plan of such a load took so long.
  void observe(const load& l, duration took);

 private:
  void take(sequence& s, std::uint32_t rows, const model& m, time_point now);

  prefill_budget budget_;
  batch batch_;
  std::vector<sequence*> chosen_;  // [slices]
  std::vector<sequence*> prompts_;  // not done, in order
  std::uint32_t decode_rows_ = 0, prompt_rows_ = 0;
  std::uint64_t all_prompt_rows_ = 0;
  time_point next_due_{};
  bool paced_ = false;  // the model of the last plan
};

}  // namespace weir::core
