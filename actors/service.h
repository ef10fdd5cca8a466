// service.h — the door between the network and the engine: every session, and every embedding program, uses
// this.
//
// It holds the text pool, the model host, the owners and the telemetry, and knows nothing of sockets. Thread
// safety: every member from any thread. Callbacks are posted to the executor that was passed in; they are
// never called from inside the call that takes them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/gpu_owner.h"
#include "actors/job_stream.h"
#include "actors/messages.h"
#include "actors/request.h"
#include "actors/text_pool.h"
#include "core/error.h"
#include "core/incidents.h"
#include "core/memory/account.h"

namespace weir::actors {

struct model_entry {
  std::string name;
  std::int64_t created_s = 0;      // Unix time it became ready
  std::uint32_t context = 0, vocab_size = 0;
  std::string device;              // cpu, reference, sim, cuda:0
};

struct job_view {
  core::job_id id;
  std::string state;               // queued prefilling decoding paused finished
  std::string model;
  std::string finish_reason;       // with finished
  std::uint32_t prompt_tokens = 0, output_tokens = 0, cached_tokens = 0, pages = 0, preemptions = 0;
  int priority = 0;
  double age_s = 0;
};

// The published picture: made by the owner between steps, read by everybody else without waiting for it.
struct snapshot {
  struct {
    std::uint32_t queued = 0, prefilling = 0, decoding = 0, paused = 0;
    std::uint64_t finished = 0;
  } jobs;
  struct { std::uint32_t total = 0, free = 0, cached = 0, used = 0; } pages;
  struct { std::uint32_t total = 0, used = 0; std::uint64_t restored = 0; } host_pages;  // of the host tier
  memory_use memory;  // of all models together
  double tokens_per_s = 0;
  std::uint32_t queue = 0;
  // of a job that came now, to the busiest model (way_in.h), its text's wait included
  double predicted_wait_ms = 0;
  struct { std::uint32_t tasks = 0; std::uint64_t bytes = 0; } text;  // of the text pool
  double step_p50_ms = 0, step_p99_ms = 0;
  std::uint64_t steps = 0, tokens = 0, preemptions = 0, queued_tokens = 0;
  // jobs that found part of their prompt computed; how much
  struct { std::uint64_t hits = 0, tokens = 0; } prefix;
};

struct readiness { bool ready = false; std::string reason; };

struct tokenized { std::vector<core::token_id> ids; std::vector<std::string> pieces; };

// A service without threads of its own, every step of which is a function of the executor's order: for tests.
struct simulation {
  executor everything;                    // runs every actor and every text task, one at a time
  std::function<core::job_id()> next_id;  // never the same twice
};

struct service_options {
  std::vector<model_spec> models;
  owner_options owner;
  text_options text;
  bool share_prefixes = false;  // computed prefixes serve requests of other keys, too
  std::optional<simulation> simulated;
  std::shared_ptr<core::incidents> seen = std::make_shared<core::incidents>();
};

class service {
 public:
  // `time` must outlive it. Nothing is loaded yet: submit() refuses with unavailable until load() is done.
  service(service_options o, const timekeeper& time);
  ~service();
  service(const service&) = delete;
  service& operator=(const service&) = delete;

  // Loads every model, one after the other, on its owner's thread (which also calls `progress`); `done`
  // learns of the first failure, and nothing is served then.
  void load(load_progress progress, executor ex, std::function<void(core::result<>)> done);

  // A new job whose news go to `shard`'s thread. `changed` is followed from the first moment. Never fails: a
  // refusal is a state of the stream. REQUIRES: called on `shard`'s thread.
  std::shared_ptr<job_stream> submit(request r, executor shard, job_stream::reader changed);
  // The same for n answers to one request, in order: it is tokenised once, and they are let in or refused
  // together. REQUIRES: n >= 1.
  std::vector<std::shared_ptr<job_stream>> submit(request r, std::uint32_t n, executor shard,
                                                  job_stream::reader changed);

  std::vector<model_entry> models() const;
  void tokenize(std::string model, std::string text, bool add_special, executor ex,
                std::function<void(core::result<tokenized>)> done);
  void detokenize(std::string model, std::vector<std::int64_t> ids, executor ex,
                  std::function<void(core::result<std::string>)> done);

  // Who asks: a key (request::key) knows its own jobs alone, all others are unknown to it. None: the program
  // itself, which knows all.
  using asker = std::optional<std::uint64_t>;
  // Live jobs, the youngest first, then the ended ones, the last first.
  void list_jobs(asker who, executor ex, std::function<void(std::vector<job_view>)> done);
  void find_job(asker who, core::job_id id, executor ex, std::function<void(std::optional<job_view>)> done);
  // Cancels and answers with the final state, or nothing where the job is unknown or no longer kept.
  void cancel_job(asker who, core::job_id id, executor ex, std::function<void(std::optional<job_view>)> done);

  core::time_point now() const noexcept;  // as its clock has it
  const std::shared_ptr<core::memory_account>& memory() const noexcept;  // what clients make the process hold
  core::incidents& seen() const noexcept;         // exceptions that nothing nearer to their cause has handled
  snapshot stats() const;
  readiness ready() const;
  // Of every job that was cancelled or came to its deadline: how long until its pages were free.
  const core::delays& cancel_to_release() const noexcept;

  // Every job that lives now ends with cancel.
  void cancel_all();

  // No new jobs from now on (they are refused: unavailable); `idle` is called once the last one has ended.
  void drain(executor ex, std::function<void()> idle);

 private:
  struct parts;
  std::shared_ptr<parts> p_;  // shared with nobody: watched by what is still under way when it goes
};

}  // namespace weir::actors
