// actor_error.h — what can go wrong between two actors, as ordinary error codes.
//
// Values are plain data: any thread.
#pragma once

#include <boost/system/error_category.hpp>
#include <boost/system/error_code.hpp>
#include <string>
#include <type_traits>

namespace weir {

enum class actor_error {
  no_reply = 1,    // the question was dropped unanswered
  mailbox_full,    // refused: as much unread mail as the actor's options allow
  mailbox_closed,  // refused: the actor was stopped, or has ended
  writer_gone,     // a stream's writer was destroyed without closing it
  timed_out,       // with_timeout: the operation was cancelled because its time was up
};

class actor_category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "weir.actor"; }
  std::string message(int value) const override {
    switch (static_cast<actor_error>(value)) {
      case actor_error::no_reply:
        return "the question was dropped without an answer";
      case actor_error::mailbox_full:
        return "the mailbox is full";
      case actor_error::mailbox_closed:
        return "the actor takes no more mail";
      case actor_error::writer_gone:
        return "the stream's writer is gone";
      case actor_error::timed_out:
        return "no answer in time";
    }
    return "unknown";
  }
};

inline const boost::system::error_category& actor_errors() {
  static const actor_category category;
  return category;
}

inline boost::system::error_code make_error_code(actor_error e) {
  return {static_cast<int>(e), actor_errors()};
}

}  // namespace weir

namespace boost::system {
template <>
struct is_error_code_enum<weir::actor_error> : std::true_type {};
}  // namespace boost::system
