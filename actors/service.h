// service.h — the whole server without its sockets. It is the only interface that sessions and embedding
// programs use.
//
// It holds the text pool, the list of models, the hosts of their engines and the registry of jobs.
//
// Thread safety: every member from any thread, except submit(). Callbacks are posted to the executor that was
// passed in; they never run inside the call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/gpu_owner.h"
#include "actors/job_finder.h"
#include "actors/job_stream.h"
#include "actors/job_view.h"
#include "actors/memory_plan.h"
#include "actors/messages.h"
#include "actors/model_orders.h"
#include "actors/on_demand.h"
#include "actors/presets.h"
#include "actors/request.h"
#include "actors/text_pool.h"
#include "core/error.h"
#include "core/incidents.h"
#include "core/memory/account.h"

namespace weir::actors {

// One model of models().
struct model_entry {
  std::string name;
  std::int64_t created_s = 0;                 // Unix time of its load, in s
  std::uint32_t context = 0, vocab_size = 0;  // context: most tokens of a sequence
  std::string device;                         // cpu, reference, sim, cuda:0
  std::string no_messages;                    // why messages are refused; empty: they are taken
  std::vector<std::string> notes;             // of its load, for the log
  std::shared_ptr<const core::chat_template> chat;  // never null
};

// Memory of one device: the bytes that models take of it, and its total and free bytes.
struct device_memory {
  std::string device;
  memory_use use;
};

// Figures of one model, from what its hosts published between steps. Reading them does not wait for a step.
struct model_figures {
  std::string name;
  core::engine_counts engine;
  core::engine_measures measures;
  ended_jobs::counts ended;         // jobs that ended, as their clients were told, by finish_reason
  std::vector<device_memory> memory;  // of its load, each device once
  core::duration predicted_wait{};  // of a new job, tokenising included (admission_control.h)
  double share = 1;                 // its weight among the models of a device
  double share_asked = 0, share_got = 0;  // as in model_status
};

// Statistics of all models together, from the same source.
struct snapshot {
  core::engine_counts engine;  // sums over all engines
  std::uint64_t ended = 0;     // jobs that ended, as their clients were told
  memory_use memory;           // of all models together
  double tokens_per_s = 0;     // sampled; 0 where the owner published nothing for 1 s
  // Predicted wait of a new job for the busiest model (admission_control.h), tokenising included.
  double predicted_wait_ms = 0;
  // As in owner_options.
  core::objective slo;
  struct { std::uint32_t tasks = 0; std::uint64_t bytes = 0; } text;  // in the text pool
  double step_p50_ms = 0, step_p99_ms = 0;
};

// Whether the service can serve, and why not.
struct readiness { bool ready = false; std::string reason; };

// The longest text, in bytes, that an I/O thread parses or destroys itself: longer ones are work of the text
// pool. Parsing one takes a fraction of a millisecond.
inline constexpr std::size_t longest_text_here = 16 * 1024;

// How far the load of a model is, in bytes. `total` is 0 until the model's files were looked at.
struct load_state { std::string model; std::uint64_t done = 0, total = 0; };

// A text's tokens. `memory` counts the ids for as long as they are held.
struct tokenized {
  std::vector<core::token_id> ids;
  std::shared_ptr<const core::tokenizer> tokenizer;  // spells them; never null
  core::memory_hold memory;
};

// The text of token ids. `memory` counts it for as long as it is held.
struct detokenized {
  std::string text;
  core::memory_hold memory;
};

// For tests: a service without threads of its own. Everything it does is determined by the executor's order.
struct simulation {
  executor everything;                    // runs every actor and text task, one at a time
  std::function<core::job_id()> next_id;  // ids of new jobs; must not repeat
};

struct service_options {
  std::vector<model_spec> models;
  owner_options owner;
  std::vector<std::string> devices;  // one host for each, which replaces owner.device; empty: owner.device
  std::uint32_t copies = 1;          // of each model, on as many hosts; >= 1
  std::vector<model_spec> known_models;  // that an order may load by name; those of `models` are known, too
  std::uint64_t sleep_bytes = 0;  // of host memory, for the weights of models that sleep; 0: none does there
  model_aliases aliases;                 // none is the name of one of `models`, or has an alias as its model
  std::vector<planned_device> measured;  // devices whose memory was measured already; others are when needed
  sampling_presets presets;              // that requests may name, whatever their model
  core::duration drain = std::chrono::seconds(30);  // of an order to unload that names no time
  on_demand demand;                                 // whether requests load models
  text_bounds text;
  bool share_prefixes = false;  // share computed prefixes between API keys, not between users of tokens
  std::optional<simulation> simulated;  // for tests
  // Records exceptions that no nearer code handled.
  std::shared_ptr<core::incidents> seen = std::make_shared<core::incidents>();
};

struct service_doors;

class service {
 public:
  // `time` must outlive the service. No model is loaded yet: until load() is done, submit() refuses with
  // unavailable.
  service(service_options o, const timekeeper& time);
  ~service();
  service(const service&) = delete;
  service& operator=(const service&) = delete;

  // Loads the models one after the other on threads of their hosts, which also call `progress`. `done` gets
  // the result: the first error ends the load.
  void load(model_progress progress, executor ex, std::function<void(core::result<>)> done);

  // Submits a request and returns the stream of its job. The stream lives on `shard`; `changed` is its first
  // reader, as by job_stream::follow(). Errors are reported by the stream, as a refusal. REQUIRES: the
  // request has one prompt; called on `shard`'s thread.
  std::shared_ptr<job_stream> submit(request r, executor shard, job_stream::reader changed);
  // The same for n choices of each prompt: those of the first prompt in order, then those of the next. A
  // prompt is tokenised once, and all choices are admitted or refused together. They are one answer, which
  // the id of the first choice names. REQUIRES: n >= 1; called on `shard`'s thread.
  std::vector<std::shared_ptr<job_stream>> submit(request r, std::uint32_t n, executor shard,
                                                  job_stream::reader changed);

