#include "actors/arrival.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "actors/make_job.h"
#include "actors/overloaded.h"
#include "core/cache/page_name.h"
#include "core/fleet/job_frame.h"
#include "core/fleet/pick.h"
#include "core/fleet/resume_part.h"
#include "core/insist.h"
#include "core/sample/pipeline.h"

namespace weir::actors {
namespace {

// Counts the jobs that were admitted and not submitted yet. The destructor gives their places back to
// admission.
class admitted_jobs {
 public:
  admitted_jobs(admission_control& admission, std::uint32_t jobs) noexcept
      : admission_(admission), jobs_(jobs) {}
  ~admitted_jobs() {
    for (; jobs_ > 0; --jobs_) admission_.job_done(0);
  }
  admitted_jobs(const admitted_jobs&) = delete;
  admitted_jobs& operator=(const admitted_jobs&) = delete;
  void taken() noexcept { --jobs_; }

 private:
  admission_control& admission_;
  std::uint32_t jobs_;
};

struct made {
  std::shared_ptr<job_stream::state_block> stream;
  core::job job;
  std::uint64_t bytes = 0;  // charged for what it has of its own
  std::shared_ptr<waiting_prompt> prompt;
  std::shared_ptr<const std::string> prompt_text;  // null: nobody asked for it
  std::optional<pausable_jobs::place> pausable;    // empty: it may not pause
};

// The jobs of a request, until they are submitted.
struct plan {
  std::vector<made> jobs;
  compiled_constraint constraint;   // of all jobs; empty: they have none
  std::vector<std::string> notes;   // of the rendering of the prompts
  std::uint64_t bytes = 0;          // of all jobs, `shared` included
  std::uint64_t shared = 0;         // of what jobs have together: prompts and lists
  std::uint32_t prompt_tokens = 0;  // of all prompts
};

std::uint64_t bytes_of(const prompt_input& input) {
  if (const auto* text = std::get_if<std::string>(&input)) return text->size();
  if (const auto* ids = std::get_if<prompt_ids>(&input)) return ids->size() * sizeof(core::token_id);
  return core::held_bytes(std::get<core::conversation>(input));
}

std::uint64_t texts_bytes(const std::vector<std::string>& texts) {
  std::uint64_t sum = 0;
  for (const std::string& s : texts) sum += sizeof s + s.size();
  return sum;
}

std::uint64_t constraint_bytes(const request& r) {
  if (!r.constraint) return 0;
  std::uint64_t sum = r.constraint->text.size();
  for (const std::string& choice : r.constraint->choices) sum += choice.size();
  return sum;
}

std::uint64_t tools_bytes(const request& r) {
  std::uint64_t sum = 0;
  for (const auto& t : r.tools.tools) sum += sizeof t + t.parameters.size() + t.grammar.size();
  return sum;
}

// Of the lists that all jobs of a request share.
std::uint64_t shared_bytes(const core::job& j) {
  const core::sampling_params& s = j.sampling;
  return s.logit_bias.bytes() + s.disallow_tokens.bytes() + s.allowed_token_ids.bytes() +
         s.bad_words.bytes() + j.stop_token_ids.bytes() + j.stop.bytes() + j.banned.bytes();
}

// What the answer's plan and constraint hold of the request's tools and constraint for a second time.
std::uint64_t rules_bytes(const prepared_request& known, const request& r) {
  return (known.answer ? tools_bytes(r) : 0) + (known.constraint ? tools_bytes(r) + constraint_bytes(r) : 0);
}

// What a job has of its own: the prompt and the lists are shared.
std::uint64_t own_bytes(const core::job& j, const request& asked, const served_model& m) {
  const std::uint64_t scored = asked.prompt_logprobs ? sizeof(core::scored_token) * j.prompt.size() : 0;
  const auto room = j.shifts ? j.max_tokens : m.context - static_cast<std::uint32_t>(j.prompt.size());
  return job_bytes_of(asked) + scored +
         core::sampler::bytes_for(j.sampling, m.info.vocab_size, j.prompt.size(),
                                  std::min(j.max_tokens, room));
}

// What a job holds for its constraint: the mask of its next token, and a place for each token of its text.
// The constraint itself is shared, and bounded where it is kept.
std::uint64_t mask_bytes(const core::job& j, const served_model& m) {
  constexpr std::uint32_t usual_tokens = 4096;
  if (!j.constraint) return 0;
  return m.info.vocab_size / 8 + sizeof(std::uint32_t) * std::min(j.max_tokens, usual_tokens);
}

// The prompt as a text: a text as the client wrote it, ids decoded, with special tokens as their text. Null
// for a conversation.
std::shared_ptr<const std::string> text_of(prompt_input& input, const core::tokenizer& t) {
  if (auto* text = std::get_if<std::string>(&input))
    return std::make_shared<const std::string>(std::move(*text));
  const auto* ids = std::get_if<prompt_ids>(&input);
  if (!ids) return nullptr;
  return std::make_shared<const std::string>(
      t.decode(*ids, {.skip_special = false, .clean_up_spaces = t.clean_up_spaces()}));
}

// Adds one job for each choice of the prompt `asked.input` that was not cancelled. `first`: the first of
// these choices. `job`: of all prompts, without this one.
core::result<void> add_jobs(arrival& a, core::job job, std::size_t first, std::size_t count, plan& all,
                            core::turn& at) {
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t i = 0; i < count; ++i)
    if (!a.choices[first + i]->abandoned()) wanted.push_back(i);
  if (wanted.empty()) return {};
  if (auto ok = take_prompt(job, a.asked, a.prepared, *a.model, at, local_now(), &all.notes); !ok) return ok;
  const auto text = a.asked.echo ? text_of(a.asked.input, *a.model->tokenizer) : nullptr;
  const std::uint64_t each =
      own_bytes(job, a.asked, *a.model) + mask_bytes(job, *a.model) + (text ? text->size() : 0);
  const std::uint64_t shared = job.prompt.bytes() + job.prompt_ids.bytes() +
                               (job.healing ? job.healing->allowed.size() * sizeof(std::uint32_t) : 0);
  all.shared += shared;
  all.bytes += each * wanted.size() + shared;
  if (!a.memory.resize(std::max(a.memory.bytes(), all.bytes))) return no_memory_for_clients();
  all.prompt_tokens += static_cast<std::uint32_t>(job.prompt.size());
  const auto prompt = std::make_shared<waiting_prompt>();
  for (const auto i : wanted) {
    made& m = all.jobs.emplace_back();
    m.stream = a.choices[first + i];
    m.job = choice_of(job, a.asked, i);
    m.job.id = m.stream->id;
    m.bytes = each;
    m.prompt = prompt;
    m.prompt_text = text;
  }
  return {};
}

// What the jobs of all prompts have in common.
core::result<core::job> common_job(const arrival& a, const compiled_constraint& constraint) {
  auto job = job_without_prompt(a.asked, *a.model);
  if (!job) return job;
  job->constraint = constraint.rules;
  if (a.wanted() && std::ranges::any_of(a.model->places, [](const auto& p) { return p->far; }))
    job->constraint_source = std::make_shared<const core::grammar::constraint_text>(*a.wanted());
  job->force = a.asked.force;
  job->cache_salt = prefix_salt(a.prefix_owner, job->cache_salt);
  job->created = a.choices.front()->created;
  if (a.asked.deadline) job->deadline = job->created + *a.asked.deadline;
  return job;
}

core::result<plan> plan_of(arrival& a, core::turn& at) {
  plan all;
  if (a.constraint) {
    if (!*a.constraint) return a.constraint->error();
    all.constraint = **a.constraint;
  }
  const auto common = common_job(a, all.constraint);
  if (!common) return common.error();
  all.bytes = all.shared = shared_bytes(*common);
  auto& more = a.asked.more_inputs;
  const std::size_t each = a.choices.size() / (1 + more.size());
  const std::string name = a.asked.input_param;
  for (std::size_t prompt = 0; prompt <= more.size(); ++prompt) {
    if (prompt > 0) a.asked.input = std::move(more[prompt - 1]);
    if (!more.empty()) a.asked.input_param = fmt::format("{}[{}]", name, prompt);
    if (auto added = add_jobs(a, *common, prompt * each, each, all, at); !added) return added.error();
  }
  a.asked.input_param = name;
  return all;
}

// What is not done of the request, what is not enforced of the constraint, and what a chat template needed to
// be changed of the messages; null: nothing.
std::shared_ptr<const constraint_warnings> warnings_of(const plan& all, const request& asked,
                                                       const prepared_request& known) {
  if (all.notes.empty() && known.unmet.empty()) return all.constraint.warnings;
  constraint_warnings both = known.unmet;
  if (const auto& unmet = all.constraint.warnings) both.insert(both.end(), unmet->begin(), unmet->end());
  for (const std::string& note : all.notes) both.push_back({asked.input_param, note});
  return std::make_shared<const constraint_warnings>(std::move(both));
}

// A number that prompts with equal first pages have in common. A prompt that is shorter than a page shares no
// page with another prompt, so it gets a number of its own.
std::uint64_t beginning_of(const core::job& j) {
  const std::span<const core::token_id> ids = j.prompt;
  if (ids.size() < core::page_tokens) return j.id.lo;
  return core::name_of(core::root_name(j.cache_salt, {}), ids.first<core::page_tokens>()).lo;
}

// Admits the jobs at this place, all of them or none.
core::result<void> admit(const request& asked, const served_model& m, plan& all, admission_control& at) {
  for (made& j : all.jobs) {
    j.pausable.reset();
    if (!asked.may_pause) continue;
    auto place = at.pausable.take(m.name, asked.who.key);
    if (!place) return place.error();
    j.pausable.emplace(std::move(*place));
  }
  return at.admit(m.name, all.prompt_tokens, static_cast<std::uint32_t>(all.jobs.size()));
}

// Admits the jobs at the first place of the model, in the order of pick(), that has room for them. Where none
// has, the error is that of the place with the shortest time after which to retry.
core::result<std::shared_ptr<const model_place>> admitted_by(const request& asked, const served_model& m,
                                                             plan& all) {
  std::vector<std::shared_ptr<const model_place>> open;
  std::vector<core::place_load> loads;
  std::optional<core::error> why;
  prompt_landmarks prompt(all.jobs.front().job);
  for (const auto& p : m.places) {
    if (auto closed = p->admission->closed()) {
      why = std::move(closed);
      continue;
    }
    open.push_back(p);
    loads.push_back(
        p->admission->load(static_cast<std::uint64_t>(p->engine), prompt.known_to(p->known.get())));
  }
  const auto count = static_cast<std::uint32_t>(all.jobs.size());
  for (const auto i : core::pick(loads, count, all.prompt_tokens, beginning_of(all.jobs.front().job))) {
    const auto room = admit(asked, m, all, *open[i]->admission);
    if (room) {
      if (open[i]->known) open[i]->known->promise(loads[i].known);
      return open[i];
    }
    const auto& no = room.error();
    if (!why || why->code != no.code || no.retry_after_ms < why->retry_after_ms) why = no;
  }
  return *why;
}

// What the name of a field in an error of the constraint begins with. Rules of a whole answer have whole
// names.
std::string blamed_param(const arrival& a) {
  return a.prepared.constraint ? std::string() : a.asked.constraint_param;
}

// What another gateway needs to go on with this job of the request; null: no frame has room for it.
std::shared_ptr<const std::string> resume_of(const arrival& a, const job_stream::state_block& s,
                                             const constraint_warnings* warnings) {
  core::fleet::resume_part p;
  p.user = a.asked.who.user;
  p.skip_special = s.skip_special;
  p.shows_prompt = a.asked.echo;
  if (const auto& plan = a.prepared.answer) {
    p.parted = true;
    p.separate_reasoning = plan->separate_reasoning;
    p.begins_in_reasoning = plan->begins_in_reasoning;
    p.calls_only = plan->calls_only;
    p.tools = plan->tools;
  }
  if (warnings) p.warnings = *warnings;
  if (s.id == a.choices.front()->id) {
    for (const auto& one : a.choices) p.choices.push_back(one->id);
    p.client = *a.asked.resumable;
  } else {
    p.choices.push_back(a.choices.front()->id);
  }
  auto out = std::make_shared<const std::string>(core::fleet::bytes_of(p));
  return out->size() <= core::fleet::longest_resume ? out : nullptr;
}

// The mailbox has room for all jobs that admission lets in, so only a wrong count in this program leads here.
core::error mailbox_is_full() { return overloaded(1, "the mailbox of the model's owner is full"); }

}  // namespace

