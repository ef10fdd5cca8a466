// How a gateway gets the logprobs of a far job's prompt. The job's ending says that they are computed. The
// gateway holds the ending back, and fetches the logprobs piece by piece. A job whose worker is lost
// meanwhile has not ended, and moves as every other one: its output and its ending stay, and the next worker
// computes the logprobs again.
#include <utility>

#include "actors/fleet/far_owner.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;

void far_owner::ask_scores(const job_ptr& j) {
  if (std::exchange(j->scores.asked, true)) return;
  const auto have = j->scores.tokens ? static_cast<std::uint32_t>(j->scores.tokens->size()) : 0;
  ask_worker(j, subjects_.control_of(j->where->worker), wire::frame_of(wire::score_wish{j->name(), have}),
             &far_owner::on_scores);
}

// Where no piece came, the worker is asked for the ending again as for all news that are missing.
void far_owner::on_scores(const job_ptr& j, std::uint8_t attempt, const bus::answer& a) {
  if (j->attempt != attempt || !j->where || j->how || !find(j->job.id)) return;
  j->scores.asked = false;
  if (a.how != bus::answer::how::came) return;
  auto part = wire::read_score_part(a.bytes);
  if (!part || !j->take(std::move(*part))) return void(++now_.broken);
  j->heard = time_.now();
  if (!j->scores.whole) return ask_scores(j);
  j->take_ending();
  write_or_wait(j);
}

}  // namespace weir::actors::fleet
