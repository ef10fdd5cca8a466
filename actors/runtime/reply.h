// reply.h — the member of a question with which the actor answers. A reply that is destroyed unused answers
// with no_reply.
//
//   struct get {
//     using result = int;               // what ask<get> completes with
//     explicit get(weir::reply<int> r) : done(std::move(r)) {}
//     weir::reply<int> done;            // done(42);
//   };
//
// Thread safety: used by one thread at a time; it may move between threads with its message.
//
// Invariant: the asker gets exactly one answer: a value, an error, or no_reply.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "actor_error.h"
#include "pending.h"

namespace weir {

namespace detail {
template <class R>
struct question {
  static_assert(std::default_initializable<R>, "an ask that fails completes with an error and R()");
  using wait = pending<R>;
  using signature = void(boost::system::error_code, R);
};
template <>
struct question<void> {
  using wait = pending<>;
  using signature = void(boost::system::error_code);
};
}  // namespace detail

template <class R = void>
class reply {
 public:
  using wait = typename detail::question<R>::wait;
  explicit reply(wait asker) noexcept : asker_(std::move(asker)) {}
  reply(reply&&) noexcept = default;
  reply& operator=(reply&& other) noexcept {
    reply old(std::move(*this));
    asker_ = std::move(other.asker_);
    return *this;
  }
  ~reply() {
    if (asker_) asker_.fail(actor_error::no_reply);
  }

  // Answers with a value. REQUIRES: not answered yet.
  template <class... V>
  requires(sizeof...(V) == (std::is_void_v<R> ? 0 : 1)) void operator()(V&&... value) {
    take().complete({}, std::forward<V>(value)...);
  }
  // Answers with an error. REQUIRES: not answered yet.
  void fail(boost::system::error_code why) { take().fail(why); }

  explicit operator bool() const noexcept { return static_cast<bool>(asker_); }  // not answered yet

 private:
  wait take() noexcept { return std::move(asker_); }
  wait asker_;
};

}  // namespace weir
