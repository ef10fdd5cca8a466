#include "actors/fleet/guest.h"

#include <algorithm>

namespace weir::actors::fleet {

// A job that no engine had has no ending of an engine's.
core::ending guest::ending() const {
  if (block->readable.load(std::memory_order_acquire) & 1) return block->how_it_ended;
  core::ending out;
  out.reason = core::finish_reason::error;
  out.output_tokens = spoken;
  if (stream->state() == job_stream::phase::refused) {
    out.fault = stream->refusal();
    return out;
  }
  out.reason = stream->ended().reason;
  out.output_tokens = spoken + stream->ended().output_tokens;
  out.fault = stream->ended().fault;
  return out;
}

bool guest::tell(core::fleet::token_frame_writer& to) {
  const token_log& log = stream->log();
  const bool logprobs = with_logprobs();
  const std::uint32_t most = logprobs ? core::fleet::most_frame_logprobs : core::fleet::most_frame_tokens;
  const std::uint32_t count = std::min(log.size() - told, most);
  const bool ends = over() && told + count == log.size();
  if (count == 0 && (!ends || told_end)) return false;
  to.job(slot, name.attempt, spoken + told, count, ends);
  const core::duration since = stream->created() - created;
  for (std::uint32_t i = told; i < told + count; ++i) {
    const core::fleet::sent_token t{log.id(i), since + std::chrono::microseconds(log.at_us(i))};
    if (logprobs)
      to.add(t, log.logprobs(i));
    else
      to.add(t);
  }
  told += count;
  if (ends) {
    to.end(ending(), created);
    told_end = true;
  }
  return true;
}

void guest::tell_again(std::uint32_t after) {
  told = std::min(after - std::min(after, spoken), stream->log().size());
  told_end = false;
}

}  // namespace weir::actors::fleet
