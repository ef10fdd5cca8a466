// budget.h — what one rendering may use: steps, nesting, live memory and output. A template is foreign code;
// the budget ends a hostile one with an error.
//
// Thread safety: one rendering has one budget; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/text/template/template.h"

namespace weir::core::jinja {

// The exception inside the interpreter. program::compile() and program::render() make an error of it.
struct failure {
  std::string message;
  std::uint32_t line = 0;  // of the template; 0: not known yet
  bool raised = false;     // by raise_exception(): the message is the template's own
  bool stopped = false;    // by a limit
};

template <class... A>
[[noreturn]] void fail(fmt::format_string<A...> format, A&&... args) {
  throw failure{fmt::format(format, std::forward<A>(args)...)};
}

// The template has used what a rendering may use.
template <class... A>
[[noreturn]] void stop(fmt::format_string<A...> format, A&&... args) {
  throw failure{.message = fmt::format(format, std::forward<A>(args)...), .stopped = true};
}

class budget {
 public:
  static constexpr std::uint64_t look_every = 4'096;  // steps between two looks at the turn and its time

  explicit budget(const limits& most) : most_(most) {}

  // Charges `n` steps.
  void step(std::uint64_t n = 1) {
    if ((steps_ += n) >= next_look_) look();
  }
  // Charges the copying of bytes: one step, and one for each 32 bytes.
  void copy(std::size_t bytes) { step(1 + bytes / 32); }
  // Charges a look at each character of some bytes.
  void read(std::size_t bytes) { step(1 + bytes / 8); }
  // Charges an allocation (a value on the heap, a frame of names), which costs as much as several steps.
  void allocate() { step(6); }

  void take(std::size_t bytes) {
    if ((held_ += bytes) > most_.memory_bytes) {
      held_ -= bytes;
      stop("the template's values take more than {} bytes", most_.memory_bytes);
    }
  }
  void give_back(std::size_t bytes) noexcept { held_ -= bytes; }

  // One level of nesting for as long as the object lives.
  class level {
   public:
    explicit level(budget& of) : of_(of) {
      if (of_.depth_ >= of_.most_.depth) stop("the template nests deeper than {} levels", of_.most_.depth);
      ++of_.depth_;
    }
    level(const level&) = delete;
    ~level() { --of_.depth_; }

   private:
    budget& of_;
  };

  std::size_t most_output() const noexcept { return most_.output_bytes; }

 private:
  void look() {
    next_look_ = std::min(steps_ + look_every, most_.steps + 1);
    if (steps_ > most_.steps) stop("the template takes more than {} steps", most_.steps);
    if (!most_.at) return;
    if (!most_.at->go_on()) stop("nobody waits for the prompt any more");
    if (most_.at->now() >= most_.deadline) stop("the template takes too long");
  }

  const limits most_;
  std::uint64_t steps_ = 0, next_look_ = std::min(look_every, most_.steps + 1);
  std::size_t held_ = 0;
  std::uint32_t depth_ = 0;
};

// Memory of one value, given back when the value goes. Every value of a rendering dies before its budget.
class held_memory {
 public:
  held_memory() = default;  // of a constant, which belongs to the program
  held_memory(budget& b, std::size_t bytes) : of_(&b), bytes_(bytes) { b.take(bytes); }
  held_memory(const held_memory&) = delete;
  ~held_memory() {
    if (of_) of_->give_back(bytes_);
  }
  // The value has grown. REQUIRES: it is no constant
  void grow(std::size_t bytes) {
    of_->take(bytes);
    bytes_ += bytes;
  }

 private:
  budget* of_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace weir::core::jinja
