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
// The work also finds forced tokens: tokens that need no draw, because the text has to go on with them
// (forced_tokens.h). They stand before the token that allowed() is for, and are taken one by one with
// take_forced().
//
// Thread safety: the owner's thread only, except for work(). Between a false follow() or begin() and a true
// ready(), the owner calls only begun(), ready(), needs_helper() and set_posted(). A helper may still do the
// work of a job that has ended, because the helper shares the object.
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
#include "core/healing.h"
#include "core/token_set.h"

namespace weir::core::grammar {

class job_mask {
 public:
  enum class place : std::uint8_t {
    open,   // the text goes on: allowed() says how
    over,   // nothing can follow: the text is whole, or has `max_tokens`
    failed  // the constraint has failed: fault() says how
  };

  struct limits {
    std::uint32_t vocab_size = 0;  // of the model: ids from there on are never allowed
    std::uint32_t min_tokens = 0;  // before the text has this many tokens, `endings` are not allowed
    std::uint32_t max_tokens = 0;  // most tokens of the text, behind which no mask is made; 0: no bound
    token_set endings;             // ids that end the text where it may end
    forcing force = forcing::canonical;
    bool goes_back = false;  // go_back() may be called
    // The first token begins with these bytes, which the text does not have. Null: nothing of the kind.
    std::shared_ptr<const core::healing> healing;
    // Forced tokens are drawn too, each from a mask that allows only this token: for jobs that ask for the
    // logprobs of every token.
    bool draw_forced = false;
  };

  static constexpr std::size_t most_forced = 64;  // most forced tokens that one work finds

  job_mask(std::shared_ptr<constraint> c, limits l);
  job_mask(const job_mask&) = delete;

  // Makes the mask of the first token. False: work() must be called to make it. `spoken`: the text begins
  // with these tokens, which the work adds as if each had been drawn or forced here; at() is failed where one
  // cannot have been, or the text is over behind them. REQUIRES: not begun(); `spoken` has fewer tokens than
  // limits::max_tokens.
  bool begin(std::vector<token_id> spoken = {});
  bool begun() const noexcept { return begun_; }
  // Adds a token to the text and makes the next mask. False: work() must be called for both. REQUIRES:
  // ready(), and at() is open.
  bool follow(token_id id);
  // Takes the last tokens of the text back: `kept` are left. Makes the mask of the token behind them. False:
  // work() must be called to make it. REQUIRES: ready(); limits::goes_back.
  bool go_back(std::span<const token> kept);
  // Whether token `place` of the text was forced, or the token is one that is forced and not taken. REQUIRES:
  // ready(); limits::goes_back.
  bool was_forced(std::size_t place) const noexcept {
    return place < forced_places_.size() && forced_places_[place];
  }
  // Whether the text is whole behind `id`, which is its last token, drawn or forced. nullopt: the constraint
  // does not remember the place behind a drawn token. Then call follow(), and whole() once ready(). REQUIRES:
  // ready(), and at() is open or there is a forced token.
  std::optional<bool> whole_behind(token_id id) const;
  // Does the work that begin() or follow() left; then ready() is true. Any thread, once for each false.
  void work() noexcept;

  bool ready() const noexcept { return ready_.load(std::memory_order_acquire); }
  // Whether there is work that was not posted to the helpers. The owner's thread only.
  bool needs_helper() const noexcept { return !ready() && !posted_; }
  void set_posted(bool yes) noexcept { posted_ = yes; }

  // --- REQUIRES: ready() ---

  // The next forced token that was not taken; nullopt: none, or limits::draw_forced is set.
  std::optional<token_id> forced() const noexcept {
    if (limits_.draw_forced || next_forced_ == forced_.size()) return std::nullopt;
    return forced_[next_forced_];
  }
  // The forced token has been written. REQUIRES: forced().
  void take_forced() noexcept { ++next_forced_; }

  // The place of the text behind all forced tokens.
  place at() const noexcept { return place_; }
  // Bit id % 32 of word id / 32 is set where the token may come; [ceil(vocab_size / 32)] words, not all 0.
  // Holds until the next follow(). REQUIRES: at() is open.
  std::span<const std::uint32_t> allowed() const noexcept { return std::span(allowed_).first(words_); }
  // Whether the text is whole and nothing can follow, not even a forced token.
  bool whole() const noexcept { return all_taken() && cursor_.must_end(); }
  // REQUIRES: at() is failed.
  const error& fault() const noexcept;
  // Number of tokens of the text so far, the forced ones included.
  std::size_t tokens() const noexcept { return cursor_.tokens(); }

 private:
  // Does the work if the constraint remembers all of it. False: it does not, and nothing has changed.
  bool work_by_heart();
  void work_afresh();
  // Adds the tokens of `spoken_`. False: the text has failed there.
  bool replay();
  // Whether the next token is the first, and begins with bytes that the text does not have.
  bool heals() const noexcept { return limits_.healing && tokens() == 0; }
  // Moves the cursor behind a token. False: as cursor::accept().
  bool pass(token_id id);
  // The parse behind `id` as the first token of a healed prompt; constraint::dead: it is not allowed there.
  // REQUIRES: heals().
  parse_id behind_healed(token_id id);
  // Writes the mask of the first token of a healed prompt. REQUIRES: heals().
  void write_healed();
  // Makes the mask of the cursor's place, or of the first forced token that was not taken.
  void make_mask();
  bool is_early() const noexcept { return tokens() < limits_.min_tokens; }
  bool is_last() const noexcept { return limits_.max_tokens > 0 && tokens() >= limits_.max_tokens; }
  // Ends a text that has all its tokens: nothing is forced or allowed.
  void end();
  // Lists the forced tokens and moves the cursor behind them.
  void find_forced();
  // Adds one forced token. False: the token is not allowed, or the model does not have it, or it ends the
  // text, and comes too early for that.
  bool add_forced(token_id id);
  // Passes a forced token that was drawn, and makes the mask of the token behind it.
  void pass_drawn();
  // The cursor has passed a token.
  void remember(token_id id, bool forced);
  bool all_taken() const noexcept { return next_forced_ == forced_.size(); }
  void write(const token_mask& m);
  void write_one(token_id id);
  void fail(errc code, const std::string& why);
  void fail(error why);

  cursor cursor_;
  const limits limits_;
  std::size_t words_ = 0;               // of allowed()
  std::vector<std::uint32_t> allowed_;  // a tokenizer may know more ids than the model
  std::optional<token_id> next_;        // the token that the work has to add
  std::vector<token_id> spoken_;        // tokens that the first work has to add
  std::vector<token_id> forced_;        // found by the last work; all are taken before the next work
  std::size_t next_forced_ = 0;         // index in forced_ of the first token that was not taken
  std::vector<token_id> recent_;  // the last tokens of the text, at least `most_before` if it has that many
  std::vector<bool> forced_places_;  // [tokens()] if limits::goes_back and something may be forced
  std::optional<error> fault_;    // unset in place `failed`: host memory was short
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
  // Takes the mask of a job that has ended, to destroy it: with it goes the constraint, where nobody else has
  // it, and that of millions of parts takes 50 ms. Does not block.
  virtual void discard(std::shared_ptr<job_mask> m) noexcept { m.reset(); }

  // Most masks take less. A mask that takes longer must not keep the owner from the jobs that come meanwhile.
  static constexpr std::chrono::milliseconds longest_wait{5};
};

}  // namespace weir::core::grammar
