// lifeline.h — tracks whether an execution context still exists, and releases what waits for it when it is
// destroyed.
//
// Actors, questions and streams connect two contexts, and either of the two may be destroyed first. Each
// context has one lifeline, an Asio service that is made on first use. Code outside of the context posts to
// it during a `visit` only. An operation that waits for a handler on the context is a `member`. When the
// context is destroyed, its members are released and their handlers are destroyed without being called. Asio
// does the same with its own pending operations.
//
// Thread safety: every member function from any thread.
//
// Invariants:
//   1. The context exists during every visit. After end() nothing is posted to it, it has no members, and no
//      executor_holder has an executor of it.
//   2. A member leaves exactly once: by withdraw() or by end(), whichever comes first. A ticket names one
//      member only, even if a later member gets the same place.
//   3. While the lock is held, no member is released and nothing is posted.
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
  // An object that is released when the context is destroyed, by a call of `let_go`.
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

  // Names a member.
  struct ticket {
    std::uint64_t number = 0;  // unique among all members of the lifeline; 0: no member
    std::uint32_t place = 0;   // index in places_
  };

  // Exists while a handler runs on the context. The context then exists too, so that visits in the handler
  // cost nothing.
  class stay {
   public:
    explicit stay(const lifeline& l) noexcept : before_(std::exchange(here_, &l)) {}
    stay(const stay&) = delete;
    stay& operator=(const stay&) = delete;
    ~stay() { here_ = before_; }

   private:
    const lifeline* const before_;
  };

  // Keeps the context from being destroyed while this object exists. Converts to false if the context is
  // destroyed already.
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

  // An object with an executor that must not outlive its context. The lifeline resets the executor when the
  // context is destroyed.
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

  // The lifeline of an executor's context. `near`: a lifeline that often is the same, which saves the
  // look-up; null: none.
  template <class Executor>
  static std::shared_ptr<lifeline> of(const Executor& ex, const std::shared_ptr<lifeline>& near = nullptr) {
    boost::asio::execution_context& context = boost::asio::query(ex, boost::asio::execution::context);
    if (near && near->serves(context)) return near;
    return boost::asio::use_service<service>(context).line;
  }
  bool serves(const boost::asio::execution_context& c) const noexcept {
    return context_ == &c && !(state_.load() & gone);
  }

  // Adds a member. It is released when the context is destroyed, unless it is withdrawn before. REQUIRES: a
  // visit.
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

  // Removes a member and returns it; null if it has left already.
  member* withdraw(const ticket& t) noexcept {
    const std::lock_guard lock(mutex_);
    if (t.number == 0 || places_[t.place].number != t.number) return nullptr;
    return vacate(t.place);
  }

  // Returns false if the context is destroyed already.
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

  // The part of an executor that a strand needs to be constructed.
  struct of_context {
    boost::asio::execution_context* context;
    boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept {
      return *context;
    }
    template <class F>
    void execute(F&&) const {}
    friend bool operator==(const of_context&, const of_context&) = default;
  };

  // Services are destroyed in the reverse order of their construction. This one makes sure that the service
  // of strands is constructed before itself and so outlives it: posting to a strand whose service is
  // destroyed would destroy the handler at once.
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
    while (state_.load() != gone) std::this_thread::yield();  // a visit is short: one post
    for (std::uint32_t i = 0; i < places_.size(); ++i) {      // places_ does not grow any more
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

  // Lifeline of the `stay` that this thread is in; compared only, never dereferenced.
  static inline thread_local const lifeline* here_ = nullptr;

  const boost::asio::execution_context* const context_;  // compared only, never dereferenced
  std::atomic<std::uint32_t> state_{0};                  // `gone`, and `visitor` times the open visits
  std::mutex mutex_;                                     // guards the members below
  std::deque<place> places_;
  std::uint32_t free_ = none;
  std::uint64_t last_number_ = 0;
  executor_holder* holders_ = nullptr;
};

}  // namespace weir::detail