core::error no_memory_for_clients() {
  return overloaded(1, "what clients hold has reached the server's limit of memory");
}

std::uint64_t input_bytes(const request& r) {
  std::uint64_t sum = bytes_of(r.input);
  for (const prompt_input& input : r.more_inputs) sum += sizeof input + bytes_of(input);
  return sum + constraint_bytes(r) + tools_bytes(r) + list_bytes(r);
}

std::uint64_t list_bytes(const request& r) {
  std::uint64_t sum = r.stop_token_ids.size() * sizeof(r.stop_token_ids.front());
  sum += r.sampling.logit_bias.size() * sizeof(r.sampling.logit_bias.front());
  return sum + texts_bytes(r.stop) + (r.banned_strings ? texts_bytes(*r.banned_strings) : 0);
}

// Each handler moves a copy of its own, made here: a shard that had no memory for a copy would leave its
// client waiting. (A plain capture of `why` would be const, and copied again.)
void arrival::refuse(const core::error& why) const {
  for (const auto& s : choices)
    boost::asio::post(s->shard, [s, mine = core::error(why)]() mutable { s->refused(std::move(mine)); });
}

bool arrival::abandoned() const {
  return std::ranges::all_of(choices, [](const auto& s) { return s->abandoned(); });
}

bool arrival::prepare(core::turn& at) {
  if (abandoned()) return false;  // the streams have ended
  auto known = actors::prepare(asked, *model, at);
  if (!known) {
    refuse(known.error());
    return false;
  }
  prepared = std::move(*known);
  const std::uint64_t text = prepared.prompt ? prepared.prompt->text.size() : 0;
  if (memory.resize(memory.bytes() + text + rules_bytes(prepared, asked))) return true;
  refuse(no_memory_for_clients());
  return false;
}

