// scheduler.h — which sequences are in the batch, which pages they have, and which rows the next step
// computes.
//
// plan() makes a step in four parts:
//   1. Growth. Every sequence of the batch gets pages for the rows that it needs computed. Where the pool has
//      none left, the youngest sequence of the lowest priority is preempted, until there is room. The oldest
//      sequence of the highest priority is never preempted, so at least one always makes progress.
//   2. Admission. Waiting sequences enter the batch in the order of the waiting line (waiting_line.h) while
//      the batch has places and the pool has pages for all their tokens, and one more page for every sequence
//      of the batch. A sequence that finds no room lets those behind it enter, but at most `most_passes` of
//      them.
//   3. Sharing. Sequences with prompt rows to compute take the pages that are in the prefix tree by now. Of
//      the sequences that would compute the same page in this step, all but the first are held.
//   4. Choice of rows. One for every decoding sequence, and slices of the unfinished prompts, as many as the
//      budget allows (prompt_budget.h). In a large batch a sequence whose forced tokens wait also gets one
//      row only. Prompts are served in the order of pending rows plus sequence::rows_before; ties go to the
//      earlier admission. Short prompts are therefore quick, and a prompt of R rows waits for at most R rows
//      of prompts that were admitted after it. Rows that a paced model does not yet allow (model::due) are
//      left out. A sequence whose draw was left out, because the mask of its constraint was late, computes
//      its last row again: its page gets the same keys and values once more. Of prompts whose logprobs are
//      asked, a step computes few rows, because each of these needs a row of logits: all rows of logits
//      together are at most max_batch.
//
// Pauses: a paused sequence is out of the waiting line and the batch, takes no place there, and keeps its
// pages while nobody needs them. Where the pool has too few for growth or admission, paused sequences are
// preempted before all others, then those that return, the youngest of the lowest priority first. Once its
// pause is over, a sequence returns: sequences that return and those of the waiting line enter the batch by
// priority, and within one they take turns, so neither keeps the other out. Of those that return, API keys
// take turns, and of a key the first to arrive is the first.
//
// A sequence is in the waiting line, in the batch, or rests: it is paused, or returns. Once it has ended it
// stays where it is until sweep() takes it out.
//
// The scheduler calls neither clock nor device nor sink, except token_sink::abandoned().
//
// Thread safety: the owner's thread only. plan() does not allocate once its vectors have reached a batch's
// size, but for what sequence::enter() allocates.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/model/model.h"
#include "core/schedule/prompt_budget.h"
#include "core/schedule/sequence.h"
#include "core/schedule/waiting_line.h"

namespace weir::core {

class scheduler {
 public:
  // Most sequences that may enter the batch before a sequence that is ahead of them and finds no room.
  static constexpr std::uint32_t most_passes = 4;

  // `max_batch`: most sequences in the batch; >= 1. `pool` and `m` must outlive the scheduler.
  scheduler(std::uint32_t max_batch, const prompt_budget::targets& t, page_pool& pool, const model& m);

  // --- Sequences ---

  // Adds a new sequence to the waiting line.
  void add(std::unique_ptr<sequence> s) { waiting_.add(std::move(s)); }
  // Adds a sequence of another scheduler, without pages, that waits or rests: it goes on doing so. It keeps
  // its number of arrival and its ticket. Where memory is short, it throws and leaves `s` as it is.
  void adopt(std::unique_ptr<sequence>&& s);
  // Takes the pages of all sequences away (sequence::strand), and moves those of the batch to the waiting
  // line.
  void strand();
  // Takes a sequence out of the waiting line, the batch or those that rest; null if it is in none.
  std::unique_ptr<sequence> take(const sequence& s);

  // Pauses a sequence until `until`, or changes the end of its pause. The plan that follows leaves the
  // sequence out. REQUIRES: not ended.
  void pause(sequence& s, time_point until);
  // Ends a pause: the sequence returns from the next plan on. REQUIRES: it is paused.
  void resume(sequence& s) noexcept;

