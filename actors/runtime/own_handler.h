// own_handler.h — the handler of an operation that is completed only on the executor of its home, such as a
// receive or a read.
//
// The type of the handler is erased. A small handler is stored in this object, and a larger one in a block
// from its associated allocator.
//
// Thread safety: the home's executor only.
//
// Invariants:
//   1. The handler runs at most once, on its associated executor, or on the home's if it has none.
//   2. Its memory is freed before it runs, and also if it is destroyed without being called.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/prefer.hpp>
#include <cstddef>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "home.h"

namespace weir::detail {

// Wraps a handler that runs on another executor than the home's, or that counts as outstanding work.
template <class Handler, class Executor>
class elsewhere {
 public:
  using allocator_type = boost::asio::associated_allocator_t<Handler>;

  elsewhere(Handler h, const Executor& ex)
      : ex_(boost::asio::prefer(ex, boost::asio::execution::outstanding_work.tracked)),
        handler_(std::move(h)) {}

  allocator_type get_allocator() const noexcept { return boost::asio::get_associated_allocator(handler_); }

  template <class... Args>
  void operator()(Args... args) {
    auto ex = std::move(ex_);  // is outstanding work until this call returns
    auto run = [h = std::move(handler_), all = std::tuple<Args...>(std::move(args)...)]() mutable {
      std::apply(std::move(h), std::move(all));
    };
    boost::asio::dispatch(ex, boost::asio::bind_allocator(get_allocator(), std::move(run)));
  }

 private:
  tracked<Executor> ex_;
  Handler handler_;
};

template <class... Args>
class own_handler {
 public:
  own_handler() = default;
  own_handler(const own_handler&) = delete;
  own_handler& operator=(const own_handler&) = delete;
  ~own_handler() { drop(); }

  explicit operator bool() const noexcept { return act_ != nullptr; }

  // Stores a handler. `counts`: whether the handler counts as outstanding work; false where a waiting
  // coroutine is outstanding work already. REQUIRES: empty.
  template <class Handler>
  void set(Handler h, const home& at, bool counts) {
    using executor = boost::asio::associated_executor_t<Handler, boost::asio::any_io_executor>;
    const executor ex = boost::asio::get_associated_executor(h, at.get_executor());
    if (!at.runs(ex)) return keep(elsewhere<Handler, executor>(std::move(h), ex));
    if (!counts) return keep(std::move(h));
    if constexpr (std::is_same_v<executor, boost::asio::any_io_executor>) {
      if (auto* io = ex.template target<io_executor>()) {
        return keep(elsewhere<Handler, io_executor>(std::move(h), *io));
      }
    }
    keep(elsewhere<Handler, executor>(std::move(h), ex));
  }

  // Calls the handler: inside this call if its executor is the home's. The object is empty when the handler
  // runs. REQUIRES: not empty; called on the home's executor.
  void complete(Args... args) {
    std::tuple<Args...> all(std::move(args)...);
    std::exchange(act_, nullptr)(*this, &all);
  }

  // Destroys the handler without calling it.
  void drop() noexcept {
    if (act_) std::exchange(act_, nullptr)(*this, nullptr);
  }

 private:
  using action = void (*)(own_handler&, std::tuple<Args...>*);
  static constexpr std::size_t room = 4 * sizeof(void*);

  template <class Handler>
  void keep(Handler h) {
    using allocator = boost::asio::associated_allocator_t<Handler>;
    constexpr bool fits = sizeof(Handler) <= room && alignof(Handler) <= alignof(void*);
    if constexpr (fits && std::is_same_v<allocator, std::allocator<void>>) {
      new (bytes_) Handler(std::move(h));
      act_ = [](own_handler& self, std::tuple<Args...>* all) {
        auto* kept = std::launder(reinterpret_cast<Handler*>(self.bytes_));
        Handler h(std::move(*kept));
        kept->~Handler();
        if (all) std::apply(std::move(h), std::move(*all));
      };
    } else {
      const allocator from = boost::asio::get_associated_allocator(h);
      keep_in_block(std::move(h), from);
    }
  }

  template <class Handler, class Allocator>
  void keep_in_block(Handler h, const Allocator& from) {
    using allocator = typename std::allocator_traits<Allocator>::template rebind_alloc<Handler>;
    allocator a(from);
    Handler* block = a.allocate(1);
    new (bytes_) Handler*(new (block) Handler(std::move(h)));  // moving handlers must not throw
    act_ = [](own_handler& self, std::tuple<Args...>* all) {
      Handler* block = *std::launder(reinterpret_cast<Handler**>(self.bytes_));
      allocator a(boost::asio::get_associated_allocator(*block));
      Handler h(std::move(*block));
      block->~Handler();
      a.deallocate(block, 1);
      if (all) std::apply(std::move(h), std::move(*all));
    };
  }

  action act_ = nullptr;
  alignas(void*) std::byte bytes_[room];
};

}  // namespace weir::detail
