// incidents.h — counts and logs exceptions that reached the outermost handler of a thread, a connection or an
// actor, and faults of a device.
//
// Such an exception ends the connection, job or message in which it was thrown, and nothing else. At each
// place, only the 1st, 2nd, 4th, 8th … incident is logged, so that a client who causes incidents cannot fill
// the log.
//
// Thread safety: any thread. note() throws nothing; it allocates an entry for a new place, and the log line.
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

  // Without a writer, lines go to standard error.
  explicit incidents(writer log = {}) : log_(std::move(log)) {}

  // `where`: the place, a string that lives as long as this object. `what`: the exception, or null.
  void note(const char* where, std::exception_ptr what) noexcept;
  // A fault that nobody threw and that is too rare to fill the log: each is counted and logged.
  void note(const char* where, std::string_view what) noexcept;
  // A line of the log that says how a fault goes on.
  void tell(const char* where, std::string_view what) noexcept;
  std::uint64_t count() const noexcept;

  // Message of an exception, for people.
  static std::string text_of(const std::exception_ptr& what);

 private:
  const writer log_;
  mutable std::mutex mutex_;
  std::map<std::string_view, std::uint64_t> by_place_;
  std::uint64_t count_ = 0;
};

// Calls `f`. If it throws, notes the exception and returns false.
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
