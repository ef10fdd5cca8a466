#include "net/metrics/metrics.h"

#include "net/hub.h"
#include "net/metrics/fleet_metrics.h"
#include "net/metrics/prometheus.h"
#include "net/metrics/resident.h"

namespace weir::net {
namespace {

using type = prometheus_text::type;
using figures = std::vector<actors::model_figures>;

double seconds(core::duration d) { return std::chrono::duration<double>(d).count(); }

// ---- of each model

template <class Get>
void one_a_model(prometheus_text& out, const figures& models, std::string_view name, type of,
                 std::string_view help, const Get& get) {
  out.family(name, of, help);
  for (const auto& m : models) out.sample({{"model_name", m.name}}, get(m));
}

void append_latencies(prometheus_text& out, const figures& models) {
  const auto distribution = [&](std::string_view name, std::string_view help, auto member) {
    one_a_model(out, models, name, type::histogram, help,
                [&](const actors::model_figures& m) { return (m.measures.*member).view(); });
  };
  using measured = core::engine_measures;
  distribution("weir_time_to_first_token_seconds",
               "Time from the reading of a request to the sampling of its first token.", &measured::ttft);
  distribution("weir_inter_token_latency_seconds",
               "Time between the sampling of two tokens of a job that follow one another.", &measured::gap);
  distribution("weir_request_queue_time_seconds",
               "Time from the reading of a request to its first batch, tokenising included.",
               &measured::queue);
  distribution("weir_request_prefill_time_seconds",
               "Time from the first batch of a job to the sampling of its first token.", &measured::prefill);
  distribution("weir_step_time_seconds", "Time that a step of the engine took.", &measured::step_time);
  distribution("weir_step_tokens", "Tokens of prompts and answers that a step computed.",
               &measured::step_tokens);
}

void append_totals(prometheus_text& out, const figures& models) {
  out.family("weir_request_success_total", type::counter,
             "Jobs that ended, by reason. Jobs that were cancelled or failed are among them, as in vLLM.");
  for (const auto& m : models)
    for (std::size_t i = 0; i < m.ended.size(); ++i)
      out.sample(
          {{"model_name", m.name}, {"finished_reason", core::name(static_cast<core::finish_reason>(i))}},
          m.ended[i]);
  const auto total = [&](std::string_view name, std::string_view help, auto member) {
    one_a_model(out, models, name, type::counter, help,
                [&](const actors::model_figures& m) { return m.engine.*member; });
  };
  using c = core::engine_counts;
  total("weir_prompt_tokens_total", "Tokens of the prompts of jobs whose first token was sampled.",
        &c::prompt_tokens);
  total("weir_prompt_tokens_cached_total", "Those of weir_prompt_tokens_total that the prefix cache had.",
        &c::cached_tokens);
  total("weir_generation_tokens_total", "Tokens that were sampled.", &c::tokens);
  total("weir_num_preemptions_total", "Preemptions of running jobs.", &c::preemptions);
  total("weir_context_shifts_total", "Times that the older tokens of a job left its full context.",
        &c::shifts);
  total("weir_forced_tokens_total",
        "Those of weir_generation_tokens_total for which a constraint left no choice.", &c::forced_tokens);
  one_a_model(out, models, "weir_device_time_seconds_total", type::counter,
              "Time that devices computed steps of a model: measured on cuda while several models have work, "
              "else the time of its steps.",
              [](const actors::model_figures& m) { return static_cast<double>(m.engine.device_us) / 1e6; });
  total("weir_late_masks_total", "Draws that a step left out because the mask of a constraint was late.",
        &c::late_masks);
}

void append_objective(prometheus_text& out, const figures& models) {
  out.family("weir_slo_requests_total", type::counter,
             "Jobs that ended by stop, length, repetition or timeout, by objective of --slo and whether they "
             "kept it. 0 without an objective.");
  for (const auto& m : models) {
    const auto kept = [&](std::string_view objective, std::string_view met, std::uint64_t jobs) {
      out.sample({{"model_name", m.name}, {"objective", objective}, {"met", met}}, jobs);
    };
    kept("ttft", "true", m.engine.ttft_met);
    kept("ttft", "false", m.engine.ttft_missed);
    kept("tpot", "true", m.engine.tpot_met);
    kept("tpot", "false", m.engine.tpot_missed);
    kept("both", "true", m.engine.slo_met);
    kept("both", "false", m.engine.slo_missed);
  }
  one_a_model(out, models, "weir_slo_prompt_rows", type::gauge,
              "Most rows of prompts that the latest step with any beside streams could carry. 0 without an "
              "objective.",
              [](const actors::model_figures& m) { return std::uint64_t{m.engine.prompt_share}; });
}

void append_jobs(prometheus_text& out, const figures& models) {
  const auto count = [&](std::string_view name, std::string_view help, const auto& get) {
    one_a_model(out, models, name, type::gauge, help,
                [&](const actors::model_figures& m) { return std::uint64_t{get(m.engine)}; });
  };
  using c = core::engine_counts;
  count("weir_num_requests_running", "Jobs in the batch.",
        [](const c& e) { return e.prefilling + e.decoding; });
  count("weir_num_requests_waiting", "Jobs that wait for a place in the batch.",
        [](const c& e) { return e.queued; });
  out.family("weir_jobs", type::gauge, "Jobs by state.");
  for (const auto& m : models) {
    const auto in_state = [&](std::string_view state, std::uint32_t n) {
      out.sample({{"model_name", m.name}, {"state", state}}, std::uint64_t{n});
    };
    in_state("queued", m.engine.queued);
    in_state("prefilling", m.engine.prefilling);
    in_state("decoding", m.engine.decoding);
    in_state("paused", m.engine.paused);
    in_state("finishing", m.engine.finishing);
  }
  one_a_model(out, models, "weir_predicted_wait_seconds", type::gauge,
              "Predicted wait of a job that came now.",
              [](const actors::model_figures& m) { return seconds(m.predicted_wait); });
}

void append_shares(prometheus_text& out, const figures& models) {
  const auto part = [&](std::string_view name, std::string_view help, auto member) {
    one_a_model(out, models, name, type::gauge, help,
                [&](const actors::model_figures& m) { return m.*member; });
  };
  using f = actors::model_figures;
  part("weir_model_share", "Weight of a model among those of its device, as --share sets it.", &f::share);
  part("weir_model_share_asked", "Part of the device's time that the weight of a model asks for, 0 to 1.",
       &f::share_asked);
  part("weir_model_share_got",
       "Part that a model got of the time that all models of its device took in the last 10 s, 0 to 1.",
       &f::share_got);
}

void append_pages(prometheus_text& out, const figures& models) {
  one_a_model(out, models, "weir_kv_cache_usage_perc", type::gauge,
              "Share of the pages on the device that jobs hold, 0 to 1.", [](const actors::model_figures& m) {
                const double all = m.engine.pages_total;
                return all > 0 ? m.engine.pages_used / all : 0;
              });
  out.family("weir_kv_cache_pages", type::gauge,
             "Pages of KV memory on the device: free, held by jobs (used), or kept for later jobs (cached).");
  for (const auto& m : models) {
    out.sample({{"model_name", m.name}, {"state", "free"}}, std::uint64_t{m.engine.pages_free});
    out.sample({{"model_name", m.name}, {"state", "used"}}, std::uint64_t{m.engine.pages_used});
    out.sample({{"model_name", m.name}, {"state", "cached"}}, std::uint64_t{m.engine.pages_cached});
  }
  out.family("weir_kv_host_pages", type::gauge, "Pages of KV memory in host memory.");
  for (const auto& m : models) {
    out.sample({{"model_name", m.name}, {"state", "free"}},
               std::uint64_t{m.engine.host_total - m.engine.host_used});
    out.sample({{"model_name", m.name}, {"state", "used"}}, std::uint64_t{m.engine.host_used});
  }
}

void append_device_memory(prometheus_text& out, const figures& models,
                          const std::vector<actors::device_memory>& devices) {
  out.family("weir_device_memory_bytes", type::gauge, "Memory that a model takes of a device, by use.");
  for (const auto& m : models)
    for (const auto& d : m.memory) {
      const auto used = [&](std::string_view use, std::uint64_t bytes) {
        out.sample({{"model_name", m.name}, {"device", d.device}, {"use", use}}, bytes);
      };
      used("weights", d.use.weights);
      used("pages", d.use.pages);
      used("workspaces", d.use.workspaces);
      used("runtime", d.use.runtime);
    }
  const auto of_devices = [&](std::string_view name, std::string_view help, auto member) {
    out.family(name, type::gauge, help);
    for (const auto& d : devices) out.sample({{"device", d.device}}, d.use.*member);
  };
  of_devices("weir_device_memory_free_bytes",
             "Free memory of a device after its last load; 0 where models lie in host memory.",
             &actors::memory_use::free);
  of_devices("weir_device_memory_total_bytes",
             "Memory of the whole device; 0 where models lie in host memory.", &actors::memory_use::total);
}

// ---- of each model that is known, served or not

using statuses = std::vector<actors::model_status>;

// Without the names that nobody has loaded so far: a directory of models may have a thousand.
statuses loaded_once(statuses all) {
  std::erase_if(all, [](const actors::model_status& m) {
    return m.state == actors::model_state::absent && m.loads + m.load_failures == 0;
  });
  return all;
}

void append_states(prometheus_text& out, const statuses& models) {
  using actors::model_state;
  out.family(
      "weir_model_state", type::gauge,
      "1 for the state of a model, 0 for each other state. Names that were never loaded are left out.");
  for (const auto& m : models)
    for (const auto s : {model_state::absent, model_state::loading, model_state::ready, model_state::draining,
                         model_state::failed, model_state::asleep})
      out.sample({{"model_name", m.name}, {"state", actors::name(s)}}, std::uint64_t{m.state == s});
  out.family("weir_model_bytes", type::gauge,
             "Memory that a model takes of its devices, all of them together, and of the host.");
  for (const auto& m : models) {
    const auto kind = [&](std::string_view name, std::uint64_t bytes) {
      out.sample({{"model_name", m.name}, {"kind", name}}, bytes);
    };
    kind("weights", m.bytes.weights);
    kind("pages", m.bytes.pages);
    kind("workspaces", m.bytes.workspaces);
    kind("runtime", m.bytes.runtime);
    kind("host", m.bytes.host_pages);
    kind("asleep", m.bytes.asleep);
  }
}

void append_loads(prometheus_text& out, const statuses& models) {
  out.family("weir_model_loads_total", type::counter, "Loads of a model that ended well.");
  for (const auto& m : models) out.sample({{"model_name", m.name}}, m.loads);
  out.family("weir_model_load_failures_total", type::counter, "Loads of a model that failed.");
  for (const auto& m : models) out.sample({{"model_name", m.name}}, m.load_failures);
  out.family("weir_model_last_load_seconds", type::gauge,
             "Time that the last load of a model took, of those that ended well. 0 before the first.");
  for (const auto& m : models) out.sample({{"model_name", m.name}}, m.last_load_s.value_or(0));
}

void append_sleeps(prometheus_text& out, const statuses& models, const actors::models_picture& all) {
  const auto counter = [&](std::string_view name, std::string_view help, auto member) {
    out.family(name, type::counter, help);
    for (const auto& m : models) out.sample({{"model_name", m.name}}, m.*member);
  };
  using actors::model_status;
  counter("weir_model_sleeps_total", "Times that a model was put to sleep.", &model_status::sleeps);
  counter("weir_model_wakes_total", "Wakes of a model that ended well.", &model_status::wakes);
  counter("weir_model_sleep_failures_total", "Sleeps at level host, and wakes from there, that failed.",
          &model_status::nap_failures);
  out.family("weir_model_last_wake_seconds", type::gauge,
             "Time that the last wake of a model from the host took. 0 before the first.");
  for (const auto& m : models) out.sample({{"model_name", m.name}}, m.last_wake_s.value_or(0));
  out.family("weir_sleep_host_bytes", type::gauge,
             "Host memory for the weights of models that sleep, as --sleep-mb sets it.");
  out.sample({{"state", "taken"}}, all.sleep_taken);
  out.sample({{"state", "free"}}, all.sleep_total - all.sleep_taken);
}

void append_pools(prometheus_text& out, const statuses& models) {
  out.family("weir_model_pages_given_total", type::counter,
             "Pages that the pools of a model gave to models that came or woke.");
  for (const auto& m : models) out.sample({{"model_name", m.name}}, m.pages_given);
  out.family("weir_model_pages_taken_total", type::counter,
             "Pages by which the pools of a model grew, those that were given back to them among these.");
  for (const auto& m : models) out.sample({{"model_name", m.name}}, m.pages_taken);
}

// ---- of clients and the process

void append_clients(prometheus_text& out, const server_state& all) {
  core::delays sent;
  all.add_sampled_to_sent(sent);
  out.family(
      "weir_sampled_to_sent_seconds", type::histogram,
      "Time from when a frame's last token was sampled, or the client let it go, until the frame was sent.");
  out.sample({}, sent.published().view());
  out.family("weir_cancel_to_release_seconds", type::histogram,
             "Time from a job's cancel or deadline until its pages were free.");
  out.sample({}, all.service.cancel_to_release().published().view());
  out.family(
      "weir_requests_rejected_total", type::counter,
      "Requests over HTTP and messages over WebSockets that were answered with an error, by its code.");
  for (const auto& [reason, n] : all.rejected()) out.sample({{"reason", reason}}, n);
  out.family("weir_sessions_closed_total", type::counter, "WebSockets that ended, by close code.");
  for (const auto& [code, n] : all.closed())
    out.sample({{"code", code == close_counts::other ? "other" : std::to_string(code)}}, n);
  out.family("weir_resumes_total", type::counter, "Responses that a client followed again.");
  out.sample({}, all.resumed());
  out.family("weir_sessions", type::gauge, "WebSockets that are open.");
  out.sample({}, static_cast<double>(all.sessions.load(std::memory_order_relaxed)));
  out.family("weir_client_lag_sockets", type::gauge, "WebSockets whose current write has taken over 250 ms.");
  out.sample({}, static_cast<double>(all.lag.late.load(std::memory_order_relaxed)));
  out.family("weir_client_lag_bytes", type::gauge,
             "Bytes of text and frames that wait for their WebSockets.");
  out.sample({}, static_cast<double>(all.lag.bytes.load(std::memory_order_relaxed)));
}

void append_process(prometheus_text& out, const server_state& all) {
  const actors::service& service = all.service;
  const auto gauge = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    out.family(name, type::gauge, help);
    out.sample({}, value);
  };
  const actors::snapshot now = service.stats();
  gauge("weir_ready", "1 where /health/ready is 200, else 0.", service.ready().ready);
  gauge("weir_api_key_file_stale",
        "1 where the file of keys has changed and could not be taken, so that the keys before are in force.",
        all.keys_stale);
  gauge("weir_text_tasks", "Texts that wait to be tokenised, or are.", now.text.tasks);
  gauge("weir_text_bytes", "Bytes of these texts.", now.text.bytes);
  gauge("weir_client_memory_bytes", "Memory that clients make the process hold.", service.memory()->used());
  gauge("weir_client_memory_limit_bytes", "Limit of weir_client_memory_bytes.", service.memory()->limit());
  gauge("process_resident_memory_bytes", "Resident memory of the process.", resident_bytes());
  out.family("weir_incidents_total", type::counter,
             "Exceptions that ended a connection, a job or a message.");
  out.sample({}, service.seen().count());
}

}  // namespace

std::string metrics_text(const server_state& all) {
  std::string text;
  prometheus_text out(text);
  const figures models = all.service.figures();
  append_latencies(out, models);
  append_totals(out, models);
  append_objective(out, models);
  append_jobs(out, models);
  append_shares(out, models);
  append_pages(out, models);
  append_device_memory(out, models, all.service.devices());
  const actors::models_picture picture = all.service.all_models();
  const statuses known = loaded_once(picture.models);
  append_states(out, known);
  append_loads(out, known);
  append_sleeps(out, known, picture);
  append_pools(out, known);
  append_clients(out, all);
  append_process(out, all);
  if (const auto& fleet = all.options.fleet)
    if (const auto now = fleet()) append_fleet(out, *now);
  return text;
}

}  // namespace weir::net
