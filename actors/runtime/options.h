// options.h — the options an actor is spawned with, and the status it ends with. Plain data: any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <string>

namespace weir {

// What became of a message that was sent.
enum class sent {
  ok,      // it is in the mailbox
  full,    // refused: the mailbox is full
  closed,  // refused: the actor was stopped, or has ended
};

enum class exit_reason {
  finished,   // the body returned
  stopped,    // the body returned after stop()
  killed,     // kill() was called
  failed,     // the body threw an exception
  abandoned,  // the actor's execution context was destroyed
};

struct exit_status {
  exit_reason reason = exit_reason::finished;
  std::exception_ptr error;  // what the body threw; null unless the reason is failed
};

enum class restart_when {
  never,
  on_error,  // the body threw
  always,    // the body threw or returned
};

// When an actor whose body has ended runs its body again; never after stop() or kill(). Unread messages stay
// in the mailbox. The message that was being handled is lost; if that message is a question, its asker gets
// no_reply.
struct restart_policy {
  restart_when when = restart_when::never;

  // At most `max` restarts in any period of `within`. The actor ends for good where one more would be needed.
  int max = 3;
  std::chrono::milliseconds within{10'000};

  // Time from the end of the body and its children to the first restart. Each further restart within `within`
  // doubles it.
  std::chrono::milliseconds first_delay{100};
};

// Receives events of the actors that name it in their options, for metrics and logs. An actor without an
// observer takes no time stamps. An observer may be called on several threads at once, must return quickly
// and must not throw.
class observer {
 public:
  virtual ~observer() = default;

  // The actor takes a message out of its mailbox. `in_mailbox` is how long the message waited there;
  // `backlog` is how many messages are still unread. Called on the actor's executor.
  virtual void read(const std::string& actor, std::chrono::nanoseconds in_mailbox, std::size_t backlog) = 0;

  // The actor has handled a message: `on_message` is the time from read() to the actor's next request for a
  // message. Called on the actor's executor.
  virtual void worked(const std::string& actor, std::chrono::nanoseconds on_message) = 0;

  // `n` messages were not handled. `why` is full or closed for a message that was refused (called on the
  // sender's thread), and ok for messages that were unread when the actor ended (called on the actor's
  // executor).
  virtual void dead_letters(const std::string& actor, std::size_t n, sent why) = 0;

  // The body has ended. `restarts` is true if it will run again. Called on the actor's executor.
  virtual void ended(const std::string& actor, const exit_status& how, bool restarts) = 0;
};

// What an actor is spawned with.
struct options {
  std::string name = "actor";  // for observers and logs; need not be unique

  // How many unread messages the mailbox holds. A send beyond it returns sent::full. A larger mailbox absorbs
  // longer bursts, and lets messages wait longer. Stop, kill and the messages of send_after() are never
  // refused.
  std::size_t mailbox = 1024;

  restart_policy restart = {};

  observer* watch = nullptr;  // optional; must outlive the actor
};

}  // namespace weir
