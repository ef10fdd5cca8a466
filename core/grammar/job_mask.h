// job_mask.h — where one job's text is in its constraint, and which tokens may come next, as packed bits.
//
// Behind each token there is work: the token is followed in the constraint, and the next mask is made. Mostly
// the constraint remembers both, and follow() does the work at once, in less than a microsecond. A place of
// the text that no job has seen can take milliseconds; then follow() returns false, and some other thread
// calls work() while the owner goes on:
//
//   if (!mask->follow(id)) mask->set_posted(helpers.post(mask));  // calls mask->work()
//   …
//   if (mask->ready()) …                        // forced(), at() and allowed() hold
//
// The work also finds the tokens that need no draw, because the text has to go on with them (force.h). They
// come before what allowed() says, and are taken one by one with take_forced().
//
// Thread safety: the owner's thread alone, but for work(). Between a false follow() or begin() and ready(),
// the owner calls ready() and needs_helper() only. The work of a job that is gone is harmless: who does it shares the
// object.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/grammar/cursor.h"
#include "core/grammar/forcing.h"

namespace weir::core::grammar {

class job_mask {
 public:
  enum class place : std::uint8_t {
    open,   // the text goes on: allowed() says how
    over,   // the text is whole, and nothing can follow
    failed  // the constraint has failed: fault() says how
  };

  struct limits {
    std::uint32_t vocab_size = 0;  // of the model: ids from there on are never allowed
    std::uint32_t min_tokens = 0;  // until the text has so many tokens, `endings` may not come
    std::uint32_t max_tokens = 0;   // most tokens of the text
    std::vector<token_id> endings;  // ids that end the text where it may end
    forcing force = forcing::canonical;
    // Forced tokens are drawn nevertheless, each from a mask that allows no other: for jobs that ask for the
    // logprobs of every token.
    bool draw_forced = false;
  };

  static constexpr std::size_t most_forced = 64;  // tokens that are found forced at once

  job_mask(std::shared_ptr<constraint> c, limits l);
  job_mask(const job_mask&) = delete;

  // Makes the mask of the first token, or returns false: work() has to. REQUIRES: not begun.
  bool begin();
  bool begun() const noexcept { return begun_; }
  // Goes on behind a token and makes the next mask, or returns false: work() has to. REQUIRES: ready().
  bool follow(token_id id);
  // Whether the text is whole behind `id`, which is its last token, drawn or forced. Makes no mask, since
  // nothing follows in any case. REQUIRES: ready(), and at() is open or there is a forced token.
  bool whole_behind(token_id id);
  // Does what begin() or follow() left, and then ready() is true. Any thread, once for each false.
  void work() noexcept;

  bool ready() const noexcept { return ready_.load(std::memory_order_acquire); }
  // Whether there is work that no helper has taken so far. The owner's thread alone.
  bool needs_helper() const noexcept { return !ready() && !posted_; }
  void set_posted(bool yes) noexcept { posted_ = yes; }

  // --- REQUIRES: ready() ---

  // The token that the text goes on with before anything else; nullopt: none is forced.
  std::optional<token_id> forced() const noexcept {
    if (limits_.draw_forced || next_forced_ == forced_.size()) return std::nullopt;
    return forced_[next_forced_];
  }
  // The forced token has been written. REQUIRES: forced().
  void take_forced() noexcept { ++next_forced_; }

  // Of the text with all forced tokens.
  place at() const noexcept { return place_; }
  // Bit id % 32 of word id / 32 is set where the token may come; [ceil(vocab_size / 32)] words, not all 0.
  // Holds until the next follow(). REQUIRES: at() is open.
  std::span<const std::uint32_t> allowed() const noexcept { return std::span(allowed_).first(words_); }
  // REQUIRES: at() is failed.
  const error& fault() const noexcept;
  // Tokens of the text so far, with the forced ones.
  std::size_t tokens() const noexcept { return cursor_.tokens(); }

 private:
  // The work where all of it is remembered; false: it is not, and nothing has changed.
  bool work_by_heart();
  void work_afresh();
  // Goes on behind the tokens that are forced, and lists them.
  void find_forced();
  // Goes on behind a forced token; false: it is not allowed, or the model does not have it.
  bool add_forced(token_id id);
  // Goes on behind the first forced token, which was drawn.
  void pass_drawn();
  void remember(token_id id);
  bool all_taken() const noexcept { return next_forced_ == forced_.size(); }
  void write(const token_mask& m);
  void write_one(token_id id);
  void fail(errc code, const std::string& why);

  cursor cursor_;
  const limits limits_;
  std::size_t words_ = 0;               // of allowed()
  std::vector<std::uint32_t> allowed_;  // a tokenizer may know more ids than the model
  std::optional<token_id> next_;  // to be followed by the work
  std::vector<token_id> forced_;  // as the last work found them; all were written before the next work
  std::size_t next_forced_ = 0;   // of forced_: the first that was not written
  std::vector<token_id> recent_;  // the last tokens of the text, `most_before` or more where it has as many
  std::optional<error> fault_;  // none in place `failed`: there was no memory
  place place_ = place::open;
  bool begun_ = false;
  bool posted_ = false;  // helpers have the work that the last begin() or follow() left
  std::atomic<bool> ready_{false};
};

// Threads beside the owner that do the work of masks.
class mask_helpers {
 public:
  virtual ~mask_helpers() = default;
  // Lets some thread call m->work(). False: there is no room now. Does not block.
  virtual bool post(std::shared_ptr<job_mask> m) noexcept = 0;
  // Waits until the work of a mask that was posted is done, or `longest_wait` has passed.
  virtual void finish(job_mask& m) noexcept;

  // Most masks take less. A mask that takes longer must not keep the owner from the jobs that come meanwhile.
  static constexpr std::chrono::milliseconds longest_wait{5};
};

}  // namespace weir::core::grammar
