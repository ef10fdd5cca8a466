// home.h — the executor of an actor or a reader. A home may outlive the executor's context.
//
// Nearly every actor runs on a plain io_context. For these, posting needs no virtual call of any_io_executor,
// and the executor is not registered with the lifeline: an executor of a plain io_context may dangle, while
// that of a strand must not.
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

  // Called on the executor's own thread, or on another thread during a visit. Empty once the context is
  // destroyed.
  const boost::asio::any_io_executor& get_executor() const noexcept { return executor_; }
  // Any thread.
  const std::shared_ptr<lifeline>& line() const noexcept { return line_; }
  // Whether the executor is that of an io_context, which one thread runs. Any thread.
  bool plain() const noexcept { return io_ != nullptr; }

  // Runs f on the executor, never inside this call. REQUIRES: a visit.
  template <class F>
  void post(post_slot& slot, F f) const {
    if (io_) return slot.post(*io_, std::move(f), true);
    boost::asio::post(executor_, std::move(f));
  }

  // REQUIRES: a visit to both contexts.
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
  const io_executor* io_ = nullptr;  // the target of executor_, if that is a plain io_context's; else null
};

}  // namespace weir::detail
