// completion.h — a completion handler whose type is forgotten: what an operation keeps until it ends.
//
// It holds the handler, its arguments once they are known, outstanding work on the handler's executor, and
// the memory to post itself; all in one block from the handler's associated allocator. (Asio 1.26's
// any_completion_handler cannot be assigned to, and posting one allocates.)
//
// Thread safety: none of its own.
//
// Invariants:
//   1. The handler runs at most once, on its associated executor (the actor's where it has none).
//   2. Its memory is given back before it runs, and also where it is destroyed unrun.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "post_slot.h"

namespace weir::detail {

// Where a handler runs, and how it gets there.
enum class waits { for_own_mail, for_others };

template <class Executor, waits Kind>
struct place {
  explicit place(const Executor& e)
      : ex(boost::asio::prefer(e, boost::asio::execution::outstanding_work.tracked)) {}
  template <class F>
  void post(F f) {
    slot.post(ex, std::move(f));
  }
  template <class F>
  void dispatch(F f) {
    boost::asio::dispatch(ex, std::move(f));
  }
  post_slot::tracked<Executor> ex;
  post_slot slot;
};

// The coroutine that waits counts as work itself.
template <class Executor>
struct place<Executor, waits::for_own_mail> {
  explicit place(const Executor& e) : ex(e) {}
  template <class F>
  void post(F f) {
    boost::asio::post(ex, std::move(f));
  }
  template <class F>
  void dispatch(F f) {
    boost::asio::dispatch(ex, std::move(f));
  }
  Executor ex;
};

template <waits Kind, class... Args>
class completion {
 public:
  completion() = default;
  template <class Handler>
  requires(!std::is_same_v<std::decay_t<Handler>, completion>)
      completion(Handler&& handler, const boost::asio::any_io_executor& fallback)
      : node_(block<std::decay_t<Handler>>::make(std::forward<Handler>(handler), fallback)) {}
  completion(completion&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  completion& operator=(completion&& other) noexcept {
    completion old(std::move(*this));
    node_ = std::exchange(other.node_, nullptr);
    return *this;
  }
  ~completion() {
    if (node_) node_->act(node_, drop);
  }

  explicit operator bool() const noexcept { return node_ != nullptr; }

  // Runs the handler soon, never inside this call. REQUIRES: not empty; afterwards it is.
  void post(Args... args) { go(enqueue, std::move(args)...); }
  // Runs the handler inside this call where the caller is on its executor already, else as post.
  void dispatch(Args... args) { go(run_here, std::move(args)...); }

 private:
  enum action { enqueue, run_here, run, drop };
  struct node {
    void (*act)(node*, action);
    std::optional<std::tuple<Args...>> args;
  };

  template <class Handler>
  struct block final : node {
    using executor = boost::asio::associated_executor_t<Handler, boost::asio::any_io_executor>;
    using allocator = typename std::allocator_traits<
        boost::asio::associated_allocator_t<Handler>>::template rebind_alloc<block>;

    // What is posted: the block's owner on its way to the executor.
    struct runner {
      using allocator_type = boost::asio::associated_allocator_t<Handler>;
      explicit runner(block* b) noexcept : b_(b) {}
      runner(runner&& other) noexcept : b_(std::exchange(other.b_, nullptr)) {}
      ~runner() {
        if (b_) b_->act(b_, drop);
      }
      allocator_type get_allocator() const noexcept {
        return boost::asio::get_associated_allocator(b_->handler);
      }
      void operator()() {
        block* b = std::exchange(b_, nullptr);
        b->act(b, run);
      }
      block* b_;
    };

    static node* make(Handler handler, const boost::asio::any_io_executor& fallback) {
      allocator a(boost::asio::get_associated_allocator(handler));
      struct memory {
        allocator& a;
        block* p;
        ~memory() {
          if (p) a.deallocate(p, 1);
        }
      } raw{a, a.allocate(1)};
      block* b = new (raw.p) block(std::move(handler), fallback);
      raw.p = nullptr;
      return b;
    }

    block(Handler&& h, const boost::asio::any_io_executor& fallback)
        : where(boost::asio::get_associated_executor(h, fallback)), handler(std::move(h)) {
      this->act = &block::perform;
    }

    static void perform(node* n, action what) {
      auto* self = static_cast<block*>(n);
      switch (what) {
        case enqueue:
          return self->where.post(runner(self));
        case run_here:
          return self->where.dispatch(runner(self));
        case run: {
          auto args = std::move(*self->args);
          Handler h = take(self);
          return std::apply(std::move(h), std::move(args));
        }
        case drop:
          (void)take(self);
      }
    }

    // The handler, moved out of its block, which is freed.
    static Handler take(block* self) {
      allocator a(boost::asio::get_associated_allocator(self->handler));
      Handler h(std::move(self->handler));
      self->~block();
      a.deallocate(self, 1);
      return h;
    }

    place<executor, Kind> where;
    Handler handler;
  };

  void go(action how, Args... args) {
    node* n = std::exchange(node_, nullptr);
    n->args.emplace(std::move(args)...);
    n->act(n, how);
  }

  node* node_ = nullptr;
};

}  // namespace weir::detail
