// pending.h — an operation that another actor completes: a question to that actor, or a wait for room in its
// mailbox or for its end.
//
// Three events can end the operation: the answer, a cancellation by the asker, and the destruction of the
// asker's context. The lifeline of that context lets exactly one of them end it. The operation is one block
// from the handler's associated allocator. The block has the handler, its arguments once they are known,
// outstanding work, and the memory for one post. A `pending` refers to the operation by a ticket of the
// lifeline.
//
// Thread safety: a `pending` is used by one thread at a time; that may be any thread.
//
// Invariants:
//   1. The handler runs at most once, on its associated executor, or on the home's if it has none. It does
//      not run if its context is destroyed first.
//   2. The block is freed before the handler runs, and also if the handler is destroyed without being called,
//      even if there still is a ticket for it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "home.h"
#include "lifeline.h"
#include "post_slot.h"

namespace weir::detail {

template <class... Values>
class operation : public lifeline::member {
 public:
  using error_code = boost::system::error_code;

  // Posts the handler, which does not run inside this call. REQUIRES: the caller has withdrawn the operation
  // from the lifeline, and calls only one of post() and drop(), once.
  void post(error_code ec, Values... values) {
    args_.emplace(ec, std::move(values)...);
    act_(*this, step::post);
  }
  // Destroys the handler without calling it. REQUIRES: as post().
  void drop() { act_(*this, step::drop); }

 protected:
  enum class step { post, run, drop };
  using action = void (*)(operation&, step);

  operation(action act, const lifeline& line)
      : member([](member& m) { static_cast<operation&>(m).drop(); }), act_(act), line_(line) {}
  ~operation() = default;

  const action act_;
  const lifeline& line_;  // of the context where the handler runs
  std::optional<std::tuple<error_code, Values...>> args_;
};

// The executor of a handler: counts as outstanding work there, and has the memory for one post.
template <class Executor>
class way_to {
 public:
  way_to(const Executor& ex, bool alone) : alone_(alone), ex_(counted(ex)) {}

  template <class F>
  void post(F f) {
    if (auto* io = std::get_if<tracked<io_executor>>(&ex_)) {
      const auto plain = boost::asio::prefer(*io, boost::asio::execution::outstanding_work.untracked);
      return slot_.post(plain, std::move(f), alone_);
    }
    if constexpr (!std::is_same_v<Executor, io_executor>) {
      boost::asio::post(std::get<1>(ex_), std::move(f));
    }
  }

 private:
  using any = boost::asio::any_io_executor;
  using either = std::conditional_t<std::is_same_v<Executor, io_executor>, std::variant<tracked<io_executor>>,
                                    std::variant<tracked<io_executor>, tracked<Executor>>>;

  static either counted(const Executor& ex) {
    constexpr auto work = boost::asio::execution::outstanding_work.tracked;
    if constexpr (std::is_same_v<Executor, any>) {
      if (auto* io = ex.template target<io_executor>()) return boost::asio::prefer(*io, work);
    }
    return either(boost::asio::prefer(ex, work));
  }

  const bool alone_;
  either ex_;
  post_slot slot_;
};

template <class Handler, class... Values>
class operation_of final : public operation<Values...> {
 public:
  using executor = boost::asio::associated_executor_t<Handler, boost::asio::any_io_executor>;
  using allocator_type = boost::asio::associated_allocator_t<Handler>;
  using allocator = typename std::allocator_traits<allocator_type>::template rebind_alloc<operation_of>;

  static operation_of* make(Handler handler, const executor& ex, const lifeline& line, bool alone) {
    allocator a(boost::asio::get_associated_allocator(handler));
    struct memory {
      allocator& a;
      operation_of* p;
      ~memory() {
        if (p) a.deallocate(p, 1);
      }
    } raw{a, a.allocate(1)};
    operation_of* op = new (raw.p) operation_of(std::move(handler), ex, line, alone);
    raw.p = nullptr;
    return op;
  }

 private:
  using base = operation<Values...>;
  using step = typename base::step;

  // The function that is posted. It owns the block until it runs.
  struct runner {
    using allocator_type = operation_of::allocator_type;
    explicit runner(operation_of* o) noexcept : op(o) {}
    runner(runner&& other) noexcept : op(std::exchange(other.op, nullptr)) {}
    ~runner() {
      if (op) op->drop();
    }
    allocator_type get_allocator() const noexcept {
      return boost::asio::get_associated_allocator(op->handler_);
    }
    void operator()() { perform(*std::exchange(op, nullptr), step::run); }
    operation_of* op;
  };

