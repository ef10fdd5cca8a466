// parsing.h — a parser of text that comes in pieces, written as a coroutine: it waits where the text ends,
// and goes on when more has come. So a parser reads like one of a whole text.
//
// Only for core/text/answer. A parser allocates its frame when it is called, and nothing when it waits.
//
// Thread safety: none; one owner.
#pragma once

#include <coroutine>
#include <utility>

namespace weir::core {

// The parser that goes on next. Parsers that call each other go on from here, one after the other, so that
// the stack does not grow with their number, whatever the compiler makes of calls at the end of a function.
class parser_loop {
 public:
  void next(std::coroutine_handle<> h) noexcept { next_ = h; }
  // Lets parsers run until one waits for text, or all have ended.
  void run() {
    while (next_) std::exchange(next_, nullptr).resume();
  }

 private:
  std::coroutine_handle<> next_;
};

// A parser whose result is whether it found what it looks for. An exception leaves through
// parser_loop::run(); the parsers cannot go on afterwards.
class [[nodiscard]] parsing {
 public:
  struct promise_type {
    bool found = false;
    parser_loop* loop = nullptr;
    std::coroutine_handle<> caller;

    parsing get_return_object() { return parsing(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct to_caller {
      bool await_ready() noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> h) noexcept {
        h.promise().loop->next(h.promise().caller);
      }
      void await_resume() noexcept {}
    };
    to_caller final_suspend() noexcept { return {}; }
    void return_value(bool f) noexcept { found = f; }
    void unhandled_exception() { throw; }
  };

  parsing() = default;
  parsing(parsing&& o) noexcept : handle_(std::exchange(o.handle_, nullptr)) {}
  parsing& operator=(parsing&& o) noexcept {
    std::swap(handle_, o.handle_);
    return *this;
  }
  ~parsing() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<promise_type> caller) noexcept {
    promise_type& own = handle_.promise();
    own.caller = caller;
    own.loop = caller.promise().loop;
    own.loop->next(handle_);
  }
  bool await_resume() const noexcept { return handle_.promise().found; }

  // Begins the outermost parser.
  void start(parser_loop& loop) {
    handle_.promise().loop = &loop;
    loop.next(handle_);
    loop.run();
  }

 private:
  explicit parsing(std::coroutine_handle<promise_type> h) : handle_(h) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace weir::core
