#include "actors/service.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <boost/asio/bind_executor.hpp>
#include <cerrno>
#include <system_error>
#include <unordered_map>

#include "actors/job_state.h"
#include "actors/job_witness.h"
#include "actors/service_doors.h"
#include "actors/service_parts.h"
#include "core/insist.h"

namespace weir::actors {
namespace {

namespace asio = boost::asio;
using core::errc;

// An owner is not healthy if it has had work for this long without finishing a step.
constexpr core::duration wedged_after = std::chrono::seconds(10);

// If so many jobs of a model in a row end in bad logits, the cause is the model and not the jobs.
constexpr std::uint32_t bad_endings_in_a_row = 8;

// Ids that nobody can guess. The system gives sixteen at a time: a request may have 256 jobs.
core::job_id random_id() {
  thread_local std::array<std::uint64_t, 32> words;
  thread_local std::size_t left = 0;
  if (left == 0) {
    if (::getrandom(words.data(), sizeof words, 0) != sizeof words)
      throw std::system_error(errno, std::system_category(), "getrandom");
    left = words.size();
  }
  left -= 2;
  return {words[left], words[left + 1]};
}

void tell_witness(job_witness& witness, const outcome& o, const job_stream::state_block& job) {
  const bool refused = job.now == job_stream::phase::refused;
  const std::string_view model = job.model ? std::string_view(job.model->name) : std::string_view();
  witness.ended({job.id, model, o, refused ? &job.why_refused : nullptr, job.time->now() - job.created});
}

// The shortest wait of any place, which is where a job would go.
core::duration predicted_wait(const served_model& m) {
  auto least = core::duration::max();
  for (const auto& p : m.places) least = std::min(least, p->admission->predicted_wait());
  return least;
}

// With commas between them, in the order of the loads.
std::string devices_of(const served_model& m) {
  std::string out;
  for (const auto& p : m.places) out += (out.empty() ? "" : ",") + p->device;
  return out;
}

// In the order of the loads: free and total become those of the last load on the device.
void add_to(std::vector<device_memory>& all, const std::string& device, const memory_use& use) {
  const auto there = std::ranges::find(all, device, &device_memory::device);
  if (there == all.end())
    all.push_back({device, use});
  else
    there->use += use;
}

executor place(const service_options& o) { return o.simulated ? o.simulated->everything : executor(); }

std::shared_ptr<core::grammar::constraint_cache> constraints_of(const owner_options& o) {
  core::grammar::constraint_cache::options most;
  most.max_bytes = o.grammar_cache_bytes;
  return std::make_shared<core::grammar::constraint_cache>(most);
}

// The device of each host.
std::vector<std::string> devices_named(const service_options& o) {
  return o.devices.empty() ? std::vector{o.owner.device} : o.devices;
}

std::vector<std::unique_ptr<host>> hosts_of(const service_options& o, const timekeeper& t,
                                            const shared_by_owners& shared) {
  std::vector<std::unique_ptr<host>> out;
  for (auto& device : devices_named(o)) {
    auto own = o.owner;
    own.models = std::max(own.models, o.models.size());
    own.device = std::move(device);
    out.push_back(std::make_unique<gpu_owner>(std::move(own), t, shared, place(o)));
  }
  return out;
}

}  // namespace

service::parts::parts(service_options o, const timekeeper& t)
    : time(t),
      lasting(t.lasting()),
      seen(o.seen),
      next_id(o.simulated ? o.simulated->next_id : random_id),
      list(o.aliases),
      presets(std::move(o.presets)),
      shared{seen, constraints_of(o.owner)},
      control_ex(o.simulated ? place(o) : own_thread()),
      hosts(hosts_of(o, t, shared)),
      registry(spawn_registry(control_ex, t, seen, [this](auto& views) { look(views); })),
      book(o.owner, devices_named(o), o.measured, o.sleep_bytes),
      most_models(std::max(o.owner.models, o.models.size())),
      demand(o.demand),
      models(control_ex, for_models(o)),
      share_prefixes(o.share_prefixes),
      slo(o.owner.slo),
      constraint_pool(o.text, t, seen, for_constraints, place(o)),
      pool(o.text, t, seen, for_texts, place(o)) {}

service::parts::~parts() {
  registry.stop();
  models.stop(control.has_value());
}

model_registry::parts service::parts::for_models(const service_options& o) {
  return {.time = time,
          .hosts = hosts,
          .list = list,
          .memory = book,
          .seen = seen,
          .start = plan_loads(o.models, std::max(1u, o.copies), hosts.size()),
          .known = o.known_models,
          .most_models = most_models,
          .drain = o.drain,
          .demand = o.demand,
          .read =
              [this](std::function<void()> work, std::function<void(std::optional<core::error>)> done) {
                read_files(std::move(work), control_ex, std::move(done));
              },
          .describe = [this](const known_model& m) { return status_of(m); }};
}

executor service::parts::own_thread() {
  exclusive_thread::options own{.name = "weir-control"};
  own.on_escape = [s = seen](std::exception_ptr what) { s->note("the control thread", std::move(what)); };
  return control.emplace(std::move(own)).get_executor();
}

std::vector<board::picture> service::parts::pictures() const {
  std::vector<board::picture> out;
  for (const auto& h : hosts) out.push_back(h->published().look());
  return out;
}

void service::parts::look(std::vector<job_view>& views) const {
  const auto shown = pictures();
  std::unordered_map<core::job_id, const listed_job*, core::job_id_hash> by_id;
  for (const auto& p : shown)
    for (const auto& j : p->jobs) by_id.emplace(j.sequence.id, &j);
  const auto models = list.models();
  for (auto& v : views) {
    const auto it = by_id.find(v.id);
    if (it == by_id.end()) continue;
    const auto& s = it->second->sequence;
    v.state = core::name(s.state);
    v.prompt_tokens = s.prompt_tokens;
    v.output_tokens = s.output_tokens;
    v.cached_tokens = s.cached_tokens;
    v.pages = s.pages;
    v.preemptions = s.preemptions;
    v.priority = s.priority;
    if (const auto m = model_list::at(*models, it->second->engine)) v.model = m->name;
  }
}

service::service(service_options o, const timekeeper& time)
    : p_(std::make_shared<parts>(std::move(o), time)) {}

service::~service() = default;

void service::load(model_progress progress, executor ex, std::function<void(core::result<>)> done) {
  p_->models.start(std::move(progress), std::move(ex), std::move(done));
}

std::shared_ptr<job_stream::state_block> service::parts::begin_choice(const request& r,
                                                                      std::optional<core::job_id> answer,
                                                                      std::shared_ptr<ended_jobs> of,
                                                                      const executor& shard) {
  const auto id = next_id();
  return begin_job(r, id, answer.value_or(id), std::nullopt, std::move(of), shard);
}

std::shared_ptr<job_stream::state_block> service::parts::begin_job(const request& r, core::job_id id,
                                                                   core::job_id answer,
                                                                   std::optional<core::time_point> created,
                                                                   std::shared_ptr<ended_jobs> of,
                                                                   const executor& shard) {
  auto s = std::make_shared<job_stream::state_block>(
      id, shard, lasting,
      [to = registry, kept = r.until_ended, by = std::move(of), hears = r.witness](
          const outcome& o, const job_stream::state_block& job) mutable {
        kept.reset();  // before anybody hears of the end
        const bool accepted = job.now != job_stream::phase::refused;
        if (by && accepted) by->add(o.reason, job.time->now());
        if (const auto witness = std::exchange(hears, nullptr)) tell_witness(*witness, o, job);
        job_view v;
        v.id = job.id;
        v.state = core::name(core::sequence_state::finished);
        v.finish_reason = core::name(o.reason);
        if (job.model) v.model = job.model->name;
        v.prompt_tokens = o.input_tokens;
        v.output_tokens = o.output_tokens;
        v.cached_tokens = o.cached_tokens;
        to.tell(job_ended(std::move(v), accepted));
      },
      created);
  s->skip_special = r.skip_special_tokens;
  s->accounts = r.accounts;
  s->user = r.who.user;
  s->answer = answer;
  s->stay = r.stay;
  for (const auto& a : s->accounts)
    if (a) a->begun();
  registry.tell(job_born(id, answer, r.who, s->created, [weak = std::weak_ptr(s)] {
    if (auto alive = weak.lock()) alive->cancel(core::finish_reason::cancel);
  }));
  return s;
}

core::result<> service::parts::check(arrival& a) {
  if (draining.load(std::memory_order_relaxed))
    return core::make_error(errc::unavailable, "the server is shutting down");
  core::result<> fine = find_model(a);
  if (fine) fine = take_preset(a.asked, presets);
  if (!fine || a.waits) return fine;
  for (const auto& place : a.model->places)
    if (fine = place->admission->check_wait(a.model->name, pool.predicted_wait()); fine) break;
  return fine;
}

std::shared_ptr<job_stream> service::submit(request r, executor shard, job_stream::reader changed) {
  return std::move(submit(std::move(r), 1, std::move(shard), std::move(changed)).front());
}

std::vector<std::shared_ptr<job_stream>> service::submit(request r, std::uint32_t n, executor shard,
                                                         job_stream::reader changed) {
  auto a = std::make_shared<arrival>();
  a->asked = std::move(r);
  a->bytes = a->asked.bytes ? *a->asked.bytes : input_bytes(a->asked);
  const principal& who = a->asked.who;
  if (who.user != 0) {
    a->prefix_owner = who.user;
  } else if (!p_->share_prefixes) {
    a->prefix_owner = who.key;
  }
  const auto fine = p_->check(*a);
  std::vector<std::shared_ptr<job_stream>> streams;
  std::optional<core::job_id> answer;
  const std::size_t choices = n * (1 + a->asked.more_inputs.size());
  for (std::size_t i = 0; i < choices; ++i) {
    a->choices.push_back(p_->begin_choice(a->asked, answer, a->ended, shard));
    answer = a->choices.front()->id;
    streams.push_back(std::make_shared<job_stream>(a->choices.back()));
    streams.back()->follow(changed);
  }
  a->asked.until_ended.reset();  // each choice has its own copy of both
  a->asked.witness.reset();
  a->memory = core::memory_hold(p_->memory);
  if (!fine) {
    a->refuse(fine.error());
  } else if (!a->memory.resize(a->bytes + list_bytes(a->asked) + choices * job_bytes_of(a->asked))) {
    a->refuse(no_memory_for_clients());
  } else {
    if (const auto& top = a->asked.top_logprobs)  // job_without_prompt() checks the number
      for (const auto& c : a->choices)
        c->keep_logprobs(
            static_cast<std::uint32_t>(std::clamp<std::int64_t>(*top, 0, core::most_top_logprobs)));
    !a->waits ? p_->begin_text(a) : a->model ? p_->check_and_wait(a) : p_->wait_for_model(a);
  }
  if (a->bytes > longest_text_here) p_->pool.drop(std::move(a));  // it may be the last owner
  return streams;
}

void service::parts::begin_text(const std::shared_ptr<arrival>& a) {
  post(pool, a, [this, a](core::turn& at) {
    if (!a->prepare(at)) return;
    if (a->constraint_is_ready()) return a->bring_in(at);
    begin_constraint(a);
  });
}

// Where another request's task compiles the same constraint, this one takes no place until that has ended.
void service::parts::begin_constraint(const std::shared_ptr<arrival>& a) {
  post(constraint_pool, a, [this, a](core::turn& at) {
    const auto again = [this, a] { core::insist([&] { begin_constraint(a); }); };
    if (a->compile_constraint(at, again)) a->bring_in(at);
  });
}

void service::parts::post(text_pool& to, const std::shared_ptr<arrival>& a,
                          std::function<void(core::turn&)> run) {
  to.post({.key = a->asked.who.key,
           .bytes = a->bytes,
           .run = std::move(run),
           .refuse = [a](const core::error& why) { a->refuse(why); },
           .unwanted = [a] { return a->abandoned(); }});
}

const model_aliases& service::aliases() const noexcept { return p_->list.aliases(); }

const sampling_presets& service::presets() const noexcept { return p_->presets; }

bool service::takes_model(std::string_view name) const {
  const auto all = p_->list.look();
  const auto known = p_->list.known(*all, name);
  return known && ((*known)->served || ((*known)->far ? (*known)->on_demand : p_->demand.on));
}

std::string service::model_behind(std::string_view name) const { return std::string(p_->list.behind(name)); }

std::vector<model_entry> service::models() const {
  std::vector<model_entry> out;
  const auto all = p_->list.models();
  for (const auto& m : *all)
    out.push_back({m->name, m->created_s, m->context, m->info.vocab_size, devices_of(*m),
                   m->chat->fault() ? m->chat->fault()->message : std::string(), m->notes, m->chat});
  return out;
}

void service::list_jobs(asker who, executor ex, std::function<void(std::vector<job_view>)> done) {
  p_->registry.tell(
      actors::list_jobs(who, [ex, done](std::vector<job_view> v) { post_call(ex, done, std::move(v)); }));
}

void service::find_job(asker who, core::job_id id, executor ex,
                       std::function<void(std::optional<job_view>)> done) {
  p_->registry.tell(
      actors::find_job(who, id, false, [ex, done](auto v) { post_call(ex, done, std::move(v)); }));
}

void service::cancel_job(asker who, core::job_id id, executor ex,
                         std::function<void(std::optional<job_view>)> done) {
  p_->registry.tell(
      actors::find_job(who, id, true, [ex, done](auto v) { post_call(ex, done, std::move(v)); }));
}

const core::clock& service::clock() const noexcept { return p_->time; }
const std::shared_ptr<core::memory_account>& service::memory() const noexcept { return p_->memory; }
core::incidents& service::seen() const noexcept { return *p_->seen; }

snapshot service::stats() const {
  snapshot s;
  for (const auto& p : p_->pictures()) {
    for (const auto& e : p->engines) s.engine += e.counts;
    // A host publishes no picture while it is idle, so the rate in an old picture is out of date.
    if (p_->time.now() - p->at <= std::chrono::seconds(1)) s.tokens_per_s += p->tokens_per_s;
    s.step_p50_ms = std::max(s.step_p50_ms, p->step_p50_ms);
    s.step_p99_ms = std::max(s.step_p99_ms, p->step_p99_ms);
  }
  s.slo = p_->slo;
  core::duration longest{};
  const auto all = p_->list.look();
  for (const auto& m : all->served) longest = std::max(longest, predicted_wait(*m));
  s.ended = all->past_ended;
  s.engine += all->past;
  for (const auto& m : all->known) {
    s.engine += m.past;
    for (const auto n : m.ended->look()) s.ended += n;
  }
  for (const auto& d : devices()) s.memory.add_device(d.use);
  s.predicted_wait_ms =
      std::chrono::duration<double, std::milli>(longest + p_->pool.predicted_wait()).count();
  s.text = {p_->pool.tasks() + p_->constraint_pool.tasks(),
            p_->pool.bytes() + p_->constraint_pool.bytes()};
  return s;
}

std::vector<model_figures> service::figures() const {
  const auto shown = p_->pictures();
  const auto text_wait = p_->pool.predicted_wait();
  std::vector<model_figures> all;
  const auto list = p_->list.look();
  for (const auto& known : list->known) {
    const auto& m = known.texts();
    if (!m) continue;
    model_figures f;
    f.name = m->name;
    f.engine += known.past;
    for (std::size_t i = 0; i < m->places.size(); ++i) {
      const auto& place = m->places[i];
      for (const auto& p : shown) {
        const engine_picture e = p->of(place->engine);
        f.engine += e.counts;
        f.measures += e.measures;
      }
      if (!place->far || known.far) add_to(f.memory, place->device, known.use_of(i));
    }
    f.ended = m->ended->look();
    f.predicted_wait =
        (known.served ? predicted_wait(*m) : model_list::predicted_load(*list, known)) + text_wait;
    f.share = known.spec.share.value_or(1);
    const auto parts = known.served ? p_->parts_of(known) : device_parts();
    f.share_asked = parts.asked;
    f.share_got = parts.got;
    all.push_back(std::move(f));
  }
  return all;
}

std::vector<device_memory> service::devices() const {
  std::vector<device_memory> out;
  const auto all = p_->list.look();
  for (const auto& m : all->known) {
    if (!m.texts()) continue;
    for (std::size_t i = 0; i < m.texts()->places.size(); ++i)
      if (const auto& place = *m.texts()->places[i]; !place.far || m.far)
        add_to(out, place.device, m.use_of(i));
  }
  return out;
}

const core::delays& service::cancel_to_release() const noexcept { return *p_->shared.cancel_to_release; }

readiness service::ready() const {
  if (!p_->list.started()) return {false, "models are loading"};
  for (const auto& h : p_->hosts)
    if (auto why = h->published().fault(); !why.empty()) return {false, why};
  if (p_->draining) return {false, "shutting down"};
  for (const auto& h : p_->hosts) {
    const auto& shown = h->published();
    if (const auto silent = shown.silent_for(p_->time.now()); silent && *silent > wedged_after)
      return {false, fmt::format("the engine has not finished a step for {} s",
                                 std::chrono::duration_cast<std::chrono::seconds>(*silent).count())};
    const auto picture = shown.look();
    const auto all = p_->list.models();
    for (const auto& m : *all)
      for (const auto& place : m->places)
        if (const auto bad = picture->of(place->engine).bad_endings; bad >= bad_endings_in_a_row)
          return {false,
                  fmt::format("the last {} jobs of {} ended in logits that are not finite", bad, m->name)};
  }
  return {true, {}};
}

service_doors service::doors() const {
  return {p_->list,
          p_->pool,
          p_->constraint_pool,
          p_->hosts,
          p_->lasting,
          p_->memory,
          p_->shared.constraints,
          p_->shared.cancel_to_release,
          p_->seen,
          [p = p_.get()](std::shared_ptr<const void> what) { p->kept.push_back(std::move(what)); },
          [p = p_.get()](const request& r, core::job_id id, core::job_id answer, core::time_point created,
                         std::shared_ptr<const served_model> model, const executor& shard) {
            return p->begin_job(r, id, answer, created, model ? model->ended : nullptr, shard);
          },
          [p = p_.get()] { return p->all_models(); },
          [p = p_.get()](std::weak_ptr<job_finder> who) {
            const std::lock_guard held(p->finder_lock);
            p->job_finder_ = std::move(who);
          },
          p_->demand,
          [p = p_.get()](model_wish w) { p->models.wish(std::move(w)); }};
}

std::shared_ptr<job_finder> service::parts::finder() const {
  const std::lock_guard held(finder_lock);
  return job_finder_.lock();
}

bool service::finds_elsewhere() const { return p_->finder() != nullptr; }

void service::find_elsewhere(job_search s) {
  const auto by = p_->finder();
  const bool leaves = p_->draining.load(std::memory_order_relaxed);
  if (by && !leaves) return by->find(std::move(s));
  job_search::answer no;
  if (by) {
    no.how = job_search::end::refused;
    no.why = core::make_error(errc::unavailable, "the server is shutting down");
  }
  core::insist([&] { asio::post(s.shard, [done = s.done, no] { done(no); }); });
}

void service::ask_cell(cell_question q) {
  if (const auto by = p_->finder()) return by->ask(std::move(q));
  core::insist([&] { asio::post(q.ex, [done = q.done] { done({}); }); });
}

void service::cancel_all() { p_->registry.tell(actors::cancel_all{}); }

void service::drain(executor ex, std::function<void()> idle) {
  p_->draining = true;
  const auto why = core::make_error(errc::unavailable, "the server is shutting down");
  p_->models.end_wishes(why);
  if (const auto far = p_->finder()) far->end_wishes(why);
  p_->registry.tell(when_empty([ex, idle] { asio::post(ex, idle); }));
}

}  // namespace weir::actors
