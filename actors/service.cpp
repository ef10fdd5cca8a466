#include "actors/service.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <mutex>
#include <random>
#include <unordered_map>

#include "actors/arrival.h"
#include "actors/counted_text.h"
#include "actors/job_state.h"
#include "actors/job_witness.h"
#include "actors/make_job.h"
#include "actors/model_list.h"
#include "actors/registry.h"
#include "actors/text_pool.h"

namespace weir::actors {
namespace {

namespace asio = boost::asio;
using core::errc;

// An owner is not healthy if it has had work for this long without finishing a step.
constexpr core::duration wedged_after = std::chrono::seconds(10);

// If so many jobs of a model in a row end in bad logits, the cause is the model and not the jobs.
constexpr std::uint32_t bad_endings_in_a_row = 8;

core::job_id random_id() {
  thread_local std::random_device device;
  const auto word = [] { return std::uint64_t{device()} << 32 | device(); };
  return {word(), word()};
}

template <class F, class... A>
void post_call(const executor& ex, F f, A... a) {
  asio::post(ex, [f = std::move(f), ... a = std::move(a)]() mutable { f(std::move(a)...); });
}

void tell_witness(job_witness& witness, const outcome& o, const job_stream::state_block& job) {
  const bool refused = job.now == job_stream::phase::refused;
  const std::string_view model = job.model ? std::string_view(job.model->name) : std::string_view();
  witness.ended({job.id, model, o, refused ? &job.why_refused : nullptr, job.time->now() - job.created});
}

// How far the load under way is. The owner's thread may say so after the service has ended.
class load_board {
 public:
  void note(load_state s) {
    const std::lock_guard held(lock_);
    now_ = std::move(s);
  }
  load_state look() const {
    const std::lock_guard held(lock_);
    return now_;
  }

 private:
  mutable std::mutex lock_;
  load_state now_;
};

}  // namespace

struct service::parts {
  parts(service_options o, const timekeeper& t)
      : time(t),
        lasting(t.lasting()),
        seen(o.seen),
        next_id(o.simulated ? o.simulated->next_id : random_id),
        owner(with_mailbox_for(o), t, seen, place(o)),
        registry(spawn_registry(o.simulated ? place(o) : own_thread(), t, seen,
                                [this](auto& views) { look(views); })),
        specs(std::move(o.models)),
        share_prefixes(o.share_prefixes),
        slo(o.owner.slo),
        constraint_pool(o.text, t, seen, constraint_threads, place(o)),
        pool(o.text, t, seen, text_threads, place(o)) {}

  ~parts() { registry.stop(); }

  static executor place(const service_options& o) {
    return o.simulated ? o.simulated->everything : executor();
  }

  executor own_thread() {
    exclusive_thread::options own{.name = "weir-control"};
    own.on_escape = [s = seen](std::exception_ptr what) { s->note("the control thread", std::move(what)); };
    return control.emplace(std::move(own)).get_executor();
  }

  static owner_options with_mailbox_for(const service_options& o) {
    auto own = o.owner;
    own.models = std::max<std::size_t>(1, o.models.size());
    return own;
  }

