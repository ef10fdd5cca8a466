// service_parts.h — what a service holds, for the files that define its members.
//
// Thread safety: as service.h; members that change say how.
#pragma once

#include <atomic>
#include <boost/asio/post.hpp>
#include <mutex>

#include "actors/arrival.h"
#include "actors/job_finder.h"
#include "actors/memory_book.h"
#include "actors/model_list.h"
#include "actors/model_registry.h"
#include "actors/registry.h"
#include "actors/service.h"

namespace weir::actors {

template <class F, class... A>
void post_call(const executor& ex, F f, A... a) {
  boost::asio::post(ex, [f = std::move(f), ... a = std::move(a)]() mutable { f(std::move(a)...); });
}

struct service::parts {
  parts(service_options o, const timekeeper& t);
  ~parts();

  executor own_thread();
  model_registry::parts for_models(const service_options& o);
  // Calls `work` in a pool, with the key and bytes of `t`; then `done` on `ex`.
  static void work_in(text_pool& pool, text_pool::task t, std::function<void()> work, executor ex,
                      std::function<void(std::optional<core::error>)> done);
  // Calls `work`, which reads files, in the text pool; then `done` on `ex`. Errors: overloaded, internal.
  void read_files(std::function<void()> work, executor ex,
                  std::function<void(std::optional<core::error>)> done);
  core::result<std::vector<load_step>> steps_for(const load_order& o,
                                                 const std::vector<std::string>& out) const;
  model_status status_of(const known_model& m) const;
  // Adds the pages that the model's jobs use, and those that are kept for prompts, to the accounts of its
  // devices. A picture may be older than an account: they are never more than its lines say. REQUIRES:
  // m.served
  void add_pages(std::vector<device_account>& to, const known_model& m) const;
  // Of the devices of a model's places, on average. REQUIRES: m.served
  device_parts parts_of(const known_model& m) const;
  std::vector<board::picture> pictures() const;  // of all hosts
  // Fills in the state of live jobs from the pictures that their hosts published.
  void look(std::vector<job_view>& views) const;

  // Who looks for jobs in other processes; null: nobody.
  std::shared_ptr<job_finder> finder() const;
  models_picture all_models() const;

  // Makes the stream of one choice of a request, and tells the registry. `of`: counts the jobs of its model;
  // null: the model is not known. `answer`: see job_born; nullopt: the choice is the first.
  std::shared_ptr<job_stream::state_block> begin_choice(const request& r, std::optional<core::job_id> answer,
                                                        std::shared_ptr<ended_jobs> of,
                                                        const executor& shard);
  std::shared_ptr<job_stream::state_block> begin_job(const request& r, core::job_id id, core::job_id answer,
                                                     std::optional<core::time_point> created,
                                                     std::shared_ptr<ended_jobs> of, const executor& shard);
  // Finds the model, and returns the errors that are already certain, so that the text is not tokenised in
  // vain.
  core::result<> check(arrival& a);
  // Finds the way to the model, or lets the request wait for it.
  core::result<> find_model(arrival& a);
  core::error not_loaded(const model_list::snapshot& all, const known_model& m, bool wanted) const;
  // `a->model`: the one that sleeps.
  void check_and_wait(const std::shared_ptr<arrival>& a);
  void wait_for_model(const std::shared_ptr<arrival>& a);
  void begin_text(const std::shared_ptr<arrival>& a);
  void begin_constraint(const std::shared_ptr<arrival>& a);
  void post(text_pool& to, const std::shared_ptr<arrival>& a, std::function<void(core::turn&)> run);

  const timekeeper& time;
  const std::shared_ptr<const core::clock> lasting;  // for the streams
  const std::shared_ptr<core::incidents> seen;
  const std::shared_ptr<core::memory_account> memory = std::make_shared<core::memory_account>();
  const std::function<core::job_id()> next_id;
  std::atomic<bool> draining{false};
  model_list list;
  const sampling_presets presets;
  const shared_by_owners shared;
  std::vector<std::shared_ptr<const void>> kept;  // see service_doors::keep
  std::optional<exclusive_thread> control;  // outlives the hosts, which answer the model registry there
  const executor control_ex;
  const std::vector<std::unique_ptr<host>> hosts;  // never empty
  ref<registry_msg> registry;
  memory_book book;
  const std::size_t most_models;  // of a host
  const on_demand demand;
  model_registry models;
  mutable std::mutex finder_lock;  // of the next
  std::weak_ptr<job_finder> job_finder_;
  const bool share_prefixes;
  const core::objective slo;
  // The pools are last, because their threads use the members above. Requests whose constraint was not
  // compiled before go from `pool` to `constraint_pool`: compiling one may take seconds, and no other text
  // waits for it. What is half done takes memory: texts and constraints of so many keys at a time.
  static constexpr text_pool::size for_texts{.places = 2, .threads = 6},
      for_constraints{.places = 3, .threads = 8};
  text_pool constraint_pool, pool;
};

}  // namespace weir::actors
