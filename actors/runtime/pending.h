// pending.h — an operation whose end comes from elsewhere: a question in another actor's mailbox, a wait for
// an exit.
//
// Three parties may want to end it: whoever answers, the asker's cancellation slot, and the death of the
// asker's context. The lifeline of that context decides which of them does.
//
// Thread safety: complete() from any thread.
//
// Invariant: the handler runs at most once; never, where its context died first.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <utility>

#include "completion.h"
#include "lifeline.h"

namespace weir::detail {

template <class... Values>
class pending final : public lifeline::member {
 public:
  using error_code = boost::system::error_code;

  template <class Handler>
  static std::shared_ptr<pending> start(Handler&& handler, const boost::asio::any_io_executor& fallback,
                                        const std::shared_ptr<lifeline>& near) {
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    auto line = lifeline::of(boost::asio::get_associated_executor(handler, fallback), near);
    completion<waits::for_others, error_code, Values...> done(std::forward<Handler>(handler), fallback);
    auto p = std::make_shared<pending>(std::move(line), std::move(done));
    p->line_->enlist(p);
    if (slot.is_connected()) {
      slot.assign([weak = std::weak_ptr(p)](boost::asio::cancellation_type type) {
        auto p = type == boost::asio::cancellation_type::none ? nullptr : weak.lock();
        if (p) p->fail(boost::asio::error::operation_aborted);
      });
    }
    return p;
  }

  pending(std::shared_ptr<lifeline> line, completion<waits::for_others, error_code, Values...> done)
      : member([](member& m) { static_cast<pending&>(m).let_go(); }),
        line_(std::move(line)),
        done_(std::move(done)) {}

  // False where it has ended already.
  bool complete(error_code ec, Values... values) {
    return line_->claim(*this, [&] { done_.post(ec, std::move(values)...); });
  }
  // `last` decides, at the last moment, with which error; it runs only where the operation has not ended
  // already.
  template <class F>
  bool complete_with(F&& last) {
    return line_->claim(*this, [&] { done_.post(last(), Values()...); });
  }
  bool fail(error_code ec) { return complete(ec, Values()...); }

 private:
  void let_go() { auto unrun = std::move(done_); }

  const std::shared_ptr<lifeline> line_;
  completion<waits::for_others, error_code, Values...> done_;  // touched by whoever claimed
};

}  // namespace weir::detail
