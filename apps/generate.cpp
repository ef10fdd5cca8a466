#include <CLI/CLI.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <fstream>
#include <iostream>

#include "apps/answer.h"
#include "apps/commands.h"
#include "apps/constraint_options.h"
#include "apps/generate_batch.h"
#include "apps/local_service.h"
#include "apps/options.h"
#include "apps/printable.h"
#include "apps/sampling_options.h"
#include "core/json_line.h"
#include "core/visible.h"

namespace weir::apps {
namespace {

struct generate_options {
  core::engine_settings engine;
  actors::request request;
  constraint_options constraint;
  std::string force = "canonical";
  std::string prompt, prompt_file, batch;
  std::vector<core::token_id> prompt_ids;
  std::optional<std::string> message, system;
  bool json = false;
};

using phase = actors::job_stream::phase;

// Runs one job. Prints its text as it comes, or one JSON object at its end. Returns the exit code.
int generate_one(local_service& local, const generate_options& o) {
  auto& io = local.io();
  std::shared_ptr<actors::job_stream> stream;
  auto until_it_ends = boost::asio::make_work_guard(io);
  boost::asio::signal_set interrupt(io, SIGINT, SIGTERM);
  bool stopped = false;
  interrupt.async_wait([&](auto ec, int) {
    if (ec) return;
    stopped = true;
    stream->cancel();
  });

  std::uint32_t shown = 0;
  std::string text;
  stream = local.get().submit(o.request, io.get_executor(), [&] {
    if (!o.json && stream->published() > shown) {
      text.clear();
      stream->text_of(shown, stream->published(), text);
      shown = stream->published();
      std::cout << printable(text) << std::flush;
    }
    if (stream->state() != phase::done && stream->state() != phase::refused) return;
    interrupt.cancel();
    until_it_ends.reset();
  });
  io.run();

  const bool refused = stream->state() == phase::refused;
  if (o.json) std::cout << printable(core::json_line(answer_of(*stream))) << '\n';
  if (!o.json && !refused) std::cout << '\n';
  const core::error* fault = nullptr;
  if (refused) {
    fault = &stream->refusal();
  } else if (stream->ended().fault) {
    fault = &*stream->ended().fault;
  }
  if (fault) {
    std::cerr << core::visible(fault->message) << '\n';
    return exit_of(*fault);
  }
  return stopped ? exit_code::interrupted : exit_code::done;
}

core::conversation conversation_of(const generate_options& o) {
  core::conversation said;
  if (o.system) said.messages.push_back(boost::json::object{{"role", "system"}, {"content", *o.system}});
  said.messages.push_back(boost::json::object{{"role", "user"}, {"content", *o.message}});
  return said;
}

// Sets the request's prompt from the option or the file that was given. A file of requests has the prompts in
// its lines.
core::result<> take_prompt(generate_options& o) {
  const int given = !o.prompt.empty() + !o.prompt_file.empty() + !o.prompt_ids.empty() +
                    o.message.has_value() + !o.batch.empty();
  if (given > 1)
    return core::bad_param("prompt",
                           "--prompt, --prompt-file, --prompt-ids, --message and --batch: give only one");
  if (o.system && !o.message) return core::bad_param("system", "--system goes with --message only");
  if (o.message) {
    o.request.input_param = "message";
    o.request.input = conversation_of(o);
    return {};
  }
  o.request.input_param = "prompt";
  if (!o.prompt_ids.empty()) {
    o.request.input = actors::prompt_ids(o.prompt_ids);
    return {};
  }
  if (!o.prompt_file.empty()) {
    std::ifstream in(o.prompt_file);
    if (!in) return core::bad_param("prompt-file", "--prompt-file {}: cannot be read", o.prompt_file);
    o.prompt.assign(std::istreambuf_iterator<char>(in), {});
  }
  o.request.input = o.prompt;
  return {};
}

core::result<> take_constraint(generate_options& o) {
  auto named = constraint_of(o.constraint);
  if (!named) return named.error();
  if (!*named) return {};
  if (!o.batch.empty()) return core::bad_param("batch", "the lines of --batch have constraints of their own");
  o.request.constraint = std::move((*named)->what);
  o.request.constraint_param = std::move((*named)->field);
  const auto force = core::grammar::parse_forcing(o.force);
  if (!force) return core::bad_param("force", "--force: {}", force.error().message);
  o.request.force = *force;
  return {};
}

int run(generate_options& o) {
  auto ok = take_prompt(o);
  if (ok) ok = take_constraint(o);
  if (!ok) {
    std::cerr << ok.error().message << '\n';
    return exit_code::bad_usage;
  }
  if (o.batch.empty()) {
    local_service local(o.engine, 1);
    return local.ok() ? generate_one(local, o) : local.exit();
  }
  std::ifstream in(o.batch);
  if (!in) {
    std::cerr << "--batch " << o.batch << ": cannot be read\n";
    return exit_code::bad_usage;
  }
  local_service local(o.engine, o.engine.max_batch);
  return local.ok() ? generate_batch(local, in, 2 * o.engine.max_batch) : local.exit();
}

}  // namespace

command add_generate(CLI::App& app) {
  auto o = std::make_shared<generate_options>();
  auto& r = o->request;
  app.add_option("--message", o->message, "a message of a user, for the model's chat template");
  app.add_option("--system", o->system, "a system message before it");
  app.add_option("--prompt", o->prompt, "a raw prompt, which no template changes");
  app.add_option("--prompt-file", o->prompt_file, "the same from a file")->type_name("F");
  app.add_option("--prompt-ids", o->prompt_ids, "the same as token ids")->delimiter(',')->type_name("1,2,3");
  app.add_option("--batch", o->batch,
                 "a request a line (response.create's fields) in; results in the same order out, one a line")
      ->type_name("F.jsonl");
  app.add_flag("--json", o->json, "one JSON object instead of text");
  app.add_option("--max-tokens", r.max_tokens, "longest answer")->type_name("tokens");
  add_sampling(app, r.sampling);
  add_constraint(app, o->constraint);
  app.add_option("--force", o->force,
                 "tokens that a constraint decides without the model: canonical, single or off")
      ->capture_default_str();
  app.add_option("--stop", r.stop, "a string that ends the answer; repeatable")->allow_extra_args(false);
  app.add_flag("--ignore-eos", r.ignore_eos, "go on past the model's own ending token");
  name_variables(app);
  add_settings(app, o->engine);
  refuse(app, {"share"});
  add_common(app);
  return [o] { return run(*o); };
}

}  // namespace weir::apps