bool arrival::judge(core::turn& at) {
  const auto bytes = memory.bytes();
  if (!prepare(at)) return false;
  auto job = job_without_prompt(asked, *model);
  core::result<void> fine;
  if (!job) fine = job.error();
  for (std::size_t i = 0; fine && i <= asked.more_inputs.size(); ++i) {
    core::job one = *job;
    if (i > 0) std::swap(asked.input, asked.more_inputs[i - 1]);
    fine = take_prompt(one, asked, prepared, *model, at);
    if (i > 0) std::swap(asked.input, asked.more_inputs[i - 1]);
  }
  prepared = {};
  (void)memory.resize(bytes);  // it was more
  if (fine) return true;
  refuse(fine.error());
  return false;
}

const core::grammar::constraint_text* arrival::wanted() const {
  if (prepared.constraint) return &*prepared.constraint;
  return asked.constraint ? &*asked.constraint : nullptr;
}

bool arrival::constraint_is_ready() {
  const auto* text = wanted();
  if (!text || constraint) return true;
  constraint = model->constraints->known(*text, blamed_param(*this));
  return constraint.has_value();
}

bool arrival::compile_constraint(core::turn& at, std::function<void()> settled) {
  constraint = model->constraints->get(*wanted(), blamed_param(*this), at, std::move(settled));
  return constraint.has_value();
}