  // Fills in the state of live jobs from the picture that their owner published.
  void look(std::vector<job_view>& views) const {
    const auto picture = owner.published().look();
    std::unordered_map<core::job_id, const listed_job*, core::job_id_hash> by_id;
    for (const auto& j : picture->jobs) by_id.emplace(j.sequence.id, &j);
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

  // Makes the stream of one choice of a request for `model`, which is null where there is none, and tells the
  // registry. `answer`: see job_born; nullopt: the choice is the first.
  std::shared_ptr<job_stream::state_block> begin_choice(const request& r, std::optional<core::job_id> answer,
                                                        model_list::model_ptr model, const executor& shard);
  // Finds the model, and returns the errors that are already certain, so that the text is not tokenised in
  // vain.
  core::result<> check(arrival& a);
  void begin_text(const std::shared_ptr<arrival>& a);
  void post(text_pool& to, const std::shared_ptr<arrival>& a, std::function<void()> run);

  const timekeeper& time;
  const std::shared_ptr<const core::clock> lasting;  // for the streams
  const std::shared_ptr<core::incidents> seen;
  const std::shared_ptr<core::memory_account> memory = std::make_shared<core::memory_account>();
  const std::function<core::job_id()> next_id;
  std::atomic<bool> draining{false};
  model_list list;
  const std::shared_ptr<load_board> load_so_far = std::make_shared<load_board>();
  gpu_owner owner;
  std::optional<exclusive_thread> control;
  ref<registry_msg> registry;
  std::vector<model_spec> specs;
  const bool share_prefixes;
  const core::objective slo;
  // The pools are last, because their threads use the members above. Requests whose constraint was not
  // compiled before go from `pool` to `constraint_pool`: compiling one may take seconds, and no other text
  // waits for it.
  static constexpr std::uint32_t text_threads = 2, constraint_threads = 3;
  text_pool constraint_pool, pool;
};

service::service(service_options o, const timekeeper& time)
    : p_(std::make_shared<parts>(std::move(o), time)) {}

service::~service() = default;

void service::load(model_progress progress, executor ex, std::function<void(core::result<>)> done) {
  const auto board = p_->load_so_far;
  model_progress both = [board, progress = std::move(progress)](const std::string& model, std::uint64_t done,
                                                                std::uint64_t total) {
    board->note({model, done, total});
    if (progress) progress(model, done, total);
  };
  // Models are loaded one after the other: (*next)(i) loads specs[i], and then calls itself with i + 1.
  auto next = std::make_shared<std::function<void(std::size_t)>>();
  *next = [weak = std::weak_ptr(p_), both, ex, done, again = std::weak_ptr(next)](std::size_t i) {
    const auto p = weak.lock();
    if (i == p->specs.size()) {
      p->list.complete();
      return post_call(ex, done, core::result<>());
    }
    p->load_so_far->note({.model = p->specs[i].name});
    p->owner.mail().ask<load_model>(
        asio::bind_executor(
            ex,
            [weak, done, i, keep = again.lock()](boost::system::error_code lost, load_model::result r) {
              if (lost)
                return done(
                    core::make_error(errc::internal, "the owner of the device is gone: {}", lost.message()));
              if (!r) return done(r.error());
              const auto alive = weak.lock();
              if (!alive) return done(core::make_error(errc::unavailable, "the service has ended"));
              alive->list.add(std::move(*r));
              (*keep)(i + 1);
            }),
        p->specs[i], both);
  };
  (*next)(0);
}

std::shared_ptr<job_stream::state_block> service::parts::begin_choice(const request& r,
                                                                      std::optional<core::job_id> answer,
                                                                      model_list::model_ptr model,
                                                                      const executor& shard) {
  const auto id = next_id();
  auto s = std::make_shared<job_stream::state_block>(
      id, shard, lasting,
      [to = registry, kept = r.until_ended, by = std::move(model), hears = r.witness](
          const outcome& o, const job_stream::state_block& job) mutable {
        kept.reset();  // before anybody hears of the end
        const bool accepted = job.now != job_stream::phase::refused;
        if (by && accepted) by->ended->add(o.reason);
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
      });
  s->skip_special = r.skip_special_tokens;
  s->accounts = r.accounts;
  for (const auto& a : s->accounts)
    if (a) a->begun();
  registry.tell(job_born(id, answer.value_or(id), r.who, s->created, [weak = std::weak_ptr(s)] {
    if (auto alive = weak.lock()) alive->cancel(core::finish_reason::cancel);
  }));
  return s;
}

core::result<> service::parts::check(arrival& a) {
  if (draining.load(std::memory_order_relaxed))
    return core::make_error(errc::unavailable, "the server is shutting down");
  auto found = list.find(a.asked.model);
  if (!found) return found.error();
  a.model = std::move(*found);
  return a.model->admission->check_wait(a.model->name, pool.predicted_wait());
}

std::shared_ptr<job_stream> service::submit(request r, executor shard, job_stream::reader changed) {
  return std::move(submit(std::move(r), 1, std::move(shard), std::move(changed)).front());
}

std::vector<std::shared_ptr<job_stream>> service::submit(request r, std::uint32_t n, executor shard,
                                                         job_stream::reader changed) {
  const auto a = std::make_shared<arrival>();
  a->asked = std::move(r);
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
    a->choices.push_back(p_->begin_choice(a->asked, answer, a->model, shard));
    answer = a->choices.front()->id;
    streams.push_back(std::make_shared<job_stream>(a->choices.back()));
    streams.back()->follow(changed);
  }
  a->asked.until_ended.reset();  // each choice has its own copy of both
  a->asked.witness.reset();
  a->memory = core::memory_hold(p_->memory);
  if (!fine) {
    a->refuse(fine.error());
  } else if (!a->memory.resize(a->bytes() + list_bytes(a->asked) + choices * job_bytes_of(a->asked))) {
    a->refuse(no_memory_for_clients());
  } else {
    if (const auto& top = a->asked.top_logprobs)  // make_job() checks the number
      for (const auto& c : a->choices)
        c->keep_logprobs(
            static_cast<std::uint32_t>(std::clamp<std::int64_t>(*top, 0, core::most_top_logprobs)));
    p_->begin_text(a);
  }
  return streams;
}

void service::parts::begin_text(const std::shared_ptr<arrival>& a) {
  post(pool, a, [this, a] {
    if (a->constraint_is_ready()) return a->bring_in();
    post(constraint_pool, a, [a] { a->bring_in(); });
  });
}

void service::parts::post(text_pool& to, const std::shared_ptr<arrival>& a, std::function<void()> run) {
  to.post({.key = a->asked.who.key,
           .bytes = a->bytes(),
           .run = std::move(run),
           .refuse = [a](const core::error& why) { a->refuse(why); }});
}

std::vector<model_entry> service::models() const {
  std::vector<model_entry> out;
  for (const auto& m : *p_->list.models())
    out.push_back({m->name, m->created_s, m->context, m->info.vocab_size, m->device,
                   m->chat->fault() ? m->chat->fault()->message : std::string()});
  return out;
}

std::optional<load_state> service::loading() const {
  if (!p_->list.loading()) return std::nullopt;
  return p_->load_so_far->look();
}

void service::tokenize(std::string model, std::string text, bool add_special, executor ex,
                       std::function<void(core::result<tokenized>)> done, const text_client& from) {
  using answer = core::result<tokenized>;
  struct held_text {
    std::string text;
    core::memory_hold memory;
  };
  const auto held = std::make_shared<held_text>(held_text{std::move(text), core::memory_hold(p_->memory)});
  const auto counted = std::make_shared<counted_text>(from.accounts, p_->time);
  text_pool::task work;
  work.key = from.key;
  work.bytes = held->text.size();
  if (!held->memory.resize(work.bytes)) return post_call(ex, done, answer(no_memory_for_clients()));
  work.run = [counted, p = p_.get(), model = std::move(model), held, add_special, ex, done] {
    const auto m = p->list.find(model);
    if (!m) return post_call(ex, done, answer(m.error()));
    tokenized t{{}, (*m)->tokenizer, core::memory_hold(p->memory)};
    t.ids = t.tokenizer->encode(held->text, {.add_special = add_special, .parse_special = true});
    t.ids.shrink_to_fit();
    counted->used(t.ids.size());
    if (!t.memory.resize(t.ids.size() * sizeof(core::token_id)))
      return post_call(ex, done, answer(no_memory_for_clients()));
    post_call(ex, done, answer(std::move(t)));
  };
  work.refuse = [ex, done](core::error why) { post_call(ex, done, answer(std::move(why))); };
  p_->pool.post(std::move(work));
}

void service::count_tokens(request r, executor ex, std::function<void(core::result<std::uint32_t>)> done) {
  using count = core::result<std::uint32_t>;
  struct held_request {
    request asked;
    core::memory_hold memory;
    counted_text counted;
    held_request(request r, std::shared_ptr<core::memory_account> of, const core::clock& time)
        : asked(std::move(r)), memory(std::move(of)), counted(asked.accounts, time) {}
  };
  const auto held = std::make_shared<held_request>(std::move(r), p_->memory, p_->time);
  text_pool::task work;
  work.key = held->asked.who.key;
  work.bytes = input_bytes(held->asked);
  if (!held->memory.resize(work.bytes)) return post_call(ex, done, count(no_memory_for_clients()));
  work.run = [p = p_.get(), held, ex, done] {
    const auto m = p->list.find(held->asked.model);
    if (!m) return post_call(ex, done, count(m.error()));
    core::jinja::limits most;
    most.time = &p->time;
    most.deadline = p->time.now() + longest_rendering;
    const auto prompt = prompt_of(held->asked, **m, most);
    if (!prompt) return post_call(ex, done, count(prompt.error()));
    held->counted.used(prompt->size());
    post_call(ex, done, count(static_cast<std::uint32_t>(prompt->size())));
  };
  work.refuse = [ex, done](core::error why) { post_call(ex, done, count(std::move(why))); };
  p_->pool.post(std::move(work));
}

void service::detokenize(std::string model, std::vector<std::int64_t> ids, executor ex,
                         std::function<void(core::result<detokenized>)> done, const text_client& from) {
  using answer = core::result<detokenized>;
  struct held_ids {
    std::vector<std::int64_t> ids;
    core::memory_hold memory;
  };
  const auto held = std::make_shared<held_ids>(held_ids{std::move(ids), core::memory_hold(p_->memory)});
  const auto counted = std::make_shared<counted_text>(from.accounts, p_->time);
  text_pool::task work;
  work.key = from.key;
  work.bytes = held->ids.size() * sizeof(std::int64_t);
  if (!held->memory.resize(work.bytes)) return post_call(ex, done, answer(no_memory_for_clients()));
  work.run = [counted, p = p_.get(), model = std::move(model), held, ex, done] {
    counted->used(held->ids.size());
    const auto m = p->list.find(model);
    if (!m) return post_call(ex, done, answer(m.error()));
    const auto& t = *(*m)->tokenizer;
    std::vector<core::token_id> known;
    for (auto id : held->ids) {
      if (id < 0 || id >= t.vocab_size())
        return post_call(ex, done,
                         answer(core::bad_param("ids", "ids: {} is outside the vocabulary (0 to {})", id,
                                                t.vocab_size() - 1)));
      known.push_back(static_cast<core::token_id>(id));
    }
    detokenized out{t.decode(known, {.skip_special = false, .clean_up_spaces = t.clean_up_spaces()}),
                    core::memory_hold(p->memory)};
    if (!out.memory.resize(out.text.capacity())) return post_call(ex, done, answer(no_memory_for_clients()));
    post_call(ex, done, answer(std::move(out)));
  };
  work.refuse = [ex, done](core::error why) { post_call(ex, done, answer(std::move(why))); };
  p_->pool.post(std::move(work));
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
  const auto p = p_->owner.published().look();
  snapshot s;
  for (const auto& e : p->engines) s.engine += e.counts;
  // The owner publishes no picture while it is idle, so the rate in an old picture is out of date.
  const bool old = p_->time.now() - p->at > std::chrono::seconds(1);
  s.tokens_per_s = old ? 0 : p->tokens_per_s;
  s.slo = p_->slo;
  s.step_p50_ms = p->step_p50_ms;
  s.step_p99_ms = p->step_p99_ms;
  core::duration longest{};
  for (const auto& m : *p_->list.models()) {
    longest = std::max(longest, m->admission->predicted_wait());
    s.memory += m->memory;
    for (const auto n : m->ended->look()) s.ended += n;
  }
  s.predicted_wait_ms =
      std::chrono::duration<double, std::milli>(longest + p_->pool.predicted_wait()).count();
  s.text = {p_->pool.tasks() + p_->constraint_pool.tasks(),
            p_->pool.bytes() + p_->constraint_pool.bytes()};
  return s;
}

std::vector<model_figures> service::figures() const {
  const auto p = p_->owner.published().look();
  const auto text_wait = p_->pool.predicted_wait();
  std::vector<model_figures> all;
  for (const auto& m : *p_->list.models()) {
    const engine_picture e = p->of(m->engine);
    all.push_back({m->name, m->device, e.counts, e.measures, m->ended->look(), m->memory,
                   m->admission->predicted_wait() + text_wait});
  }
  return all;
}

const core::delays& service::cancel_to_release() const noexcept {
  return p_->owner.published().cancel_to_release;
}

readiness service::ready() const {
  if (p_->list.loading()) return {false, "models are loading"};
  if (auto why = p_->owner.published().fault(); !why.empty()) return {false, why};
  if (p_->draining) return {false, "shutting down"};
  if (const auto silent = p_->owner.published().silent_for(p_->time.now()); silent && *silent > wedged_after)
    return {false, fmt::format("the engine has not finished a step for {} s",
                               std::chrono::duration_cast<std::chrono::seconds>(*silent).count())};
  const auto picture = p_->owner.published().look();
  for (const auto& m : *p_->list.models())
    if (const auto bad = picture->of(m->engine).bad_endings; bad >= bad_endings_in_a_row)
      return {false, fmt::format("the last {} jobs of {} ended in logits that are not finite", bad, m->name)};
  return {true, {}};
}

void service::cancel_all() { p_->registry.tell(actors::cancel_all{}); }

void service::drain(executor ex, std::function<void()> idle) {
  p_->draining = true;
  p_->registry.tell(when_empty([ex, idle] { asio::post(ex, idle); }));
}

}  // namespace weir::actors
