// answer_id.h — the job that a client names, by the job's id or by the id of an answer over HTTP, which has a
// prefix. Pure function: any thread.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/job.h"

namespace weir::net {

// What clients put before the id of a job, by protocol.
inline constexpr std::string_view answer_prefixes[] = {"chatcmpl-", "cmpl-", "resp_", "msg_"};

// The job of `chatcmpl-ID`, of `ID` alone, and so on. nullopt: `text` is no id.
inline std::optional<core::job_id> job_named(std::string_view text) {
  const auto prefix =
      std::ranges::find_if(answer_prefixes, [&](std::string_view p) { return text.starts_with(p); });
  if (prefix != std::end(answer_prefixes)) text.remove_prefix(prefix->size());
  return core::job_id::parse(text);
}

}  // namespace weir::net
