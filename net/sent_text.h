// sent_text.h — what a client sent, parsed: a short text at once, a long one in the text pool, in the turn of
// its client's key, so that no shard is held up.
//
// The pool also destroys what is left of a long text and its request. While it is parsed, the text and what
// parsing takes are in the account of clients' memory.
//
// Thread safety: the shard's thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "actors/arrival.h"
#include "actors/service.h"
#include "net/called_back.h"

namespace weir::net {

inline bool is_long(std::string_view text) { return text.size() > actors::longest_text_here; }

// About the most bytes that parsing a JSON text takes beside the text: of its values, of copies of its
// strings, and of a request that is made of them.
inline std::uint64_t parsing_bytes(std::string_view text) {
  constexpr std::uint64_t of_value = 96, copies = 2;
  const auto before_value = [](char c) { return c == ',' || c == ':' || c == '[' || c == '{'; };
  return of_value * static_cast<std::uint64_t>(std::ranges::count_if(text, before_value)) +
         copies * text.size();
}

// Who sent a text, and who waits for it.
struct text_sender {
  std::uint64_t key = 0;                               // actors::principal::key
  std::shared_ptr<const std::atomic<bool>> left = {};  // true: nobody waits any more; null: that is not known
};

// A text, and then what it says: core::result<T>.
template <class T>
struct sent_text {
  sent_text(std::string t, std::shared_ptr<core::memory_account> account)
      : text(std::move(t)), memory(std::move(account)) {}

  // Parses the text, in the pool.
  template <class Parse>
  void read(const Parse& parse, const text_sender& from) {
    if (from.left && *from.left) {
      said = core::make_error(core::errc::unavailable, "the client has gone");
    } else if (!memory.resize(text.size() + parsing_bytes(text))) {
      said = actors::no_memory_for_clients();
    } else {
      said = parse(std::string_view(text));
      if constexpr (requires { (*said)->request.bytes; })
        if (*said) (*said)->request.bytes = actors::input_bytes((*said)->request);
    }
    text = std::string();
    if (!*said) memory.force(0);
  }

  std::string text;
  core::memory_hold memory;
  std::optional<core::result<T>> said;
  bool in_pool = false;
};

// Parses `text` by parse(text), a pure function that returns core::result<T>. `said` is set in what is
// returned, which the caller gives to done_with(). Errors beside those of the parser: overloaded, where the
// pool or the account of memory has no room; unavailable, where the client has gone.
template <class T, class Parse>
boost::asio::awaitable<std::shared_ptr<sent_text<T>>> read_sent(actors::service& s, text_sender from,
                                                                actors::executor shard, std::string text,
                                                                Parse parse) {
  auto of = std::make_shared<sent_text<T>>(std::move(text), s.memory());
  if (!is_long(of->text)) {
    of->said = parse(std::string_view(of->text));
    co_return of;
  }
  of->in_pool = true;
  of->memory.force(of->text.size());  // it has come in already
  auto begin = [&](auto done) {
    s.work_on_text(
        from.key, of->text.size(), [of, parse, from] { of->read(parse, from); }, shard, done);
  };
  const auto no = co_await called_back<std::optional<core::error>>(begin);
  if (no) of->said = *no;
  co_return of;
}

// The caller needs a text no more. What is left of a long one is destroyed in the pool.
template <class T>
void done_with(actors::service& s, std::shared_ptr<sent_text<T>> of) {
  of->memory.force(0);
  if (of->in_pool) s.drop(std::move(of));
}

}  // namespace weir::net
