// `weir bench slo`: compares budgets for the prompt rows of steps in which streams decode. The same closed
// loops run on an engine without sockets: with several limits of prompt rows a step, with the engine's own
// budget, and with the objective of --slo. A simulated device with step costs (`--device sim:step=…`) runs in
// simulated time: its figures are exact and say nothing of a real device.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <optional>

#include "actors/gpu_owner.h"
#include "actors/open_model.h"
#include "apps/bench/bench.h"
#include "apps/bench/closed_loop.h"
#include "apps/engine_options.h"
#include "apps/options.h"
#include "apps/progress.h"
#include "core/model/sim.h"

namespace weir::apps::bench {
namespace {

struct slo_options {
  core::engine_settings engine;
  loop_options loop{.spread = 0.5};
  std::vector<std::uint32_t> clients{64, 256, 512}, rows{128, 256, 512, 1024, 2048};
  bool json = false;
};

// A clock that the simulated device moves.
class spent_time final : public core::clock {
 public:
  core::time_point now() const noexcept override { return now_; }
  void spend(core::duration d) { now_ += d; }

 private:
  core::time_point now_{};
};

// Lets one engine after the other use the same model: an engine owns its model, and loading a model takes
// long.
class lent_model final : public core::model {
 public:
  explicit lent_model(core::model& of) : of_(of) {}
  const core::model_info& info() const noexcept override { return of_.info(); }
  core::result<void> allocate_pages(std::uint32_t n) override { return of_.allocate_pages(n); }
  core::result<void> save_page(core::page_id p, std::uint32_t slot) override {
    return of_.save_page(p, slot);
  }
  core::result<void> restore_page(core::page_id p, std::uint32_t slot) override {
    return of_.restore_page(p, slot);
  }
  core::time_point due(const core::upcoming& u) const override { return of_.due(u); }
  core::result<void> forward(const core::batch& b) override { return of_.forward(b); }
  core::result<void> sample(std::span<const core::draw> d, std::span<core::drawn> out) override {
    return of_.sample(d, out);
  }
  core::result<void> begin_draws(std::span<const core::draw> d) override { return of_.begin_draws(d); }
  bool computing() const override { return of_.computing(); }
  core::result<void> collect(std::span<core::drawn> out) override { return of_.collect(out); }
  const kernels::draw_logprobs& logprobs_of(std::uint32_t i) const override { return of_.logprobs_of(i); }
  std::span<const float> logits(std::uint32_t row) const override { return of_.logits(row); }

