// Which jobs a worker has: it answers gateways that ask for the jobs of their whole cell.
#include <algorithm>
#include <utility>

#include "actors/fleet/intake.h"
#include "core/engine.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;

namespace {

using sequences_by_id = std::unordered_map<core::job_id, const core::sequence_view*, core::job_id_hash>;

bool may_see(const std::optional<wire::job_question::owner>& who, const guest& g) {
  return !who || principal{who->key, who->user}.has({g.key, g.user});
}

wire::listed_job line_of(const guest& g, const sequences_by_id& running, core::time_point now) {
  wire::listed_job j;
  j.id = g.name.id;
  j.attempt = g.name.attempt;
  j.gateway = g.gateway.empty() ? g.had_by : g.gateway;
  j.model = g.model.substr(0, wire::longest_model_name);
  j.prompt_tokens = g.block->prompt_tokens;
  j.output_tokens = g.tokens();
  j.priority = g.priority;
  j.age = now - g.created;
  if (g.over()) {
    const auto how = g.ending();
    j.state = core::sequence_state::finished;
    j.reason = how.reason;
    j.output_tokens = how.output_tokens;
    j.cached_tokens = how.cached_tokens;
  } else if (const auto at = running.find(g.block->id); at != running.end()) {
    const auto& s = *at->second;
    j.state = s.state;
    j.cached_tokens = s.cached_tokens;
    j.pages = s.pages;
    j.preemptions = s.preemptions;
  }
  return j;
}

}  // namespace

// Questions beyond the bounds of a second are not answered: the gateway asks again.
void intake::on_list(bus::message& m) {
  const auto q = wire::read_job_question(m.bytes);
  if (!q) return void(++now_.broken);
  const auto now = time_.now();
  if (!lists_.take(now)) return;
  const auto all = asked_for(*q);
  std::vector<board::picture> pictures;
  sequences_by_id running;
  for (const auto& h : doors_.hosts) pictures.push_back(h->published().look());
  for (const auto& p : pictures)
    for (const auto& j : p->jobs) running.emplace(j.sequence.id, &j.sequence);
  std::vector<wire::listed_job> jobs;
  for (const auto& g : all) {
    if (q->cancel && !g->over()) g->stream->cancel();
    jobs.push_back(line_of(*g, running, now));
  }
  const auto longest = std::min(wire::longest_job_frame, bus_.most_bytes());
  const auto frames = wire::listed_frames(q->question, name_, jobs, longest);
  std::uint64_t bytes = 0;
  for (const auto& f : frames) bytes += f.size();
  if (!found_bytes_.take(now, bytes)) return;
  for (const auto& f : frames) bus_.publish(subjects_.answers_to(q->gateway), f);
  ++now_.listed;
}

// Those that run first, and the youngest of them before the others. A question for a job of another key is
// counted.
std::vector<std::shared_ptr<guest>> intake::asked_for(const wire::job_question& q) {
  std::vector<std::shared_ptr<guest>> out;
  const auto add = [&](const std::shared_ptr<guest>& g) {
    if (may_see(q.who, *g))
      out.push_back(g);
    else if (q.id && (!q.who || q.who->key != g->key))
      ++now_.silent;
  };
  if (q.id && !q.cancel) {
    if (const auto at = guests_.find(*q.id); at != guests_.end()) add(at->second);
    return out;
  }
  for (const auto& [id, g] : guests_)
    if (!q.id || id == *q.id || g->answer == *q.id) add(g);
  std::ranges::sort(out, [](const auto& a, const auto& b) {
    return std::tuple(a->over(), b->created, a->name.id) < std::tuple(b->over(), a->created, b->name.id);
  });
  return out;
}

}  // namespace weir::actors::fleet