  // Takes the first sequence out of the waiting line. REQUIRES: the line is not empty.
  std::unique_ptr<sequence> take_waiting() { return waiting_.take_front(); }

  const waiting_line& waiting() const noexcept { return waiting_; }
  // Waiting sequences that were in the batch before: calls f(sequence&) for each.
  template <class F>
  void each_preempted(F f) {
    waiting_.each_preempted(f);
  }
  // The batch, in order of admission.
  std::span<const std::unique_ptr<sequence>> running() const noexcept { return running_; }
  // The sequences that rest, in order of their pauses; those that await a draw are among them.
  std::span<const std::unique_ptr<sequence>> resting() const noexcept { return resting_; }
  // How many of them return.
  std::uint32_t returning() const noexcept;
  // Calls f(std::unique_ptr<sequence>&) for each sequence of the batch and each that rests. A sequence that f
  // moves out of its pointer leaves the scheduler.
  template <class F>
  void sweep(F f) {
    sweep(running_, f);
    sweep(resting_, f);
  }
  // Waiting sequences that the latest plan found abandoned by their sinks, and took out of the line. To be
  // emptied before the next plan.
  std::vector<std::unique_ptr<sequence>>& abandoned() noexcept { return abandoned_; }
  // Sequences whose pause ended by itself in the latest plan. Valid until the next call that changes the
  // scheduler.
  std::span<sequence* const> resumed() const noexcept { return resumed_; }

  // --- Steps ---

  // What a plan did beside its batch.
  struct changes {
    std::uint32_t entered = 0;        // sequences admitted to the batch
    std::uint32_t preemptions = 0;    // sequences that lost their pages
    std::uint32_t prefilling = 0;     // sequences with a prompt to compute
    std::uint64_t prompt_tokens = 0;  // prompt rows chosen, and prompt tokens found in the prefix cache
  };
  // Rows of a plan by kind.
  struct load {
    std::uint32_t decode_rows = 0, prompt_rows = 0;
  };

  // Plans the next step. The batch is empty where no row is due. The reference stays valid; the next plan()
  // overwrites the batch. REQUIRES: no sequence of the batch has ended.
  const batch& plan(time_point now);

  // What the latest plan did.
  const changes& latest() const noexcept { return changes_; }
  // Rows of the latest plan.
  load last_load() const noexcept { return {decode_rows_, prompt_rows_}; }
  // [slices] the sequence of each slice of the latest plan's batch.
  std::span<sequence* const> sequences() const noexcept { return chosen_; }
  // When the earliest row that the latest plan left out falls due; time_point::max() if it left none out.
  time_point next_due() const noexcept { return next_due_; }
  // No later than the end of the first pause that ends by itself; time_point::max(): there is none. It may be
  // the end of a pause that is over.
  time_point next_resume() const noexcept { return next_resume_; }

  // Counts the latest plan's rows as computed, and names the pages that they filled. To be called once a
  // plan, when its forward has been computed or has begun on a device that works in order.
  void computed(time_point now);

  // The copies that wait for a step; the caller makes them in its place.
  std::vector<page_copy> take_copies() { return std::exchange(batch_.copies, {}); }
  // Pages of sequences were moved: page_table::move() for all of them. REQUIRES: no copies wait.
  void move_pages(page_id first, std::span<const page_id> now_at);

  // Tells the budget how long a step with this load took, as prompt_budget::observe().
  void observe(const load& l, duration computed, duration took) noexcept {
    budget_.observe(l.decode_rows, l.prompt_rows, computed, took);
  }
  // Bounds the prompt rows of steps, as prompt_budget::set_company().
  void set_company(duration turn) noexcept { budget_.set_company(turn); }

  // Prompt rows that the budget allowed in the latest step with both prompt rows and decoding sequences.
  std::uint32_t prompt_share() const noexcept { return prompt_share_; }

