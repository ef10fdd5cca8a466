#include "actors/fleet/revival.h"

#include "actors/arrival.h"
#include "actors/fleet/check_job.h"
#include "actors/overloaded.h"
#include "core/text/tokenizer/tokenizer.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;
using core::errc;

namespace {

core::error unknown() { return core::make_error(errc::not_found, "there is no such response"); }

// What a gateway cannot make again of a job's frame.
core::result<> check_resumable(const wire::job_order& o, const wire::resume_part& p) {
  const char* what = nullptr;
  if (p.shows_prompt) what = "an answer with echo";
  if (o.job.prompt_logprobs) what = "an answer with prompt_logprobs";
  if (o.job.top_logprobs && !o.job.spoken.empty())
    what = "an answer with logprobs whose worker was lost before";
  if (!what) return {};
  return core::make_error(errc::not_supported, "{} cannot go on at another gateway", what);
}

core::result<std::shared_ptr<const core::answer_plan>> plan_of(const wire::resume_part& p,
                                                               const served_model& m) {
  auto plan = std::make_shared<core::answer_plan>();
  plan->format = m.answers[p.tools.empty() ? 0 : 1];
  if (!plan->format)
    return core::make_error(errc::not_supported, "{} has no format of answers at this gateway", m.name);
  plan->tools = p.tools;
  plan->separate_reasoning = p.separate_reasoning;
  plan->begins_in_reasoning = p.begins_in_reasoning;
  plan->calls_only = p.calls_only;
  return std::shared_ptr<const core::answer_plan>(std::move(plan));
}

// Fills in what the shard needs before the owner learns of the job.
std::shared_ptr<job_stream::state_block> block_of(revival& r, const service_doors& doors,
                                                  core::memory_hold memory, const executor& shard) {
  const core::job& j = r.order.job;
  request asked;
  asked.who = {j.key, r.part.user};
  asked.accounts = r.accounts;
  asked.skip_special_tokens = r.part.skip_special;
  const auto answer = r.part.choices.empty() ? j.id : r.part.choices.front();
  auto block = doors.begin_job(asked, j.id, answer, j.created, r.model, shard);
  if (j.top_logprobs) block->keep_logprobs(*j.top_logprobs);
  block->open_queue();
  block->taken_by = r.place;
  block->deadline = j.deadline;
  block->prompt_tokens = static_cast<std::uint32_t>(j.prompt.size());
  block->first_prompt_token = j.prompt.front();
  if (j.healing) block->healed = r.model->tokenizer->token_bytes(j.healing->token).size();
  block->engine_token_bytes = engine_token_bytes(j);
  block->counted = r.found.head.tokens;  // the gateway that had it has counted these
  block->memory = std::move(memory);
  block->resume = std::make_shared<const std::string>(std::move(r.order.resume));
  return block;
}

}  // namespace

core::result<> read_revival(revival& r) {
  const auto& head = r.found.head;
  auto order = wire::read_job(r.found.job, r.at - head.since);
  if (!order || order->model != head.model || order->job.id != r.search.id ||
      order->job.key != r.search.who.key)
    return unknown();
  r.found.job = {};
  r.order = std::move(*order);
  auto part = wire::read_resume(r.order.resume);
  if (!part || !r.search.who.has({r.order.job.key, part->user})) return unknown();
  r.part = std::move(*part);
  if (auto fine = check_job(r.order.job, *r.model, *r.place); !fine) return fine;
  if (auto fine = check_resumable(r.order, r.part); !fine) return fine;
  if (!r.part.parted) return {};
  auto plan = plan_of(r.part, *r.model);
  if (!plan) return plan.error();
  r.plan = std::move(*plan);
  return {};
}

core::result<found_job> begin_revival(revival& r, const service_doors& doors, const ref<far_message>& to,
                                      const executor& shard) {
  const auto& j = r.order.job;
  core::memory_hold memory(doors.memory);
  if (!memory.resize(bytes_of(j) + r.order.resume.size())) return no_memory_for_clients();
  auto& admission = *r.place->admission;
  std::optional<pausable_jobs::place> pausable;
  if (r.order.may_pause) {
    auto place = admission.pausable.take(r.model->name, j.key);
    if (!place) return place.error();
    pausable.emplace(std::move(*place));
  }
  if (auto room = admission.admit(r.model->name, 0); !room) return room.error();
  const auto block = block_of(r, doors, std::move(memory), shard);
  block->pausable = std::move(pausable);
  found_job out;
  out.stream = std::make_shared<job_stream>(block);
  out.owner = {j.key, r.part.user};
  if (r.part.choices.empty() || r.part.choices.front() == j.id) out.choices = r.part.choices;
  out.client = r.part.client;
  out.tokens = r.found.head.tokens;
  const auto& head = r.found.head;
  const bool may_pause = r.order.may_pause;
  auto adopt = far_adopt(std::move(r.order.job), block, {head.worker, head.model, head.engine},
                         head.job.attempt, may_pause, r.search.who);
  adopt.began_on = r.order.arithmetic;
  if (to.tell(std::move(adopt)) != sent::ok) {
    admission.job_done(0);
    block->pausable.reset();
    auto why = overloaded(1, "the mailbox of the fleet is full");
    block->refused(why);
    return why;
  }
  const auto warnings = r.part.warnings.empty()
                            ? nullptr
                            : std::make_shared<const constraint_warnings>(std::move(r.part.warnings));
  block->admitted(r.model, r.place, 0, nullptr, warnings, r.plan);
  return out;
}

}  // namespace weir::actors::fleet