  // The models that are ready, in the order of their loads.
  std::vector<model_entry> models() const;
  // The names that stand for models, and the model that a name stands for: itself where it is no alias.
  const model_aliases& aliases() const noexcept;
  std::string model_behind(std::string_view name) const;
  // Whether a request for the model of this name is taken: the model is ready, or is loaded on demand.
  bool takes_model(std::string_view name) const;
  // What requests may name as their preset.
  const sampling_presets& presets() const noexcept;

  // --- Models at run time (model_orders.h). Answers are posted to `ex` ---

  void load_model(load_order o, executor ex, order_replies to);
  void unload_model(unload_order o, executor ex, order_replies to);
  void swap_models(swap_order o, executor ex, order_replies to);
  void set_terms(terms_order o, executor ex, order_replies to);
  void sleep_model(sleep_order o, executor ex, order_replies to);
  void wake_model(wake_order o, executor ex, order_replies to);
  // Whether the model would fit now, and how memory would be divided: the JSON of `weir plan`. Changes
  // nothing. `in` may come when the models of `out` have gone.
  void plan_model(load_order in, std::vector<std::string> out, executor ex,
                  std::function<void(boost::system::result<std::string, order_error>)> done);
  // How every model that is known stands. Does not wait for anything.
  models_picture all_models() const;
  // Calls `changed` on `ex` after each change of a state, until the returned object is destroyed; several
  // changes may be one call.
  std::shared_ptr<void> follow_models(executor ex, std::function<void()> changed);
  // The model that is being loaded, or is the next; nullopt once all models are loaded.
  std::optional<load_state> loading() const;
  // Tokenises in the text pool, in the turn of the client's key. For its accounts this is an unfinished job
  // until the text is tokenised, and its tokens are those of a prompt; the same holds for the next two.
  // Errors: an unknown model, overloaded, internal.
  void tokenize(std::string model, std::string text, bool add_special, executor ex,
                std::function<void(core::result<tokenized>)> done, const text_client& from = {});
  // Number of tokens that the prompt of `r` has, counted in the text pool; it may be longer than the model's
  // context. Errors: an unknown model, a prompt that cannot be made, overloaded, internal.
  void count_tokens(request r, executor ex, std::function<void(core::result<std::uint32_t>)> done,
                    const text_client& from = {});
  // Text of `ids`, special tokens included, made in the text pool. Errors as tokenize(), and an id outside
  // the vocabulary.
  void detokenize(std::string model, std::vector<std::int64_t> ids, executor ex,
                  std::function<void(core::result<detokenized>)> done, const text_client& from = {});

  // Calls `work` in the text pool, in the turn of the key, as work on a text of `bytes` bytes; then done({}),
  // or done(why) where there is no room or `work` threw. Errors: overloaded, internal.
  void work_on_text(std::uint64_t key, std::uint64_t bytes, std::function<void()> work, executor ex,
                    std::function<void(std::optional<core::error>)> done);
  // Gives up one owner's share of `what` in the text pool: for what takes long to destroy.
  void drop(std::shared_ptr<const void> what) noexcept;

  // Live jobs, the youngest first; then the last 1,000 ended ones, the latest first.
  void list_jobs(asker who, executor ex, std::function<void(std::vector<job_view>)> done);
  // One job, or nullopt if `who` does not see it or it is no longer kept.
  void find_job(asker who, core::job_id id, executor ex, std::function<void(std::optional<job_view>)> done);
  // Cancels a job and, if the id is that of an answer, all jobs of the answer. The reply comes when all of
  // them have ended, with the final state of the job; nullopt as for find_job().
  void cancel_job(asker who, core::job_id id, executor ex, std::function<void(std::optional<job_view>)> done);

  // Looks for a job that is not here, and takes it in where it is found: its client lost another gateway of
  // the fleet (job_finder.h). Without a fleet nothing is found, and a service that drains finds none.
  void find_elsewhere(job_search s);
  bool finds_elsewhere() const;
  // Asks the workers of the fleet for their jobs (cell_jobs.h puts them together with those of the service).
  // Without a fleet the answer is empty.
  void ask_cell(cell_question q);

  const core::clock& clock() const noexcept;
  core::time_point now() const noexcept { return clock().now(); }
  // Account of the memory that clients make the process hold.
  const std::shared_ptr<core::memory_account>& memory() const noexcept;
  core::incidents& seen() const noexcept;  // as in service_options
  snapshot stats() const;
  std::vector<model_figures> figures() const;  // of the models loaded so far
  std::vector<device_memory> devices() const;  // what these take of each device; each device once
  // Ready, unless models are loading, the device failed, it is draining, the owner has worked for over 10 s
  // without finishing a step, or the last 8 jobs of a model ended in logits that are not finite.
  readiness ready() const;
  // Delays of all jobs from a cancel or deadline until their pages were free.
  const core::delays& cancel_to_release() const noexcept;

  // What a fleet needs of the service (service_doors.h); for actors/fleet alone.
  service_doors doors() const;

  // Cancels all live jobs.
  void cancel_all();

  // Refuses new jobs from now on, with unavailable. `idle` is called once no job is live.
  void drain(executor ex, std::function<void()> idle);

 private:
  struct parts;
  std::shared_ptr<parts> p_;  // the only owner; a load in progress holds a weak_ptr
};

}  // namespace weir::actors
