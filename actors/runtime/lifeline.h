// lifeline.h — knows whether an execution context still lives, and what to let go of when it dies.
//
// Actors, questions and streams reach from one context into another, and either may be destroyed first. Each
// context gets one lifeline (an Asio service, made on first use). Whoever posts to a context from outside
// does it through the lifeline; whatever waits for a handler there is its member and is let go, handler
// unrun, when the context dies: what Asio does with its own pending operations.
//
// Thread safety: every member function from any thread.
//
// Invariants:
//   1. After end() nothing is posted to the context and nobody is enlisted.
//   2. A member leaves exactly once: by claim() or by end(), whichever is first.
//   3. No member is destroyed, and no handler run or destroyed, while the lock is held.
#pragma once

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

  explicit lifeline(const boost::asio::execution_context* context) : context_(context) {}

  // `near`, where given, is the lifeline of an executor that often has the same context: it saves looking it
  // up.
  template <class Executor>
  static std::shared_ptr<lifeline> of(const Executor& ex, const std::shared_ptr<lifeline>& near = nullptr) {
    boost::asio::execution_context& context = boost::asio::query(ex, boost::asio::execution::context);
    if (near && near->context_ == &context) return near;
    // Services die in the reverse order of their birth. The strands' one is made first, so that it outlives
    // ours: posting to a strand whose service is gone destroys handlers on the spot, under our lock.
    if (!boost::asio::has_service<service>(context)) (void)boost::asio::make_strand(ex);
    return boost::asio::use_service<service>(context).line;
  }

  // False where the context is gone already: m was not taken.
  bool enlist(std::shared_ptr<member> m) {
    const std::lock_guard lock(mutex_);
    if (!alive_) return false;
    member& it = *m;
    it.prev_ = nullptr;
    it.next_ = first_;
    if (first_) first_->prev_ = &it;
    first_ = &it;
    it.self_ = std::move(m);
    return true;
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

  // Runs f (a post to the context) while the context surely lives; false where it does not, f not run.
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
    for (;;) {
      std::shared_ptr<member> m;
      {
        const std::lock_guard lock(mutex_);
        alive_ = false;
        if (!first_) return;
        m = unlink(*first_);
      }
      m->let_go_(*m);
    }
  }

  std::shared_ptr<member> unlink(member& m) {
    (m.prev_ ? m.prev_->next_ : first_) = m.next_;
    if (m.next_) m.next_->prev_ = m.prev_;
    return std::move(m.self_);
  }

  const boost::asio::execution_context* const context_;  // to compare; never followed
  std::mutex mutex_;
  bool alive_ = true;
  member* first_ = nullptr;
};

}  // namespace weir::detail
