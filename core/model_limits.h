// model_limits.h — the limits of one model, where they are narrower than those of the server.
//
// Text form: batch:8,queue:16. A limit that is not there is the server's.
//
// Thread safety: plain data and pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/error.h"

namespace weir::core {

struct model_limits {
  std::optional<std::uint64_t> batch;         // sequences that run at once; most: --max-batch
  std::optional<std::uint64_t> queue;         // jobs that wait; most: --queue
  std::optional<std::uint64_t> queue_tokens;  // of prompts that wait; most: --queue-tokens
  std::optional<std::uint64_t> kv_tokens;     // of the page pool
  std::optional<std::uint64_t> max_tokens;    // most tokens of an answer; a request for more is refused

  bool none() const noexcept { return *this == model_limits(); }
  friend bool operator==(const model_limits&, const model_limits&) = default;
};

// Calls v(name, member, least, most) for each limit.
template <class Visit>
void visit_limits(Visit&& v) {
  using l = model_limits;
  v("batch", &l::batch, std::uint64_t{1}, std::uint64_t{8192});
  v("queue", &l::queue, std::uint64_t{0}, std::uint64_t{1} << 20);
  v("queue_tokens", &l::queue_tokens, std::uint64_t{1}, std::uint64_t{1} << 30);
  v("kv_tokens", &l::kv_tokens, std::uint64_t{1}, std::uint64_t{1} << 36);
  v("max_tokens", &l::max_tokens, std::uint64_t{1}, std::uint64_t{1} << 24);
}

// Sets the limit `name`. Error: invalid_param about `param`, where there is no such limit or it has another
// range.
result<> set_limit(model_limits& l, std::string_view name, std::uint64_t n, std::string_view param);

// Parses the text form. Error: invalid_param about `param`; a limit that is there twice is one, too.
result<model_limits> parse_limits(std::string_view text, std::string_view param);

}  // namespace weir::core
