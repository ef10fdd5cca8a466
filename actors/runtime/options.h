// options.h — what an actor is told when it is spawned, and how it says that it has ended. Plain data.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <string>

namespace weir {

enum class sent { ok, full, closed };  // the sender always learns

enum class exit_reason {
  finished,   // the body returned
  stopped,    // the body returned after stop()
  killed,     // kill()
  failed,     // the body threw: see error
  abandoned,  // its execution context was destroyed
};

struct exit_status {
  exit_reason reason = exit_reason::finished;
  std::exception_ptr error;
};

// Whether the body is called again once it has ended by itself. Mail stays; a message being handled is lost,
// and its question answered no_reply.
struct restart {
  enum class when { never, on_error, always };
  when again = when::never;
  int max = 3;  // this many times within this time; then the actor ends
  std::chrono::milliseconds within{10'000};
  std::chrono::milliseconds first_delay{100};  // doubles with each restart that counts against max
};

// What happens inside actors, for metrics and logs. Nothing is timed for actors without one.
// Calls come on the actor's executor, refusals from any thread; they must be quick and must not throw.
class observer {
 public:
  virtual ~observer() = default;
  virtual void read(const std::string& actor, std::chrono::nanoseconds in_mailbox, std::size_t backlog) = 0;
  virtual void worked(const std::string& actor,
                      std::chrono::nanoseconds on_message) = 0;  // until it asked for more
  virtual void dead_letters(const std::string& actor, std::size_t n,
                            sent why) = 0;  // full, closed; ok: left unread
  virtual void ended(const std::string& actor, const exit_status& how, bool restarts) = 0;
};

struct options {
  std::string name = "actor";
  std::size_t mailbox = 1024;  // unread messages; more are refused. Control and timers are not counted
  restart again = {};
  observer* watch = nullptr;  // outlives the actor
};

}  // namespace weir
