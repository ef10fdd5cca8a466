// post_slot.h — memory for one posted function, so that a wake does not allocate.
//
// Asio allocates an operation for each post, and reuses that memory only in the same thread, so a thread that
// posts to another would allocate every time. A post_slot is a member of the object that posts, and Asio uses
// its bytes instead. It serves io_context only: a strand would need the bytes twice, and again later.
//
// Thread safety: one thread at a time.
//
// Invariants:
//   1. At most one function that was posted through a slot is waiting. Asio frees its memory before the
//      function runs.
//   2. The function owns, directly or not, the object that contains the slot.
#pragma once

#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/require.hpp>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace weir::detail {

using io_executor = boost::asio::io_context::executor_type;

// The executor that counts as outstanding work on its context while it exists.
template <class Executor>
using tracked = std::decay_t<typename boost::asio::prefer_result<
    Executor, boost::asio::execution::outstanding_work_t::tracked_t>::type>;

class post_slot {
 public:
  post_slot() = default;
  post_slot(const post_slot&) = delete;
  post_slot& operator=(const post_slot&) = delete;

  // Runs f on ex, never inside this call. `alone`: one thread runs the context of ex. What that thread posts
  // to itself then needs no lock. With several threads this would be wrong: f would wait although another
  // thread is free.
  template <class F>
  void post(const io_executor& ex, F f, bool alone) {
    namespace execution = boost::asio::execution;
    const auto from_here = boost::asio::prefer(boost::asio::require(ex, execution::blocking.never),
                                               execution::allocator(allocator<void>(this)));
    if (alone) {
      boost::asio::prefer(from_here, execution::relationship.continuation).execute(std::move(f));
    } else {
      from_here.execute(std::move(f));
    }
  }

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

  alignas(std::max_align_t) std::byte bytes_[64];
};

}  // namespace weir::detail