 private:
  template <class F>
  static void sweep(std::vector<std::unique_ptr<sequence>>& all, F& f) {
    struct tidy {  // also where f throws
      std::vector<std::unique_ptr<sequence>>& all;
      ~tidy() { std::erase(all, nullptr); }
    } at_end{all};
    for (auto& s : all) f(s);
  }

  // The parts of a plan.
  void grow();
  void admit(time_point now);
  void share();
  void choose(time_point now);

  using rest_position = std::vector<std::unique_ptr<sequence>>::iterator;
  // Ends the pauses whose time is over.
  void end_pauses(time_point now);
  // The sequence whose turn it is to return, blocked_ left out; the end of resting_: there is none.
  rest_position next_to_return();
  // Whether `back` enters before the waiting sequence at `at`. Either may be the end.
  bool returns_first(rest_position back, waiting_line::position at);
  // Lets a sequence return to the batch. False: it finds no room, and may have lost its pages.
  bool bring_back(rest_position back, time_point now);
  // Preempts the sequence with pages that rests and gives way first. False: none has pages.
  bool preempt_resting();

  // Takes the pages that a waiting sequence needs, cached ones first. Returns false and changes nothing if
  // the pool has not enough.
  bool take_room(sequence& s);
  // Puts a sequence that has room into the batch.
  void enter(std::unique_ptr<sequence> s, time_point now);
  // Most prompt rows of the step that is planned. REQUIRES: prompts_ is in the order of service.
  std::uint32_t prompt_rows_allowed(std::uint32_t decoding, time_point now);
  // Adds the next `rows` rows of a sequence to the batch, or notes in next_due_ when they fall due.
  void add_rows(sequence& s, std::uint32_t rows, time_point now);
  // Asks for the logits of those rows of the slice that are still to be scored.
  void add_scored(const sequence& s, batch_slice& slice);
  // Whether these rows may not be computed yet; if so, notes in next_due_ when they may.
  bool too_early(const sequence& s, std::uint32_t rows, time_point now);

  // What decides whether a sequence can enter. None can while it equals `seen_`.
  struct outlook {
    std::uint64_t releases = 0, arrivals = 0, resumes = 0;
    std::size_t running = 0;
    bool operator==(const outlook&) const = default;
  };
  outlook look() const { return {pool_.releases(), waiting_.arrivals(), resumes_, running_.size()}; }

  const std::uint32_t max_batch_;
  page_pool& pool_;
  const model& model_;
  const bool paced_;  // model_info::paced
  prompt_budget budget_;
  const objective slo_;  // of the budget

  waiting_line waiting_;
  std::vector<std::unique_ptr<sequence>> running_;    // in order of admission
  std::vector<std::unique_ptr<sequence>> resting_;    // in order of their pauses
  std::vector<sequence*> resumed_;                    // see resumed()
  time_point next_resume_ = time_point::max();        // see next_resume()
  std::uint64_t resumes_ = 0;                         // pauses that are over, so far
  std::uint64_t last_key_ = 0;                        // of the sequence that returned last
  bool line_is_next_ = false;                         // the last to enter had returned
  std::vector<std::unique_ptr<sequence>> abandoned_;  // see abandoned()
  std::uint64_t admissions_ = 0;                      // so far
  outlook seen_;                                      // as the last admit() left it

  batch batch_;
  std::vector<sequence*> chosen_;      // [slices] see sequences()
  std::vector<sequence*> prompts_;     // sequences with prompt rows to compute, in the order they are served
  std::vector<prompt_demand> demand_;  // prompts_, as budget_ sees them
  std::vector<sequence*> blocked_;     // waiting sequences that the current admit() found no room for
  std::vector<page_name> computing_;   // names of the pages that prompts compute in this step
  changes changes_;                    // of the latest plan
  std::uint32_t decode_rows_ = 0, prompt_rows_ = 0;  // of the latest plan; see load
  std::uint32_t prompt_share_ = 0;                   // see prompt_share()
  std::uint64_t all_prompt_rows_ = 0;                // of all plans
  time_point next_due_{};
};

}  // namespace weir::core
