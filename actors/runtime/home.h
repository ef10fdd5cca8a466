// home.h — the executor that something lives on, kept safely beyond its context, and the quick ways there.
//
// Nearly every actor lives on a plain io_context; for that kind the virtual calls of any_io_executor, and its
// registration with the lifeline (a bare io_context executor may dangle, a strand may not), are spared.
//
// Thread safety: as each member says.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <type_traits>
#include <utility>

#include "lifeline.h"
#include "post_slot.h"

namespace weir::detail {

class home final : private lifeline::executor_holder {
 public:
  explicit home(boost::asio::any_io_executor ex) : line_(lifeline::of(ex)) {
    executor_ = std::move(ex);
    io_ = executor_.target<io_executor>();
    if (!io_ && !line_->add(*this)) executor_ = nullptr;
  }
  ~home() {
    if (!io_) line_->remove(*this);
  }

  // For the executor's own thread; elsewhere during a visit. Empty once the context is gone.
  const boost::asio::any_io_executor& get_executor() const noexcept { return executor_; }
  // Any thread.
  const std::shared_ptr<lifeline>& line() const noexcept { return line_; }
  bool plain() const noexcept { return io_ != nullptr; }  // an io_context's, run by one thread

  // REQUIRES: a visit. f runs here, never inside this call.
  template <class F>
  void post(post_slot& slot, F f) const {
    if (io_) return slot.post(*io_, std::move(f), true);
    boost::asio::post(executor_, std::move(f));
  }

  // During a visit to both.
  friend bool operator==(const home& a, const home& b) noexcept {
    return a.line_ == b.line_ && (a.io_ ? b.io_ != nullptr : !b.io_ && a.executor_ == b.executor_);
  }
  template <class Executor>
  bool runs(const Executor& ex) const noexcept {
    if constexpr (std::is_same_v<Executor, boost::asio::any_io_executor>) {
      return ex == executor_;
    } else if constexpr (std::is_same_v<Executor, io_executor>) {
      return io_ && ex == *io_;
    } else {
      return false;
    }
  }

 private:
  const std::shared_ptr<lifeline> line_;
  const io_executor* io_ = nullptr;  // into executor_, where it is a plain io_context's
};

}  // namespace weir::detail
