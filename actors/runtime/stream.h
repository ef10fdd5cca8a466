// stream.h — a bounded queue of items from a writer on one thread to a reader on another executor. The writer
// never waits, and the reader reads as from a socket.
//
// Thread safety: the writer is used by one thread at a time, the reader on its executor.
//
// Invariants:
//   1. Items are read in the order in which they were written, each once. The reason for the end is read
//      after the last of them.
//   2. try_write() never blocks, allocates or posts. It takes as many items as there is room for. The reader
//      is woken when the caller flushes the batch of wakes.
//   3. Items are taken from the queue when the reading handler runs. Cancelling a read therefore loses none.
#pragma once

#if __has_include(<readerwriterqueue/readerwriterqueue.h>)  // as packages install it
#include <readerwriterqueue/readerwriterqueue.h>
#else  // as its repository, or somebody's copy, has it
#include <readerwriterqueue.h>
#endif

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "actor_error.h"
#include "lifeline.h"
#include "own_handler.h"
#include "unstarted.h"
#include "wakes.h"

namespace weir {

namespace detail {

// The queue has room for 2^k - 1 items. Returns the smallest such number that is at least `capacity`.
constexpr std::size_t stream_slots(std::size_t capacity) {
  std::size_t slots = 1;
  while (slots < capacity) slots = 2 * slots + 1;
  return slots;
}

template <class T>
class stream_state final : public waker, public lifeline::member {
 public:
  static_assert(std::is_trivially_copyable_v<T>, "items are copied, as tokens are");
  using error_code = boost::system::error_code;

  stream_state(boost::asio::any_io_executor ex, std::size_t capacity)
      : waker(std::move(ex), [](waker& w) { static_cast<stream_state&>(w).deliver(); }),
        member([](member& m) { static_cast<stream_state&>(m).let_go(); }),
        queue(stream_slots(capacity)) {}

  void start() {
    const lifeline::visit open(*where().line());
    if (!open) return;
    self_ = shared_from_this();
    ticket_ = where().line()->enroll(*this);
  }

  // ---- used by the writer

  std::size_t write(std::span<const T> items) {
    std::size_t n = 0;
    while (n < items.size() && queue.try_enqueue(items[n])) ++n;
    return n;
  }
  void close(error_code why) {
    end = why;
    closed.store(true);
  }

  // ---- used by the reader

  void leave() {
    abandoned.store(true);
    if (where().line()->withdraw(ticket_)) self_.reset();
  }

  std::size_t read(std::span<T> into) {
    std::size_t n = 0;
    while (n < into.size() && queue.try_dequeue(into[n])) ++n;
    return n;
  }
  // Whether the stream is closed and every item was read. `closed` must be loaded first: all items that were
  // written before it are then in the queue.
  bool drained() const { return closed.load() && queue.peek() == nullptr; }

  template <class Handler>
  void async_read(Handler handler, std::span<T> into) {
    assert(!reading_ && "one async_read_some at a time");
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    reading_.set(std::move(handler), where(), true);
    into_ = into;
    cancelled_ = false;
    ++read_no_;
    if (slot.is_connected()) {
      slot.assign([weak = weak_from_this(), no = read_no_](boost::asio::cancellation_type type) {
        auto w = type == boost::asio::cancellation_type::none ? nullptr : weak.lock();
        if (w) static_cast<stream_state&>(*w).cancel(no);
      });
    }
    listen();
  }

  moodycamel::ReaderWriterQueue<T> queue;
  std::atomic<bool> closed{false}, abandoned{false};
  error_code end;  // written before closed, read after

 private:
  void listen() {
    arm();
    if (into_.empty() || queue.peek() || closed.load() || cancelled_) signal();
  }

  void deliver() {
    if (!reading_) return;
    if (cancelled_) return reading_.complete(boost::asio::error::operation_aborted, 0);
    const bool last = closed.load();
    const std::size_t n = read(into_);
    if (n > 0 || into_.empty()) return reading_.complete({}, n);
    if (last) return reading_.complete(end, 0);
    listen();
  }

  void cancel(std::uint64_t no) {
    if (!reading_ || no != read_no_) return;
    cancelled_ = true;
    arm();
    signal();
  }