  operation_of(Handler&& h, const executor& ex, const lifeline& line, bool alone)
      : base(&operation_of::perform, line), where_(ex, alone), handler_(std::move(h)) {}

  static void perform(base& b, step what) {
    auto& self = static_cast<operation_of&>(b);
    switch (what) {
      case step::post:
        return self.where_.post(runner(&self));
      case step::run: {
        const lifeline::stay here(self.line_);
        auto args = std::move(*self.args_);
        Handler h = take(self);
        return std::apply(std::move(h), std::move(args));
      }
      case step::drop:
        (void)take(self);
    }
  }

  // Moves the handler out of its block, and frees the block.
  static Handler take(operation_of& self) {
    allocator a(boost::asio::get_associated_allocator(self.handler_));
    Handler h(std::move(self.handler_));
    self.~operation_of();
    a.deallocate(&self, 1);
    return h;
  }

  way_to<executor> where_;
  Handler handler_;
};

template <class... Values>
class pending {
 public:
  using error_code = boost::system::error_code;

  pending() = default;  // empty
  pending(pending&& other) noexcept
      : line_(std::move(other.line_)), ticket_(std::exchange(other.ticket_, {})) {}
  pending& operator=(pending&& other) noexcept {
    line_ = std::move(other.line_);
    ticket_ = std::exchange(other.ticket_, {});
    return *this;
  }

  // Starts an operation. If the handler's context is destroyed already, destroys the handler and returns an
  // empty object. `near`: home of the actor that is asked.
  template <class Handler>
  static pending start(Handler handler, const home& near) {
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    pending p;
    if constexpr (std::is_same_v<boost::asio::associated_executor_t<Handler, nowhere>, nowhere>) {
      p.start_on(
          std::move(handler), near, near.line(), [&]() -> auto& { return near.get_executor(); });
    } else {
      const auto ex = boost::asio::get_associated_executor(handler);
      p.start_on(
          std::move(handler), near, lifeline::of(ex, near.line()), [&]() -> auto& { return ex; });
    }
    if (p && slot.is_connected()) {
      slot.assign([line = p.line_, ticket = p.ticket_](boost::asio::cancellation_type type) {
        if (type != boost::asio::cancellation_type::none) {
          end(
              *line, ticket, [] { return boost::asio::error::operation_aborted; }, Values()...);
        }
      });
    }
    return p;
  }

  // Completes the operation. Returns false if it has ended already.
  bool complete(error_code ec, Values... values) const {
    return end(
        *line_, ticket_, [ec] { return ec; }, std::move(values)...);
  }
  // Completes the operation with the error that `last` returns. `last` is called only if the operation has
  // not ended already. By then nothing else can end it.
  template <class F>
  bool complete_with(F&& last) const {
    return end(*line_, ticket_, std::forward<F>(last), Values()...);
  }
  bool fail(error_code ec) const { return complete(ec, Values()...); }

  // Fails the operation of a `pending` that was moved elsewhere. REQUIRES: that `pending` still exists.
  class alias {
   public:
    explicit alias(const pending& p) : line_(*p.line_), ticket_(p.ticket_) {}
    bool fail(error_code ec) const {
      return end(
          line_, ticket_, [ec] { return ec; }, Values()...);
    }

   private:
    lifeline& line_;
    const lifeline::ticket ticket_;
  };

  explicit operator bool() const noexcept { return ticket_.number != 0; }

 private:
  struct nowhere {};

  template <class Handler, class Executor>
  void start_on(Handler handler, const home& near, std::shared_ptr<lifeline> line, Executor get_executor) {
    const bool same = line == near.line();
    const lifeline::visit open(*line);
    if (!open) return;
    using block = operation_of<Handler, Values...>;
    auto* op = block::make(std::move(handler), get_executor(), *line, same && near.plain());
    ticket_ = line->enroll(*op);
    line_ = std::move(line);
  }

  template <class F>
  static bool end(lifeline& line, const lifeline::ticket& t, F&& last, Values... values) {
    const lifeline::visit open(line);
    lifeline::member* m = open ? line.withdraw(t) : nullptr;
    if (!m) return false;
    static_cast<operation<Values...>*>(m)->post(last(), std::move(values)...);
    return true;
  }

  std::shared_ptr<lifeline> line_;
  lifeline::ticket ticket_;
};

}  // namespace weir::detail
