// post_slot.h — memory for one posted function, so that waking somebody allocates nothing.
//
// Asio allocates an operation for each post, and recycles it only within one thread: a thread that posts to
// another would allocate every time. A post_slot sits inside the object that posts and lends its bytes
// instead, on io_context. (A strand would take the bytes twice, and again later, for itself.)
//
// Thread safety: none of its own.
//
// Invariants:
//   1. At most one function posted through a slot is waiting; Asio gives its memory back before the
//      function runs.
//   2. The function owns, directly or not, the object that the slot is in.
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

  // f runs on ex, never inside this call. `alone`: one thread runs ex's context. What it posts to itself then
  // needs no lock; where several do, another one could have begun at once.
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
