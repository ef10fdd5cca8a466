// saved_handler.hpp — a completion handler with its type erased. The engine and the server keep one until an
// operation ends.
//
// Thread safety: one thread at a time.
//
// Invariant: the handler runs at most once, on its associated executor, or on the fallback if it has none. It
// is outstanding work there until then. It never runs inside the call that completes it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <memory>
#include <utility>

namespace weir::detail {

template <class... Args>
class saved_handler {
 public:
  saved_handler() = default;
  template <class Handler>
  saved_handler(Handler h, const boost::asio::any_io_executor& fallback)
      : held_(std::make_unique<holder<Handler>>(std::move(h), fallback)) {}

  explicit operator bool() const noexcept { return held_ != nullptr; }

  // Posts the handler and becomes empty. REQUIRES: not empty.
  void post(Args... args) { std::exchange(held_, nullptr)->post(std::move(args)...); }

 private:
  struct base {
    virtual ~base() = default;
    virtual void post(Args... args) = 0;
  };

  template <class Handler>
  struct holder final : base {
    using executor = boost::asio::associated_executor_t<Handler, boost::asio::any_io_executor>;
    holder(Handler h, const boost::asio::any_io_executor& fallback)
        : ex(boost::asio::get_associated_executor(h, fallback)),
          work(boost::asio::prefer(ex, boost::asio::execution::outstanding_work.tracked)),
          handler(std::move(h)) {}

    void post(Args... args) override {
      auto run = boost::asio::append(std::move(handler), std::move(args)...);
      boost::asio::post(ex, boost::asio::bind_executor(ex, std::move(run)));
    }

    executor ex;
    decltype(boost::asio::prefer(std::declval<const executor&>(),
                                 boost::asio::execution::outstanding_work.tracked)) work;
    Handler handler;
  };

  std::unique_ptr<base> held_;
};

}  // namespace weir::detail
