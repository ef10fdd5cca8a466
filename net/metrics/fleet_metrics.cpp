#include "net/metrics/fleet_metrics.h"

#include <algorithm>
#include <utility>

namespace weir::net {
namespace {

using type = prometheus_text::type;
using actors::fleet::seen_worker;
using core::fleet::board_model;

void append_workers(prometheus_text& out, const std::vector<seen_worker>& workers) {
  using core::fleet::worker_state;
  out.family("weir_fleet_workers", type::gauge, "Workers that the gateway sees, by state.");
  for (const auto state : {worker_state::ready, worker_state::draining, worker_state::leaving}) {
    const auto is = [state](const seen_worker& w) { return !w.suspected && w.board.state == state; };
    out.sample({{"state", core::fleet::name(state)}},
               static_cast<std::uint64_t>(std::ranges::count_if(workers, is)));
  }
  out.sample({{"state", "suspected"}},
             static_cast<std::uint64_t>(std::ranges::count_if(workers, &seen_worker::suspected)));
  out.family("weir_fleet_worker_silent_seconds", type::gauge,
             "Time since the gateway last heard of a worker.");
  for (const auto& w : workers)
    out.sample({{"worker", w.board.worker}}, std::chrono::duration<double>(w.age).count());
}

void append_rejects(prometheus_text& out, const std::vector<seen_worker>& workers) {
  out.family("weir_fleet_worker_frames_broken_total", type::counter,
             "Frames that a worker could not read, or that are for no worker, and dropped.");
  for (const auto& w : workers) out.sample({{"worker", w.board.worker}}, w.board.broken);
  out.family("weir_fleet_worker_untold_total", type::counter,
             "Questions for jobs of another key, of which a worker told nothing.");
  for (const auto& w : workers) out.sample({{"worker", w.board.worker}}, w.board.untold);
}

// A sample for each engine of each worker. Engines of one worker and model may differ by number alone.
template <class Get>
void one_an_engine(prometheus_text& out, const std::vector<seen_worker>& workers, std::string_view name,
                   std::string_view help, const Get& get) {
  out.family(name, type::gauge, help);
  for (const auto& w : workers)
    for (const auto& m : w.board.models)
      out.sample({{"worker", w.board.worker}, {"model_name", m.name}, {"engine", std::to_string(m.engine)}},
                 get(m));
}

}  // namespace

void append_fleet(prometheus_text& out, const actors::fleet::fleet_figures& now) {
  append_workers(out, now.workers);
  append_rejects(out, now.workers);
  one_an_engine(out, now.workers, "weir_fleet_engine_jobs",
                "Jobs of all gateways that an engine of a worker runs or keeps waiting.",
                [](const board_model& m) { return std::uint64_t{m.jobs}; });
  one_an_engine(out, now.workers, "weir_fleet_engine_batch", "Most jobs that the engine runs at once.",
                [](const board_model& m) { return std::uint64_t{m.batch}; });
  one_an_engine(out, now.workers, "weir_fleet_engine_tokens_per_second",
                "Tokens that the engine samples a second; 0 where it is not known yet.",
                [](const board_model& m) { return m.rate; });
  out.family("weir_fleet_jobs", type::gauge, "Jobs of the gateway at workers.");
  out.sample({}, std::uint64_t{now.counts.jobs});
  const auto total = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    out.family(name, type::counter, help);
    out.sample({}, value);
  };
  total("weir_fleet_jobs_moved_total", "Jobs that lost their worker and went on at another one.",
        now.counts.moved);
  total("weir_fleet_moves_between_classes_total", "Moves of jobs to a worker of another class of arithmetic.",
        now.counts.between_classes);
  total("weir_fleet_refused_after_pick_total",
        "Times that the chosen worker refused a job, or did not answer, and another one was asked.",
        now.counts.hops);
  total("weir_fleet_pick_known_tokens_total",
        "Tokens of prompts that the chosen workers were known to have in their prefix caches.",
        now.counts.known);
  total("weir_fleet_pick_found_tokens_total", "Tokens of prompts that were found there.", now.counts.found);
  total("weir_fleet_lists_total", "Times that the workers were asked for their jobs, or to end some.",
        now.counts.lists);
  total("weir_fleet_orders_total", "Orders for models that workers were given.", now.counts.orders);
  out.family("weir_fleet_waiting", type::gauge, "Requests that wait for a model that no worker has ready.");
  out.sample({}, std::uint64_t{now.counts.waiting});
  total("weir_fleet_loads_total", "Times that a worker was asked to load a model for requests.",
        now.counts.loads);
  total("weir_fleet_loads_refused_total", "Times that a worker refused that.", now.counts.loads_refused);
  total("weir_fleet_models_fetched_total", "Models whose files came from workers.", now.counts.fetched);
  total("weir_fleet_fetch_failures_total",
        "Times that the files of a model could not be had from workers, or not be opened.",
        now.counts.fetch_failures);
  total("weir_fleet_workers_dead_total", "Workers that were given up.", now.counts.dead);
  total("weir_fleet_frames_total", "Frames of tokens that came.", now.counts.frames);
  total("weir_fleet_frames_again_total", "Times that tokens were missing, and asked for again.",
        now.counts.asked_again);
  total("weir_fleet_frames_void_total", "News of older attempts of jobs, or of jobs that are gone.",
        now.counts.void_news);
  total("weir_fleet_frames_broken_total", "Frames that could not be read, and were dropped.",
        now.counts.broken);
}

}  // namespace weir::net