  void let_go() {
    const auto keep = std::move(self_);
    reading_.drop();
  }

  std::shared_ptr<waker> self_;  // this object while it is a member of its context's lifeline; else null
  lifeline::ticket ticket_;

  // Used by the reader only:
  own_handler<error_code, std::size_t> reading_;
  std::span<T> into_;
  std::uint64_t read_no_ = 0;
  bool cancelled_ = false;  // the pending read was cancelled
};

}  // namespace detail

template <class T>
class stream_writer {
 public:
  explicit stream_writer(std::shared_ptr<detail::stream_state<T>> s) noexcept : state_(std::move(s)) {}
  stream_writer(stream_writer&&) noexcept = default;
  stream_writer& operator=(stream_writer&& other) noexcept {
    stream_writer old(std::move(*this));
    state_ = std::move(other.state_);
    return *this;
  }
  // Without a call of close(), the reader gets writer_gone after the last item.
  ~stream_writer() {
    if (!state_ || state_->closed.load()) return;
    state_->close(actor_error::writer_gone);
    state_->signal();
  }

  // Writes as many items, from the front, as there is room for, and returns their number. It is smaller than
  // the number of `items` if the reader is slow.
  std::size_t try_write(std::span<const T> items, wakes& w) {
    const std::size_t n = state_->write(items);
    if (n > 0) state_->signal(w);
    return n;
  }

  // Ends the stream. The reader gets `why` after the last item; boost::asio::error::eof is the normal end.
  // REQUIRES: not closed yet.
  void close(boost::system::error_code why, wakes& w) {
    state_->close(why);
    state_->signal(w);
  }

  // Whether the reader was destroyed.
  bool abandoned() const noexcept { return state_->abandoned.load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<detail::stream_state<T>> state_;
};

template <class T>
class stream_reader {
 public:
  using executor_type = boost::asio::any_io_executor;

  explicit stream_reader(std::shared_ptr<detail::stream_state<T>> s) noexcept : state_(std::move(s)) {}
  stream_reader(stream_reader&&) noexcept = default;
  stream_reader& operator=(stream_reader&& other) noexcept {
    stream_reader old(std::move(*this));
    state_ = std::move(other.state_);
    return *this;
  }
  ~stream_reader() {
    if (state_) state_->leave();
  }

  executor_type get_executor() const noexcept { return state_->get_executor(); }

  // Completes with void(error_code, std::size_t): the number of items, or 0 and the reason for the end. The
  // items are written to `into` just before the handler runs. Only one read may be pending.
  auto async_read_some(std::span<T> into) { return unstarted<std::size_t, read>(read(state_, into)); }
  template <class Token>
  auto async_read_some(std::span<T> into, Token&& token) {
    return async_read_some(into)(std::forward<Token>(token));
  }

  // Reads the items that are there now, and returns their number. REQUIRES: no async_read_some is pending.
  std::size_t try_read(std::span<T> into) { return state_->read(into); }

  // The reason for the end; nullopt until every item was read and the stream was closed.
  std::optional<boost::system::error_code> ended() const {
    return state_->drained() ? std::optional(state_->end) : std::nullopt;
  }

 private:
  struct read {
    read(std::shared_ptr<detail::stream_state<T>> s, std::span<T> into) noexcept
        : state(std::move(s)), out(into) {}
    template <class Handler>
    void operator()(Handler handler) {
      state->async_read(std::move(handler), out);
    }
    std::shared_ptr<detail::stream_state<T>> state;
    std::span<T> out;
  };

  std::shared_ptr<detail::stream_state<T>> state_;
};

// Makes a stream with room for at least `capacity` items; a capacity of 2^k - 1 wastes no memory. `reader`:
// executor of the reader, on which handlers without an associated executor run.
template <class T>
std::pair<stream_writer<T>, stream_reader<T>> make_stream(boost::asio::any_io_executor reader,
                                                          std::size_t capacity) {
  auto s = std::make_shared<detail::stream_state<T>>(std::move(reader), capacity);
  s->start();
  return {stream_writer<T>(s), stream_reader<T>(s)};
}

}  // namespace weir
