// How a worker gives the logprobs of a prompt to the gateway of its job, in pieces that the gateway asks for.
#include <algorithm>

#include "actors/fleet/intake.h"
#include "core/fleet/score_frame.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;

// A gateway that gets no answer asks again. The worker does not answer while the job runs, once the job is
// gone, and where the bytes of this second are used up.
void intake::give_scores(const bus::message& m) {
  const auto wish = wire::read_score_wish(m.bytes);
  if (!wish || m.answer_to.empty()) return void(++now_.broken);
  const auto g = find(wish->job);
  if (!g || !g->over()) return;
  const auto longest = std::min(wire::longest_score_part, bus_.most_bytes());
  const auto scored = g->ending().prompt_logprobs;
  const auto all = scored ? std::span(*scored) : std::span<const core::scored_token>();
  const auto of = static_cast<std::uint32_t>(all.size()), at = std::min(wish->at, of);
  auto part = wire::score_part_of(wish->job, at, of, all.subspan(at), longest);
  if (score_bytes_.take(time_.now(), part.size())) bus_.publish(m.answer_to, std::move(part));
}

}  // namespace weir::actors::fleet
