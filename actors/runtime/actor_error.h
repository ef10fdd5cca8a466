// actor_error.h — the errors of operations between actors, as boost::system error codes.
//
// Thread safety: plain data; any thread.
#pragma once

#include <boost/system/error_category.hpp>
#include <boost/system/error_code.hpp>
#include <string>
#include <type_traits>

namespace weir {

enum class actor_error {
  no_reply = 1,    // the question was destroyed without an answer
  mailbox_full,    // refused: the mailbox has as many unread messages as options::mailbox allows
  mailbox_closed,  // refused: the actor was stopped, or has ended
  writer_gone,     // the writer of a stream was destroyed without a call of close()
  timed_out,       // with_timeout: the operation was cancelled at its time limit
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
