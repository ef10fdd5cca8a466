// incidents.h — exceptions that reached the outermost handler of a thread, a connection or an actor: counted,
// and logged.
//
// Such an exception ended the connection, the job or the message at hand and nothing else. Each place writes
// its first incident to the log, and then the 2nd, 4th, 8th … one, so that a stranger who can bring one about
// cannot fill the log.
//
// Thread safety: any thread. note() throws nothing and allocates only for the log line.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace weir::core {

class incidents {
 public:
  using writer = std::function<void(std::string_view line)>;

  // Without a writer lines go to standard error.
  explicit incidents(writer log = {}) : log_(std::move(log)) {}

  // `where`: the place, a string that lives as long as the program. `what`: the exception under way, or null.
  void note(const char* where, std::exception_ptr what) noexcept;
  std::uint64_t count() const noexcept;

  // What is known of an exception, for people.
  static std::string text_of(const std::exception_ptr& what);

 private:
  const writer log_;
  mutable std::mutex mutex_;
  std::map<std::string_view, std::uint64_t> by_place_;
  std::uint64_t count_ = 0;
};

// Runs `f`, and notes what it throws instead of passing it on. False: it threw.
template <class F>
bool contained(incidents& seen, const char* where, F&& f) noexcept {
  try {
    f();
    return true;
  } catch (...) {
    seen.note(where, std::current_exception());
    return false;
  }
}

}  // namespace weir::core
