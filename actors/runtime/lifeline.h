// lifeline.h — knows whether an execution context still lives, and what to let go of when it dies.
//
// Actors, questions and streams reach from one context into another, and either may be destroyed first.
// Each context gets one lifeline (an Asio service, made on first use). Whoever posts to a context from
// outside does it through the lifeline; whatever waits for a handler there is its member and is let go,
// handler unrun, when the context dies: what Asio does with its own pending operations.
//
// Thread safety: every member function from any thread.
//
// Invariants:
//   1. After end() nothing is posted to the context, nobody is enlisted, and no guest holds an executor of
//      it.
//   2. A member leaves exactly once: by claim() or by end(), whichever is first.
//   3. No member is destroyed, and no handler run or destroyed, while the lock is held.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/strand.hpp>
#include <memory>
#include <mutex>
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
    std::shared_ptr<member> self_;  // set while enlisted: the list keeps its members alive
    member* next_ = nullptr;
    member* prev_ = nullptr;
  };

  // An executor kept by something that may outlive its context, which executors must not (a strand's
  // destructor reaches for its service): it is given up in time.
  class guest {
   public:
    // For the executor's own thread; elsewhere while visiting. Empty once the context is gone.
    const boost::asio::any_io_executor& get_executor() const noexcept { return executor_; }
    const std::shared_ptr<lifeline>& line() const noexcept { return line_; }

   protected:
    explicit guest(boost::asio::any_io_executor ex) : executor_(std::move(ex)), line_(of(executor_)) {
      const std::lock_guard lock(line_->mutex_);
      if (!line_->alive_) return;
      next_ = line_->guests_;
      if (next_) next_->prev_ = this;
      line_->guests_ = this;
    }
    guest(const guest&) = delete;
    guest& operator=(const guest&) = delete;
    ~guest() {
      const std::lock_guard lock(line_->mutex_);
      if (line_->guests_ == this) line_->guests_ = next_;
      if (prev_) prev_->next_ = next_;
      if (next_) next_->prev_ = prev_;
    }

   private:
    friend class lifeline;
    boost::asio::any_io_executor executor_;
    const std::shared_ptr<lifeline> line_;
    guest* next_ = nullptr;
    guest* prev_ = nullptr;
  };

  explicit lifeline(const boost::asio::execution_context* context) : context_(context) {}

  // `near`, where given, is the lifeline of an executor that often has the same context: it saves looking
  // it up.
  template <class Executor>
  static std::shared_ptr<lifeline> of(const Executor& ex, const std::shared_ptr<lifeline>& near = nullptr) {
    boost::asio::execution_context& context = boost::asio::query(ex, boost::asio::execution::context);
    if (near && near->context_ == &context && near->alive_) return near;
    // Services die in the reverse order of their birth. The strands' one is made first, so that it outlives
    // ours: posting to a strand whose service is gone destroys handlers on the spot, under our lock.
    if (!boost::asio::has_service<service>(context)) (void)boost::asio::make_strand(ex);
    return boost::asio::use_service<service>(context).line;
  }

  // False where the context is gone already: m was not taken.
  bool enlist(std::shared_ptr<member> m) {
    return visit([&] { enlist_visiting(std::move(m)); });
  }
  // REQUIRES: called from inside visit().
  void enlist_visiting(std::shared_ptr<member> m) {
    member& it = *m;
    it.prev_ = nullptr;
    it.next_ = first_;
    if (first_) first_->prev_ = &it;
    first_ = &it;
    it.self_ = std::move(m);
  }

  // True for the one caller that takes m off the list; `then` runs under the lock, while the context surely
  // lives.
  template <class F>
  bool claim(member& m, F&& then) {
    std::shared_ptr<member> keep;  // released after the lock
    const std::lock_guard lock(mutex_);
    if (!m.self_) return false;
    keep = unlink(m);
    std::forward<F>(then)();
    return true;
  }
  bool claim(member& m) {
    return claim(m, [] {});
  }

  // Runs f (a post to the context, say) while the context surely lives; false where it does not, f not run.
  template <class F>
  bool visit(F&& f) {
    const std::lock_guard lock(mutex_);
    if (!alive_) return false;
    std::forward<F>(f)();
    return true;
  }

 private:
  struct service final : boost::asio::execution_context::service {
    static inline boost::asio::execution_context::id id;
    explicit service(boost::asio::execution_context& c)
        : boost::asio::execution_context::service(c), line(std::make_shared<lifeline>(&c)) {}
    void shutdown() override { line->end(); }
    const std::shared_ptr<lifeline> line;
  };

  void end() {
    while (auto m = next_to_go()) m->let_go_(*m);
    const std::lock_guard lock(mutex_);
    while (guest* g = guests_) {
      guests_ = std::exchange(g->next_, nullptr);
      if (guests_) guests_->prev_ = nullptr;
      g->executor_ = nullptr;
    }
  }

  std::shared_ptr<member> next_to_go() {
    const std::lock_guard lock(mutex_);
    alive_ = false;
    return first_ ? unlink(*first_) : nullptr;
  }

  std::shared_ptr<member> unlink(member& m) {
    (m.prev_ ? m.prev_->next_ : first_) = m.next_;
    if (m.next_) m.next_->prev_ = m.prev_;
    return std::move(m.self_);
  }

  const boost::asio::execution_context* const context_;  // to compare; never followed
  std::mutex mutex_;
  std::atomic<bool> alive_{true};  // written under the lock
  member* first_ = nullptr;
  guest* guests_ = nullptr;
};

}  // namespace weir::detail
