// lifeline.h — knows whether an execution context still lives, and what to let go of when it dies.
//
// Actors, questions and streams reach from one context into another, and either may be destroyed first.
// Each context gets one lifeline (an Asio service, made on first use). Whoever posts to a context from
// outside does it during a visit; whatever waits for a handler there is a member and is let go, handler
// unrun, when the context dies: what Asio does with its own pending operations.
//
// Thread safety: every member function from any thread.
//
// Invariants:
//   1. The context outlives every visit. After end() nothing is posted to it, nobody is a member, and no
//      executor_holder holds an executor of it.
//   2. A member leaves exactly once: by withdraw() or by end(), whichever is first. A ticket is good for
//      one stay: a later member at the same place is not taken for the earlier one.
//   3. No member is let go, and nothing is posted, while the lock is held.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/strand.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace weir::detail {

class lifeline {
 public:
  class member {
   protected:
    explicit member(void (*let_go)(member&)) : let_go_(let_go) {}
    member(const member&) = delete;
    member& operator=(const member&) = delete;
    ~member() = default;

   private:
    friend class lifeline;
    void (*let_go_)(member&);
  };

  struct ticket {
    std::uint64_t number = 0;  // number of the member's stay; 0: no member
    std::uint32_t place = 0;
  };

  // Around a handler that runs on the context, which therefore lives: visits from inside are free.
  class stay {
   public:
    explicit stay(const lifeline& l) noexcept : before_(std::exchange(here_, &l)) {}
    stay(const stay&) = delete;
    stay& operator=(const stay&) = delete;
    ~stay() { here_ = before_; }

   private:
    const lifeline* const before_;
  };

  // Keeps the context alive while it is open; says no where it is gone already.
  class visit {
   public:
    explicit visit(lifeline& l) noexcept : stays_(here_ == &l), line_(stays_ || !l.enter() ? nullptr : &l) {}
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() {
      if (line_) line_->leave();
    }
    explicit operator bool() const noexcept { return stays_ || line_; }

   private:
    const bool stays_;
    lifeline* const line_;
  };

  // An executor that may not outlive its context, though who holds it does: it is given up in time.
  class executor_holder {
   protected:
    executor_holder() = default;
    executor_holder(const executor_holder&) = delete;
    executor_holder& operator=(const executor_holder&) = delete;
    ~executor_holder() = default;
    boost::asio::any_io_executor executor_;

   private:
    friend class lifeline;
    executor_holder* next_ = nullptr;
    executor_holder* prev_ = nullptr;
  };

  explicit lifeline(const boost::asio::execution_context* context) : context_(context) {}

  // `near`, where given, is the lifeline of an executor that often has the same context: it saves looking it
  // up.
  template <class Executor>
  static std::shared_ptr<lifeline> of(const Executor& ex, const std::shared_ptr<lifeline>& near = nullptr) {
    boost::asio::execution_context& context = boost::asio::query(ex, boost::asio::execution::context);
    if (near && near->serves(context)) return near;
    return boost::asio::use_service<service>(context).line;
  }
  bool serves(const boost::asio::execution_context& c) const noexcept {
    return context_ == &c && !(state_.load() & gone);
  }

  // REQUIRES: a visit. m is let go at the context's end, unless it withdraws before.
  ticket enroll(member& m) {
    const std::lock_guard lock(mutex_);
    if (free_ == none) {
      free_ = static_cast<std::uint32_t>(places_.size());
      places_.emplace_back();
    }
    const std::uint32_t here = free_;
    place& p = places_[here];
    free_ = p.next_free;
    p.who = &m;
    p.number = ++last_number_;
    return {p.number, here};
  }

  // The member, to the one caller that takes it off; nothing to everybody else.
  member* withdraw(const ticket& t) noexcept {
    const std::lock_guard lock(mutex_);
    if (t.number == 0 || places_[t.place].number != t.number) return nullptr;
    return vacate(t.place);
  }

  // False where the context is gone already.
  bool add(executor_holder& h) {
    const visit open(*this);
    if (!open) return false;
    const std::lock_guard lock(mutex_);
    h.next_ = holders_;
    if (h.next_) h.next_->prev_ = &h;
    holders_ = &h;
    return true;
  }
  void remove(executor_holder& h) noexcept {
    const std::lock_guard lock(mutex_);
    if (holders_ == &h) holders_ = h.next_;
    if (h.prev_) h.prev_->next_ = h.next_;
    if (h.next_) h.next_->prev_ = h.prev_;
  }

 private:
  static constexpr std::uint32_t gone = 1, visitor = 2;  // the bits of state_
  static constexpr std::uint32_t none = ~std::uint32_t(0);

  struct place {
    member* who = nullptr;
    std::uint64_t number = 0;
    std::uint32_t next_free = none;
  };

  // Just enough of an executor for a strand to be made of it.
  struct of_context {
    boost::asio::execution_context* context;
    boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept {
      return *context;
    }
    template <class F>
    void execute(F&&) const {}
    friend bool operator==(const of_context&, const of_context&) = default;
  };

  // Services die in the reverse order of their birth. The strands' one is made first, so that it outlives
  // ours: posting to a strand whose service is gone would destroy handlers on the spot.
  struct service final : boost::asio::execution_context::service {
    static inline boost::asio::execution_context::id id;
    explicit service(boost::asio::execution_context& c)
        : boost::asio::execution_context::service(c), line(std::make_shared<lifeline>(&c)) {
      (void)boost::asio::strand<of_context>(of_context{&c});
    }
    void shutdown() override { line->end(); }
    const std::shared_ptr<lifeline> line;
  };

  bool enter() noexcept {
    if (!(state_.fetch_add(visitor) & gone)) return true;
    leave();
    return false;
  }
  void leave() noexcept { state_.fetch_sub(visitor); }

  void end() {
    state_.fetch_or(gone);
    while (state_.load() != gone) std::this_thread::yield();  // visits are short: one post
    for (std::uint32_t i = 0; i < places_.size(); ++i) {      // grows no more
      if (member* m = next_to_go(i)) m->let_go_(*m);
    }
    const std::lock_guard lock(mutex_);
    while (executor_holder* h = holders_) {
      holders_ = std::exchange(h->next_, nullptr);
      if (holders_) holders_->prev_ = nullptr;
      h->executor_ = nullptr;
    }
  }

  member* next_to_go(std::uint32_t at) {
    const std::lock_guard lock(mutex_);
    return places_[at].number ? vacate(at) : nullptr;
  }

  member* vacate(std::uint32_t at) noexcept {
    place& p = places_[at];
    p.number = 0;
    p.next_free = std::exchange(free_, at);
    return std::exchange(p.who, nullptr);
  }

  static inline thread_local const lifeline* here_ = nullptr;  // where this thread stays; only compared

  const boost::asio::execution_context* const context_;  // to compare; never followed
  std::atomic<std::uint32_t> state_{0};
  std::mutex mutex_;  // guards the rest
  std::deque<place> places_;
  std::uint32_t free_ = none;
  std::uint64_t last_number_ = 0;
  executor_holder* holders_ = nullptr;
};

}  // namespace weir::detail