void arrival::bring_in(core::turn& at) {
  const auto on_its_way = std::exchange(way, nullptr);  // it has arrived at the end of this call
  if (abandoned()) return;                              // the streams have ended
  auto all = plan_of(*this, at);
  if (!all) return refuse(all.error());
  if (all->jobs.empty()) return;
  memory.force(all->bytes);  // no more than was counted before: the text is not needed any more

  const auto count = static_cast<std::uint32_t>(all->jobs.size());
  const auto in = admitted_by(asked, *model, *all);
  if (!in) return refuse(in.error());
  auto& admission = *(*in)->admission;
  admitted_jobs places(admission, count);
  for (const auto& a : asked.accounts)
    if (a) a->admitted(count, all->prompt_tokens, choices.front()->time->now());
  for (const made& m : all->jobs)
    m.prompt->counts(admission, static_cast<std::uint32_t>(m.job.prompt.size()));
  const auto shared = std::make_shared<const core::memory_hold>(memory.split(all->shared));
  const auto warnings = warnings_of(*all, asked, prepared);
  for (auto left = count; auto& m : all->jobs) {
    const auto& s = m.stream;
    s->open_queue();
    s->taken_by = *in;
    s->prompt = m.prompt;
    s->pausable = std::move(m.pausable);
    s->deadline = m.job.deadline;
    s->prompt_tokens = static_cast<std::uint32_t>(m.job.prompt.size());
    s->first_prompt_token = m.job.prompt.front();
    if (m.job.healing) s->healed = m.job.healing->bytes.size();
    s->engine_token_bytes = engine_token_bytes(m.job);
    s->memory = memory.split(m.bytes);
    s->shared_memory = shared;
    if (asked.resumable && (*in)->far) s->resume = resume_of(*this, *s, warnings.get());
    if (s->resume) s->memory.force(s->memory.bytes() + s->resume->size());
    const auto ahead = admission.waiting() - std::min(admission.waiting(), --left);
    if (!(*in)->port->submit(std::move(m.job), s)) {
      s->prompt.reset();
      return refuse(mailbox_is_full());
    }
    places.taken();
    core::insist([&] {
      boost::asio::post(s->shard,
                        [s = s, by = model, in = *in, ahead, text = m.prompt_text, warnings,
                         parts = prepared.answer] { s->admitted(by, in, ahead, text, warnings, parts); });
    });
  }
}

}  // namespace weir::actors
