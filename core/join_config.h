// join_config.h — the settings by which a process joins others as a fleet, in the table of core/config.h.
//
// Thread safety: plain data; any thread, once filled.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/config.h"

namespace weir::core {

struct join_settings {
  std::string join;
  std::string cell = "main";
  std::string join_ca, join_cert, join_key, join_nkey;
};

// `weir worker`, beside the settings of its models.
struct worker_settings : join_settings, demand_settings {
  queue_settings queue;
  std::uint32_t replicas = 1;
  std::string models_dir;
  std::chrono::seconds drain{30};
  std::chrono::seconds adopt_grace{30};
  bool demo = false;
};

// `weir serve`, beside the settings of its models and its server. Without `join` it is alone.
struct member_settings : join_settings {
  std::chrono::milliseconds dead_after{2000};
  std::uint32_t moves = 3;
  std::chrono::seconds adopt_grace{30};
  bool strict_class = false;
};

// `weir gateway`, beside the settings of its server.
struct gateway_settings : join_settings {
  std::vector<std::string> model, context;
  bool chatml = false;
  std::string chat_template;
  std::uint32_t max_tokens_default = 4096;
  std::chrono::milliseconds grammar_time{2000};
  std::chrono::milliseconds dead_after{2000};
  std::uint32_t moves = 3;
  bool demo = false;
  bool strict_class = false;
  bool fetch_models = false;
};

template <class V>
void visit_settings(join_settings& s, V&& v) {
  const auto fleet = in_group("Fleet", v);
  fleet({"join",
         "servers of NATS by which the processes of a fleet find each other, nats://HOST[:PORT] or "
         "tls://HOST[:PORT]; several with commas",
         "URL[,URL...]"},
        s.join);
  fleet({"cell", "name of the fleet among those that use the same servers", "NAME"}, s.cell);
  fleet({"join-ca",
         "certificates of those who may sign the servers' own, as PEM; required unless all servers are on "
         "this machine",
         "FILE"},
        s.join_ca);
  fleet({"join-cert", "this process's certificate, as PEM; with join-key", "FILE"}, s.join_cert);
  fleet({"join-key", "private key of join-cert, as PEM", "FILE"}, s.join_key);
  fleet({"join-nkey",
         "seed of the key by which the servers know this process, as `nk -gen user` writes it; required "
         "unless all servers are on this machine",
         "FILE"},
        s.join_nkey);
}

template <class V>
void visit_adopt_grace(std::chrono::seconds& s, V&& v) {
  v({"adopt-grace-s", "how long the jobs of a gateway that is gone run on", "s", 0, 86400}, s);
}

// When a gateway gives a worker up, and a job.
template <class V>
void visit_deaths(std::chrono::milliseconds& dead_after, std::uint32_t& moves, V&& v) {
  v({"dead-after-ms", "silence after which a worker is given up and its jobs go on at others", "ms", 500,
     600000},
    dead_after);
  v({"moves", "how often a job may lose its worker before it ends with an error", "times", 0, 100}, moves);
}

template <class V>
void visit_strict_class(bool& s, V&& v) {
  v({"strict-class",
     "a job that loses its worker ends with an error where no other worker has the same arithmetic (class); "
     "without it the job goes on, within rounding",
     ""},
    s);
}

template <class V>
void visit_settings(member_settings& s, V&& v) {
  visit_settings(static_cast<join_settings&>(s), v);
  const auto fleet = in_group("Fleet", v);
  visit_deaths(s.dead_after, s.moves, fleet);
  visit_adopt_grace(s.adopt_grace, fleet);
  visit_strict_class(s.strict_class, fleet);
}

template <class V>
void visit_settings(worker_settings& s, V&& v) {
  visit_settings(static_cast<join_settings&>(s), v);
  visit_settings(s.queue, v);
  const auto fleet = in_group("Fleet", v);
  in_group("Models", v)(common_settings::replicas, s.replicas);
  in_group("Models", v)({"models-dir",
                         "directory of models that orders and requests at gateways can have loaded by name: "
                         "its sub-directories, theirs, and its GGUF files; none: only those of --model",
                         "DIR"},
                        s.models_dir);
  visit_settings(static_cast<demand_settings&>(s), v);
  fleet(
      {"drain-s", "how long running jobs may finish after SIGTERM, before gateways move them", "s", 0, 86400},
      s.drain);
  visit_adopt_grace(s.adopt_grace, fleet);
  fleet({"demo",
         "a demonstration: this process kills itself where a reader at a gateway with --demo wants to see an "
         "answer go on; on this machine alone",
         ""},
        s.demo);
}

template <class V>
void visit_settings(gateway_settings& s, V&& v) {
  visit_settings(static_cast<join_settings&>(s), v);
  const auto fleet = in_group("Fleet", v), models = in_group("Models", v);
  visit_deaths(s.dead_after, s.moves, fleet);
  visit_strict_class(s.strict_class, fleet);
  fleet({"demo",
         "a demonstration: a button on the page kills the worker of the answer that runs, if that worker has "
         "--demo; on this machine alone",
         ""},
        s.demo);
  models(
      {"model",
       "a model of the workers, by the name that they give it: a directory or a GGUF file with its "
       "tokenizer, template and config (the weights are not read), random:SHAPE, or sim[:SPEC]; repeatable; "
       "none: all models of the workers, whose files come from these",
       "[NAME=]PATH"},
      s.model);
  models({"fetch-models",
          "beside those of model, the other models of the workers, too, whose files come from these", ""},
         s.fetch_models);
  models(common_settings::context, s.context);
  models(common_settings::chatml, s.chatml);
  models(common_settings::chat_template, s.chat_template);
  models(common_settings::max_tokens_default, s.max_tokens_default);
  models(common_settings::grammar_ms, s.grammar_time);
}

}  // namespace weir::core