 private:
  core::model& of_;
};

// What every engine of a run has in common.
struct subject {
  std::unique_ptr<actors::ready_model> model;
  core::objective slo;
  core::engine_config without;  // the objective: the engine's own budget
  spent_time spent;
  core::system_clock system;
  bool simulated = false;  // in the time of `spent`
  const core::clock& time() const { return simulated ? static_cast<const core::clock&>(spent) : system; }
};

core::result<std::unique_ptr<subject>> open(const slo_options& o) {
  std::string why_cpu;
  auto service = service_options_of(o.engine, core::queue_of(1024), why_cpu);
  if (!service) return service.error();
  show_device(why_cpu);
  auto s = std::make_unique<subject>();
  s->slo = service->owner.slo;
  if (!s->slo.set()) return core::bad_param("slo", "--slo: this benchmark needs an objective");
  std::shared_ptr<const kernels::backend> backend;
  if (service->owner.device != "sim") {
    auto made = core::make_backend(service->owner.device, service->owner.threads,
                                   service->owner.deterministic, service->owner.activations);
    if (!made) return made.error();
    backend = std::move(*made);
  }
  auto opened = actors::open_model(service->models.front(), service->owner, backend, {});
  if (!opened) return opened.error();
  s->model = std::move(*opened);
  if (!backend && !s->model->weights->info().paced) {
    const auto& source = service->models.front().source;
    const auto spec = core::parse_sim_spec(std::string_view(source).substr(source.find(':') + 1));
    if (!spec) return spec.error();
    if (!spec->script.empty()) return core::bad_param("device", "sim: bench slo takes no script");
    s->model->weights = core::make_sim_model(*spec, [at = &s->spent](core::duration d) { at->spend(d); });
    // one token a word, as the questions count them
    s->model->served->tokenizer = core::make_numbered_tokenizer(core::sim_vocab_size);
    s->simulated = true;
  }
  auto owner = service->owner;
  owner.slo = {};
  s->without = s->model->config;
  actors::set_slices(s->without, owner, s->simulated || (backend && !backend->on_host));
  return s;
}

core::result<boost::json::object> measure(subject& s, const slo_options& o, std::uint32_t clients,
                                          const std::string& name, const core::engine_config& config) {
  loop_options l = o.loop;
  l.streams = clients;
  l.slo = s.slo;
  core::engine e(std::make_unique<lent_model>(*s.model->weights),
                 core::token_table(*s.model->served->tokenizer), config, s.time());
  const auto f = run_closed_loop(e, *s.model->served->tokenizer, s.time(), l);
  if (f.failed) return core::make_error(core::errc::internal, "a job failed; the figures would mean nothing");
  const auto good = f.answers > 0 ? static_cast<double>(f.good) / static_cast<double>(f.answers) : 0;
  return boost::json::object{{"rows", name},
                             {"clients", clients},
                             {"tokens_per_s", f.tokens_per_s},
                             {"first_p50_ms", f.first_ms.quantile(0.5)},
                             {"first_p95_ms", f.first_ms.quantile(0.95)},
                             {"gap_p50_ms", f.gaps_ms.quantile(0.5)},
                             {"gap_p99_ms", f.gaps_ms.quantile(0.99)},
                             {"good_share", good},
                             {"good_per_s", static_cast<double>(f.good) / o.loop.duration_s}};
}

core::result<boost::json::object> measure(const slo_options& o) {
  auto opened = open(o);
  if (!opened) return opened.error();
  subject& s = **opened;
  auto own = s.model->config;  // with the objective
  boost::json::array rows;
  for (const auto clients : o.clients) {
    const auto add = [&](const std::string& name, const core::engine_config& c) -> core::result<> {
      auto row = measure(s, o, clients, name, c);
      if (!row) return row.error();
      rows.push_back(std::move(*row));
      return {};
    };
    auto fixed = own;
    fixed.slo = {};
    fixed.step_target = {};
    for (const auto limit : o.rows) {
      fixed.prefill_rows = std::min(limit, own.prefill_rows);
      if (auto ok = add(fmt::format("{}", fixed.prefill_rows), fixed); !ok) return ok.error();
    }
    if (auto ok = add("auto", s.without); !ok) return ok.error();
    if (auto ok = add("slo", own); !ok) return ok.error();
  }
  return boost::json::object{{"benchmark", "slo"},
                             {"device", o.engine.device},
                             {"time", s.simulated ? "simulated" : "real"},
                             {"slo", o.engine.slo},
                             {"rows", std::move(rows)}};
}

int run(const slo_options& o) { return report(measure(o), o.json); }

}  // namespace

command add_slo(CLI::App& app) {
  auto o = std::make_shared<slo_options>();
  add_settings(app, o->engine);
  const auto list = [&app](const char* name, std::vector<std::uint32_t>& field, const char* meaning) {
    auto* option = app.add_option(name, field, meaning);
    option->delimiter(',')->capture_default_str()->check(CLI::Range(1, 1 << 16));
  };
  const auto number = [&app](const char* name, auto& field, const char* meaning, auto low, auto high) {
    app.add_option(name, field, meaning)->capture_default_str()->check(CLI::Range(low, high));
  };
  list("--clients", o->clients, "closed loops, one after the other: so many streams, each asking again");
  list("--rows", o->rows, "limits of prompt rows a step, one after the other");
  number("--prompt-tokens", o->loop.prompt_tokens, "of each question; no two are alike", 1, 1 << 20);
  number("--max-tokens", o->loop.max_tokens, "of each answer", 1, 1 << 20);
  number("--spread", o->loop.spread, "lengths are up to so much of themselves shorter or longer", 0.0, 0.9);
  number("--warmup", o->loop.warmup_s, "time that is not measured, in s", 0.0, 3600.0);
  number("--duration", o->loop.duration_s, "measured time of each loop, in s", 0.1, 3600.0);
  app.add_flag("--json", o->json, "one JSON object instead of a table");
  return [o] { return run(*o); };
}

}  // namespace weir::apps::bench
