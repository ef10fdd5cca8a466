// config.h — the table of all settings: name, meaning, unit, range, group and default of each.
//
// The structs have the defaults. visit_settings() has the name, meaning, unit, range and group of each
// member. The command line, the TOML file, the WEIR_… environment variables, `--help` and `--print-config`
// are all made from visit_settings(), so no other code has the name of a setting. Code that needs settings
// takes these structs, or derives from them.
//
// Thread safety: plain data; any thread, once filled.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/clock.h"
#include "core/error.h"

namespace weir::core {

// How models run on a device.
struct device_settings {
  std::uint32_t threads = 0;
  std::uint64_t kv_tokens = 0;
  std::uint64_t kv_floor = 0;
  std::uint32_t kv_host_mb = 0;
  std::uint64_t reserve_bytes = 512 << 20;
  std::uint32_t max_batch = 64;
  std::uint32_t max_seq_len = 0;
  bool deterministic = false;
  std::uint32_t mask_threads = 1;
  std::chrono::milliseconds grammar_time{2000};
  std::uint64_t grammar_cache_bytes = 256 << 20;
  std::chrono::milliseconds prefill_time{0};
  std::chrono::milliseconds step_time{250};
  std::chrono::milliseconds turn_time{20};
  std::uint32_t max_tokens_default = 4096;
};

// Which models run, and how. Used by every subcommand that runs a model.
struct engine_settings : device_settings {
  std::vector<std::string> model, context;
  std::string device = "auto";
  std::string kv_type = "auto";
  std::string activations = "f32";
  bool chatml = false;
  std::string chat_template;
  std::string slo;
};

// How many jobs may wait for a model. Beyond these limits, a job is refused.
struct queue_settings {
  std::uint32_t queue = 256;
  std::uint64_t queue_tokens = 1 << 20;
  duration queue_wait = std::chrono::seconds(600);
};

// The limits for a program that submits its own jobs: at most `jobs` wait, for any time.
inline queue_settings queue_of(std::uint32_t jobs) {
  return {jobs, std::numeric_limits<std::uint64_t>::max(), duration::max()};
}

// The limits on a client.
struct client_settings {
  std::vector<std::string> trusted = {"127.0.0.1", "::1"};
  std::size_t sockets_per_address = 64;
  std::size_t jobs = 32;
  double messages_per_s = 20;
  std::size_t frame_bytes = 256 * 1024;
  std::size_t body_bytes = 2 * 1024 * 1024;
  std::size_t json_depth = 16;
  bool strict_fields = false;
  std::string reasoning_field = "reasoning_content";
  std::chrono::milliseconds handshake{5'000};
  std::chrono::milliseconds authenticate{10'000};
  std::chrono::milliseconds write_time{10'000};
  std::chrono::milliseconds sse_keep_alive{15'000};
  std::size_t backlog_bytes = 256 * 1024;
  std::chrono::milliseconds max_age{3'600'000};
  std::chrono::milliseconds detach_grace{30'000};
  std::chrono::milliseconds retain{120'000};
  std::size_t retain_mb = 256;
  std::chrono::milliseconds store{3'600'000};
  std::size_t store_mb = 256;
};

// Where a server listens, how long it drains, and what admins may do over the network.
struct listener_settings {
  std::string listen = "127.0.0.1:8080";
  std::string metrics_listen;
  std::vector<std::string> allow_origin;
  std::chrono::seconds drain{30};
  std::string models_dir;
  std::vector<std::string> alias;
  bool no_admin = false;
};

// Models that are loaded when a request asks for them, and leave when others need their room.
struct demand_settings {
  bool on_demand = false;
  std::chrono::seconds load_wait{120}, stay{10}, swap_wait{30}, longest_stay{300};
  std::size_t sleep_mb = 0;
  std::vector<std::string> pinned, idle_unload, idle_sleep;
};

struct server_settings : listener_settings, demand_settings {
  std::uint32_t io_threads = 1;
  std::uint32_t replicas = 1;
  std::vector<std::string> preset;
  std::vector<std::string> share, limit;
  queue_settings queue;
  std::string api_key_file;
  std::string token_secret_file;
  bool share_prefixes = false;
  client_settings clients;
  std::uint64_t max_memory = 0;
};

// What a program writes to its log.
struct log_settings {
  std::string level = "info";
  std::string format = "text";
};

// The description of a setting.
struct setting {
  const char* name;  // --name, name = … in a file, WEIR_NAME in the environment
  const char* meaning;
  const char* unit;                 // unit or form of a value: ms, tokens, HOST:PORT, …
  std::uint32_t low = 0, high = 0;  // range of a number; low == high: no range
  const char* zero = "";            // the word that stands for 0, such as auto; empty: none
  bool powers = false;              // a number of bytes, which may be written with K, M or G
  const char* group = "";           // heading under which help and the example file have it; see in_group()

  // One unit of a setting that is a time.
  std::chrono::milliseconds tick() const {
    return std::chrono::milliseconds(std::string_view(unit) == "s" ? 1000 : 1);
  }
  bool has_range() const { return low != high; }
};

// The value of a field, which is a number or a time, in the unit of its setting.
template <class T>
std::uint64_t number_of(const setting& s, const T& field) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<std::uint64_t>(field);
  else
    return static_cast<std::uint64_t>(field / s.tick());
}
// Sets a field to a value in the unit of its setting.
template <class T>
void set_number(const setting& s, T& field, std::uint64_t n) {
  if constexpr (std::is_arithmetic_v<T>)
    field = static_cast<T>(n);
  else
    field = std::chrono::duration_cast<T>(static_cast<std::int64_t>(n) * s.tick());
}

// The spelling of a number on the command line: 64, auto, 512M.
std::string text_of(const setting& s, std::uint64_t n);
// Parses such a spelling. The range is not checked. The error names the setting.
result<std::uint64_t> parse_number(const setting& s, std::string_view text);

// A visitor that passes each setting on to `v`, with the group set.
template <class V>
auto in_group(const char* group, V& v) {
  return [group, &v](setting s, auto& field) {
    s.group = group;
    v(s, field);
  };
}

// Settings that more than one command has.
namespace common_settings {
inline constexpr setting replicas{
    "replicas",
    "copies of each model, on as many devices: a job goes where its first token is predicted soonest",
    "copies", 1, 64};
inline constexpr setting context{
    "context",
    "longest sequence of the models, or with NAME= of the one of that name, prompt and answer; 0 = the "
    "model's own; repeatable",
    "[NAME=]TOKENS"};
inline constexpr setting chatml{"chatml", "use ChatML for messages whatever template the model has", ""};
inline constexpr setting chat_template{
    "chat-template", "Jinja template for messages, whatever template the model has; not with chatml", "FILE"};
inline constexpr setting max_tokens_default{"max-tokens-default", "answer length where a request names none",
                                            "tokens", 1, 1 << 24};
inline constexpr setting grammar_ms{"grammar-ms", "longest time to compile a constraint; 0 = no limit", "ms",
                                    0, 600000};
}  // namespace common_settings

// Calls v(setting, field) for each setting of a struct. The current value of a field is its default.
template <class V>
void visit_settings(device_settings& s, V&& v) {
  const auto models = in_group("Models", v), memory = in_group("Memory and batching", v);
  memory({"threads", "threads that compute, 0 = one per core", "threads", 0, 1024}, s.threads);
  memory({"kv-tokens", "KV memory for all sequences together, or auto", "tokens", 0, 0, "auto"}, s.kv_tokens);
  memory({"kv-floor",
          "least KV memory of a model where kv-tokens is auto, or auto (a whole sequence and a page for each "
          "sequence of the batch where there is room, 8192 tokens where several models share a device)",
          "tokens", 0, 0, "auto"},
         s.kv_floor);
  memory({"kv-host-mb",
          "host memory for pages of KV memory that have to give way, so that they need not be computed "
          "again; 0 = none",
          "MB", 0, 1 << 24},
         s.kv_host_mb);
  memory({"reserve-vram",
          "memory of a cuda device that is left free when all else is there; K, M and G are powers of 1024",
          "bytes", 0, 0, "", true},
         s.reserve_bytes);
  memory({"max-batch", "sequences that run at once", "sequences", 1, 8192}, s.max_batch);
  memory({"deterministic",
          "the same tokens whatever runs beside a job, bit for bit, on cuda too (slower there; on cpu it "
          "is always so)",
          ""},
         s.deterministic);
  memory({"mask-threads",
          "threads beside the device's owner that make the masks of constraints (schemas, grammars); 0 = the "
          "owner makes them",
          "threads", 0, 256},
         s.mask_threads);
  memory(common_settings::grammar_ms, s.grammar_time);
  memory({"grammar-cache",
          "memory for compiled constraints, of which the least recently used give way; K, M and G are powers "
          "of 1024",
          "bytes", 0, 0, "", true},
         s.grammar_cache_bytes);
  memory({"prefill-ms",
          "longest step with a slice of a prompt while others decode, or auto (30 on cpu; half as long "
          "again as one without on cuda; as slo says, where it is given)",
          "ms", 0, 0, "auto"},
         s.prefill_time);
  memory({"step-ms", "longest step with nothing decoding", "ms", 1, 60000}, s.step_time);
  memory({"turn-ms", "longest step with a slice of a prompt while another model has work on the device", "ms",
          1, 60000},
         s.turn_time);
  models({"max-seq-len", "longest sequence of any model, prompt and answer; 0 = the model's own", "tokens", 0,
          1 << 24},
         s.max_seq_len);
  models(common_settings::max_tokens_default, s.max_tokens_default);
}

template <class V>
void visit_settings(engine_settings& s, V&& v) {
  const auto models = in_group("Models", v);
  models(
      {"model",
       "a model: a directory in Hugging Face layout, a GGUF file, or random:SHAPE[:f32|bf16|f16|q8_0|...]; "
       "repeatable; none: the bundled rill",
       "[NAME=]PATH"},
      s.model);
  models(common_settings::context, s.context);
  models({"device",
          "where models run: auto (cuda:0 where there is one, else cpu), cuda[:N], cpu, reference, or "
          "sim[:K=V,...]; several with commas: models are spread over them",
          "DEVICE[,DEVICE...]"},
         s.device);
  visit_settings(static_cast<device_settings&>(s), v);
  const auto memory = in_group("Memory and batching", v);
  memory({"kv-type",
          "type in which keys and values are stored: auto (f32 on cpu and reference; on cuda f16, or bf16 "
          "with bf16 and quantised weights), f32, bf16, fp8 or q8; cuda takes auto, fp8, q8, and bf16 where "
          "that is auto",
          "TYPE"},
         s.kv_type);
  models({"activations",
          "what quantised weights multiply on cpu: f32, or int8, which rounds each row of activations to 8 "
          "bits with a scale for every 32 inputs: faster, and answers differ; other devices take f32",
          "TYPE"},
         s.activations);
  memory({"slo",
          "time to the first token and mean gap between tokens that requests should keep, such as "
          "ttft=1000,tpot=50 in ms; prompts beside streams get as much of each step as keeps tpot, and more "
          "where first tokens need it; none: as prefill-ms says",
          "ttft=TIME,tpot=TIME"},
         s.slo);
  models(common_settings::chatml, s.chatml);
  models(common_settings::chat_template, s.chat_template);
}

template <class V>
void visit_settings(queue_settings& s, V&& v) {
  const auto queue = in_group("Queue", v);
  queue({"queue", "jobs that wait before a request is refused with 429", "jobs", 0, 1 << 20}, s.queue);
  queue({"queue-tokens", "tokens of prompts that wait to be computed before a request is refused with 429",
         "tokens", 1, 1 << 30},
        s.queue_tokens);
  queue({"queue-wait-s", "longest wait, as predicted, before a request is refused with 429", "s", 1, 86400},
        s.queue_wait);
}

template <class V>
void visit_settings(client_settings& s, V&& v) {
  const auto limits = in_group("Limits on clients", v), lost = in_group("Lost connections", v);
  const auto network = in_group("Network", v);
  limits({"trusted-proxy", "address whose sockets are not counted, beside the machine's own; repeatable",
          "ADDRESS"},
         s.trusted);
  limits({"sockets-per-address", "connections that one address may have", "sockets", 1, 1 << 20},
         s.sockets_per_address);
  limits({"max-jobs", "responses at a time on one WebSocket", "jobs", 1, 1 << 16}, s.jobs);
  limits({"messages-per-s", "frames that one WebSocket may send, not counting pongs", "frames/s", 1, 1 << 20},
         s.messages_per_s);
  limits({"max-frame", "largest WebSocket frame that is taken, its JSON Schema not counted", "bytes", 1024,
          1 << 30},
         s.frame_bytes);
  limits({"max-body", "largest HTTP body that is taken", "bytes", 1024, 1 << 30}, s.body_bytes);
  limits({"json-depth", "deepest nesting of a WebSocket frame's JSON", "levels", 4, 1024}, s.json_depth);
  limits({"strict-fields", "refuse unknown fields of HTTP bodies, instead of naming them in `warnings`", ""},
          s.strict_fields);
  network(
      {"reasoning-field",
       "where chats have the model's reasoning: reasoning_content, reasoning, or both with a comma between",
       "NAME[,NAME]"},
      s.reasoning_field);
  limits({"handshake-ms", "how long a connection may take over its first header", "ms", 100, 1 << 30},
         s.handshake);
  limits({"auth-ms", "how long a WebSocket may take to say its key", "ms", 100, 1 << 30}, s.authenticate);
  limits({"write-ms", "how long one write may take before its reader is cut off", "ms", 100, 1 << 30},
         s.write_time);
  network(
      {"sse-keep-alive-ms",
       "silence on a stream of events after which a comment is sent, so that proxies keep the connection; "
       "0 = never",
       "ms", 0, 1 << 30},
      s.sse_keep_alive);
  limits({"max-backlog", "unsent bytes before a WebSocket's reader is cut off", "bytes", 1024, 1 << 30},
         s.backlog_bytes);
  limits({"max-age-s", "how long a WebSocket may live", "s", 1, 1 << 30}, s.max_age);
  lost({"detach-grace-ms", "how long a running job waits for its reader to come back", "ms", 0, 1 << 30},
       s.detach_grace);
  lost({"retain-s", "how long an ended job of a WebSocket can still be resumed", "s", 0, 86400}, s.retain);
  lost({"retain-mb", "memory for ended jobs that can be resumed, the oldest leave first", "MB", 0, 1 << 20},
       s.retain_mb);
  const auto responses = in_group("Responses", v);
  responses(
      {"store-s",
       "how long a response of /v1/responses can be read again or gone on with, from the last time that "
       "a response went on with it",
       "s", 1, 86400 * 30},
      s.store);
  responses({"store-mb",
             "memory for such responses, those that were not gone on with for the longest leave first; 0: "
             "none is kept",
             "MB", 0, 1 << 20},
            s.store_mb);
}

template <class V>
void visit_settings(demand_settings& s, V&& v) {
  const auto models = in_group("Models", v);
  models(
      {"on-demand",
       "load a model that is known when a request asks for it; other models that have no job leave where it "
       "needs their room. With --models-dir this is always so",
       ""},
      s.on_demand);
  models({"load-wait-s", "most that a request waits for its model", "s", 1, 3600}, s.load_wait);
  models({"stay-s", "after its last job no model leaves for another one", "s", 0, 86400}, s.stay);
  models({"swap-wait-s",
          "a request that waits for longer closes the way to a busy model, whose jobs run to their ends", "s",
          0, 3600},
         s.swap_wait);
  models({"keep-alive-most-s", "most that requests may lengthen the stay of their model: keep_alive, ttl",
          "s", 0, 86400},
         s.longest_stay);
  models(
      {"sleep-mb",
       "host memory for the weights of models that sleep; a model that leaves for another one sleeps there "
       "where it has room; 0: none, and models sleep on the disk alone",
       "MB", 0, 1 << 24},
      s.sleep_mb);
  models({"pinned", "model that stays once it is loaded; repeatable", "NAME"}, s.pinned);
  models({"idle-unload", "seconds without a job after which the model of that name is unloaded; repeatable",
          "NAME=S"},
         s.idle_unload);
  models({"idle-sleep", "seconds without a job after which the model of that name goes to sleep; repeatable",
          "NAME=S"},
         s.idle_sleep);
}

template <class V>
void visit_settings(server_settings& s, V&& v) {
  const auto memory = in_group("Memory and batching", v);
  const auto network = in_group("Network", v), keys = in_group("Keys", v);
  memory({"max-memory",
          "memory that the process may take before requests are refused, models included; K, M and G are "
          "powers of 1024; auto: what the cgroup allows, or the machine has",
          "bytes", 0, 0, "auto", true},
         s.max_memory);
  in_group("Models", v)(common_settings::replicas, s.replicas);
  in_group("Models", v)({"models-dir",
                         "directory of models that can be loaded by name while the server runs: its "
                         "sub-directories, theirs, and its GGUF files; none: only those of --model",
                         "DIR"},
                        s.models_dir);
  in_group("Models", v)(
      {"alias", "another name for a model, by which clients may call it; repeatable", "NAME=MODEL"}, s.alias);
  in_group("Models", v)(
      {"share",
       "weight of the model of that name where several have work on one device: their parts of its time "
       "are as their weights, 1 where none is given; 0.001 to 1000; repeatable",
       "NAME=WEIGHT"},
      s.share);
  in_group("Models", v)(
      {"limit",
       "limits of the model of that name, narrower than the server's: batch, queue, queue_tokens, kv_tokens "
       "and max_tokens, the longest answer; repeatable",
       "NAME=LIMIT:N,..."},
      s.limit);
  in_group("Models", v)({"preset",
                         "sampling fields under a name, which requests take by `preset`: the file is an "
                         "object of a request's sampling fields; repeatable",
                         "NAME=FILE"},
                        s.preset);
  visit_settings(static_cast<demand_settings&>(s), v);
  visit_settings(s.queue, v);
  network({"listen", "address to listen on; port 0 picks a free one", "HOST:PORT"}, s.listen);
  network(
      {"metrics-listen",
       "second address, which serves /metrics and /health alone and asks for no key: a port of 127.0.0.1, "
       "or HOST:PORT; none: /metrics is at the first address alone",
       "[HOST:]PORT"},
      s.metrics_listen);
  network({"allow-origin", "origin whose pages may connect, beside the server's own; repeatable", "ORIGIN"},
          s.allow_origin);
  network({"io-threads", "threads that serve sockets", "threads", 1, 256}, s.io_threads);
  network({"drain-s", "how long running jobs may finish after SIGTERM", "s", 0, 86400}, s.drain);
  keys({"api-key-file",
        "file of keys, one a line with what it may do, read again on SIGHUP and when it changes; none: "
        "everybody may",
        "FILE"},
       s.api_key_file);
  keys({"no-admin",
        "leave out the routes that load, unload and swap models; with keys they are for an admin's, without "
        "keys for programs of this machine",
        ""},
       s.no_admin);
  keys({"token-secret-file",
        "file with the secret that signs browser tokens, 32 bytes or more; none: a random one, and tokens "
        "end with the server",
        "FILE"},
       s.token_secret_file);
  keys({"share-prefixes", "what is computed of a prompt serves other keys' requests, too", ""},
       s.share_prefixes);
  visit_settings(s.clients, v);
}

template <class V>
void visit_settings(log_settings& s, V&& v) {
  const auto logging = in_group("Logging", v);
  logging({"log-level", "least important message to log: trace, debug, info, warn, error or off", "LEVEL"},
          s.level);
  logging({"log-format", "form of a line of the log: text, or json with an object a line", "FORMAT"},
          s.format);
}

}  // namespace weir::core
