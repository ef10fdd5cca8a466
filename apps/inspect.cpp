// `weir inspect`: what a server would do with a model, from the headers of its files.
#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

#include "actors/inspect_devices.h"
#include "actors/open_model.h"
#include "apps/commands.h"
#include "apps/engine_options.h"
#include "apps/local_service.h"
#include "apps/options.h"
#include "apps/progress.h"
#include "core/config.h"
#include "core/inspect/model_report.h"
#include "core/inspect/report_text.h"
#include "core/visible.h"

namespace weir::apps {
namespace {

struct inspect_options {
  std::string model, kv_type = "auto", gpu_memory;
  std::vector<std::string> devices;
  std::uint32_t context = 0, max_batch = core::device_settings().max_batch;
  bool json = false;
};

core::result<core::model_report> inspect(const inspect_options& o) {
  const auto kv = core::parse_kv_type(o.kv_type);
  if (!kv) return kv.error();
  const core::setting bytes{"gpu-memory", "", "bytes", 0, 0, "", true};
  const auto memory = core::parse_number(bytes, o.gpu_memory.empty() ? "0" : o.gpu_memory);
  if (!memory) return memory.error();
  const std::string source = o.model.empty() ? bundled_model() : o.model;
  const actors::model_spec spec{actors::name_of_source(source), source};
  actors::owner_options owner;
  owner.kv = *kv;
  owner.context = o.context;
  owner.max_batch = o.max_batch;
  auto report = core::describe_model(spec.source, o.context);
  auto devices = o.devices.empty() ? std::vector<std::string>{"cpu", "cuda:0"} : o.devices;
  // What no device could take is told once.
  if (report.refused.empty()) core::add_devices(report, actors::inspect_on(spec, owner, devices, *memory));
  return report;
}

int run(const inspect_options& o) {
  const auto report = inspect(o);
  if (!report) {
    std::cerr << core::visible(report.error().message) << '\n';
    return exit_of(report.error());
  }
  if (o.json) {
    std::cout << core::report_json(*report) << '\n';
  } else {
    for (const auto& line : core::report_lines(*report)) std::cout << line << '\n';
  }
  return report->served() ? exit_code::done : exit_code::not_served;
}

}  // namespace

command add_inspect(CLI::App& app) {
  auto o = std::make_shared<inspect_options>();
  app.add_option("MODEL", o->model,
                 "a directory in Hugging Face layout, or a GGUF file; none: the bundled rill");
  app.add_flag("--json", o->json, "the report as JSON");
  app.add_option("--device", o->devices, "a device whose memory is looked at; repeatable; none: cpu and cuda")
      ->type_name("cpu|reference|cuda[:N]")
      ->allow_extra_args(false);
  app.add_option("--gpu-memory", o->gpu_memory,
                 "memory of cuda devices, none of which needs to be there; K, M and G are powers of 1024; "
                 "none: what this machine's have, or 80G where it has none")
      ->type_name("BYTES");
  app.add_option("--context", o->context, "longest sequence that is served, 0 = the model's own")
      ->type_name("TOKENS")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  app.add_option("--kv-type", o->kv_type, "type in which keys and values are stored, as for weir serve")
      ->type_name("TYPE")
      ->capture_default_str();
  app.add_option("--max-batch", o->max_batch, "sequences that run at once")
      ->type_name("SEQUENCES")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  return [o] { return run(*o); };
}

}  // namespace weir::apps
