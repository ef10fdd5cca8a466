// post_slot.h — memory for one posted function, so that waking somebody allocates nothing.
//
// Asio allocates an operation for each post, and recycles it only within one thread: a thread that posts to
// another would allocate every time. A post_slot sits inside the object that posts and lends its bytes
// instead, on io_context and on strands of one; on other executors the post is an ordinary one.
//
// Thread safety: none of its own.
//
// Invariants:
//   1. At most one function posted through a slot is waiting; Asio gives its memory back before the function
//   runs.
//   2. The function owns, directly or not, the object that the slot is in.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/strand.hpp>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace weir::detail {

class post_slot {
 public:
  post_slot() = default;
  post_slot(const post_slot&) = delete;
  post_slot& operator=(const post_slot&) = delete;

  // f runs on ex, never inside this call.
  template <class Executor, class F>
  void post(const Executor& ex, F f) {
    using io = boost::asio::io_context::executor_type;
    if constexpr (!std::is_same_v<Executor, boost::asio::any_io_executor>) {
      post_typed(ex, std::move(f));
    } else if (auto* plain = ex.template target<io>()) {
      post_typed(*plain, std::move(f));
    } else if (auto* counted = ex.template target<tracked<io>>()) {
      post_typed(boost::asio::prefer(*counted, boost::asio::execution::outstanding_work.untracked),
                 std::move(f));
    } else if (auto* strand = ex.template target<boost::asio::strand<io>>()) {
      post_typed(*strand, std::move(f));
    } else {
      boost::asio::post(ex, std::move(f));
    }
  }

  // The executor that counts as outstanding work on its context while it exists.
  template <class Executor>
  using tracked = std::decay_t<typename boost::asio::prefer_result<
      Executor, boost::asio::execution::outstanding_work_t::tracked_t>::type>;

 private:
  template <class T>
  struct allocator {
    using value_type = T;
    explicit allocator(post_slot* slot) noexcept : slot_(slot) {}
    template <class U>
    allocator(const allocator<U>& other) noexcept : slot_(other.slot_) {}
    T* allocate(std::size_t n) {
      const bool fits = n * sizeof(T) <= sizeof slot_->bytes_ && alignof(T) <= alignof(std::max_align_t);
      return static_cast<T*>(fits ? static_cast<void*>(slot_->bytes_) : ::operator new(n * sizeof(T)));
    }
    void deallocate(T* p, std::size_t) noexcept {
      if (static_cast<void*>(p) != slot_->bytes_) ::operator delete(p);
    }
    friend bool operator==(allocator a, allocator b) noexcept { return a.slot_ == b.slot_; }
    post_slot* slot_;
  };

  template <class Executor, class F>
  void post_typed(const Executor& ex, F f) {
    namespace execution = boost::asio::execution;
    boost::asio::prefer(boost::asio::require(ex, execution::blocking.never),
                        execution::allocator(allocator<void>(this)))
        .execute(std::move(f));
  }

  alignas(std::max_align_t) std::byte bytes_[64];
};

}  // namespace weir::detail
