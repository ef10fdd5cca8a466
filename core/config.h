// config.h — every setting there is, once: name, meaning, unit, range and default.
//
// The command line, the TOML file, the WEIR_… environment variables and `--help` all come from
// visit_settings(); nothing else knows a setting's name. Plain data: any thread, once filled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::core {

// What decides how a model runs: taken by serve, generate and chat alike.
struct engine_settings {
  std::vector<std::string> model;
  std::string device = "auto";
  std::uint32_t threads = 0;
  std::string kv_tokens = "auto";
  std::uint32_t kv_host_mb = 0;
  std::string reserve_vram = "512M";
  std::uint32_t max_batch = 64;
  std::uint32_t max_seq_len = 0;
  bool deterministic = false;
  std::string prefill_ms = "auto";
  std::uint32_t step_ms = 250;
  std::uint32_t max_tokens_default = 4096;
  bool chatml = false;
};

struct server_settings {
  std::string listen = "127.0.0.1:8080";
  std::uint32_t io_threads = 1;
  std::uint32_t queue = 256;
  std::uint32_t queue_tokens = 1 << 20;
  std::uint32_t queue_wait_s = 600;
  std::uint32_t text_queue = 1024;
  std::uint32_t text_queue_bytes = 64 << 20;
  std::vector<std::string> allow_origin;
  std::string api_key_file;
  bool share_prefixes = false;
  std::vector<std::string> trusted_proxy;
  std::uint32_t sockets_per_address = 64;
  std::uint32_t max_jobs = 32;
  std::uint32_t messages_per_s = 20;
  std::uint32_t frames_per_s = 1000;
  std::uint32_t max_frame = 256 * 1024;
  std::uint32_t max_body = 2 * 1024 * 1024;
  std::uint32_t max_header = 8 * 1024;
  std::uint32_t json_depth = 16;
  std::uint32_t json_values = 1 << 18;
  std::uint32_t handshake_ms = 5000;
  std::uint32_t auth_ms = 10000;
  std::uint32_t write_ms = 10000;
  std::uint32_t max_backlog = 256 * 1024;
  std::uint32_t max_age_s = 3600;
  std::uint32_t detach_grace_ms = 30000;
  std::uint32_t drain_s = 30;
  std::string max_memory = "auto";
};

// What a setting is, beside its field and default.
struct setting {
  const char* name;     // --name, name = … in a file, WEIR_NAME in the environment
  const char* meaning;
  const char* unit;     // what a value is: ms, tokens, HOST:PORT, …
  double low = 0, high = 0;  // range of a number; low == high: no range
};

// Calls v(setting, field) for each; a field's value at the time is its default.
template <class V>
void visit_settings(engine_settings& s, V&& v) {
  v(setting{"model",
            "a model: a directory in Hugging Face layout, or random:SHAPE[:f32|bf16|f16]; repeatable; none: "
            "the bundled rill",
            "[NAME=]DIR"},
    s.model);
  v(setting{"device",
            "where models run: auto (cuda:0 where there is one, else cpu), cuda[:N], cpu, reference, or "
            "sim[:K=V,...]",
            "DEVICE"},
    s.device);
  v(setting{"threads", "threads that compute, 0 = one per core", "threads", 0, 1024}, s.threads);
  v(setting{"kv-tokens", "KV memory for all sequences together, or auto", "tokens"}, s.kv_tokens);
  v(setting{"kv-host-mb",
            "host memory for pages of KV memory that have to give way, so that they need not be computed "
            "again; 0 = none",
            "MB", 0, 1 << 24},
    s.kv_host_mb);
  v(setting{"reserve-vram",
            "memory of a cuda device that is left free when all else is there; K, M and G are powers of 1024",
            "bytes"},
    s.reserve_vram);
  v(setting{"max-batch", "sequences that run at once", "sequences", 1, 8192}, s.max_batch);
  v(setting{"max-seq-len", "longest sequence, prompt and answer; 0 = the model's own", "tokens", 0, 1 << 24},
    s.max_seq_len);
  v(setting{"deterministic",
            "the same tokens whatever runs beside a job, bit for bit, on cuda too (slower there; on cpu it "
            "is always so)",
            ""},
    s.deterministic);
  v(setting{"prefill-ms",
            "longest step with a slice of a prompt while others decode, or auto (30 on cpu; half as long "
            "again as one without on cuda)",
            "ms"},
    s.prefill_ms);
  v(setting{"step-ms", "longest step with nothing decoding", "ms", 1, 60000}, s.step_ms);
  v(setting{"max-tokens-default", "answer length where a request names none", "tokens", 1, 1 << 24},
    s.max_tokens_default);
  v(setting{"chatml", "use ChatML for messages whatever template the model has", ""}, s.chatml);
}

template <class V>
void visit_settings(server_settings& s, V&& v) {
  v(setting{"listen", "address to listen on; port 0 picks a free one", "HOST:PORT"}, s.listen);
  v(setting{"io-threads", "threads that serve sockets", "threads", 1, 256}, s.io_threads);
  v(setting{"queue", "jobs that wait before a request is refused with 429", "jobs", 0, 1 << 20}, s.queue);
  v(setting{"queue-tokens", "tokens of prompts that wait to be computed before a request is refused with 429",
            "tokens", 1, 1 << 30},
    s.queue_tokens);
  v(setting{"queue-wait-s", "longest wait, as predicted, before a request is refused with 429", "s", 1,
            86400},
    s.queue_wait_s);
  v(setting{"text-queue", "texts that wait to be tokenised before a request is refused with 429", "texts", 1,
            1 << 20},
    s.text_queue);
  v(setting{"text-queue-bytes", "bytes of such texts before a request is refused with 429", "bytes", 1024,
            1 << 30},
    s.text_queue_bytes);
  v(setting{"allow-origin", "origin whose pages may connect, beside the server's own; repeatable", "ORIGIN"},
    s.allow_origin);
  v(setting{"api-key-file", "file of keys, one a line, any of which lets a client in; none: everybody may",
            "FILE"},
    s.api_key_file);
  v(setting{"share-prefixes", "what is computed of a prompt serves other keys' requests, too", ""},
    s.share_prefixes);
  v(setting{"trusted-proxy", "address whose sockets are not counted, beside the machine's own; repeatable",
            "ADDRESS"},
    s.trusted_proxy);
  v(setting{"sockets-per-address", "connections that one address may have", "sockets", 1, 1 << 20},
    s.sockets_per_address);
  v(setting{"max-jobs", "responses at a time on one WebSocket", "jobs", 1, 1 << 16}, s.max_jobs);
  v(setting{"messages-per-s", "frames that one WebSocket may send, not counting pongs", "frames/s", 1,
            1 << 20},
    s.messages_per_s);
  v(setting{"frames-per-s", "frames of any kind that one WebSocket may send, fragments, pings and pongs too",
            "frames/s", 1, 1 << 24},
    s.frames_per_s);
  v(setting{"max-frame", "largest WebSocket frame that is taken", "bytes", 1024, 1 << 30}, s.max_frame);
  v(setting{"max-body", "largest HTTP body that is taken", "bytes", 1024, 1 << 30}, s.max_body);
  v(setting{"max-header", "longest HTTP header that is taken", "bytes", 512, 1 << 20}, s.max_header);
  v(setting{"json-depth", "deepest nesting of a WebSocket frame's JSON", "levels", 4, 1024}, s.json_depth);
  v(setting{"json-values", "values and keys that the JSON of a body or frame may have", "values", 1024,
            1 << 24},
    s.json_values);
  v(setting{"handshake-ms", "how long a connection may take over its first header", "ms", 100, 1 << 30},
    s.handshake_ms);
  v(setting{"auth-ms", "how long a WebSocket may take to say its key", "ms", 100, 1 << 30}, s.auth_ms);
  v(setting{"write-ms", "how long one write may take before its reader is cut off", "ms", 100, 1 << 30},
    s.write_ms);
  v(setting{"max-backlog", "unsent bytes before a WebSocket's reader is cut off", "bytes", 1024, 1 << 30},
    s.max_backlog);
  v(setting{"max-age-s", "how long a WebSocket may live", "s", 1, 1 << 30}, s.max_age_s);
  v(setting{"detach-grace-ms", "how long a running job waits for its reader to come back", "ms", 0, 1 << 30},
    s.detach_grace_ms);
  v(setting{"drain-s", "how long running jobs may finish after SIGTERM", "s", 0, 86400}, s.drain_s);
  v(setting{"max-memory",
            "memory that the process may take before requests are refused, models included; K, M and G are "
            "powers of 1024; auto: what the cgroup allows, or the machine has",
            "bytes"},
    s.max_memory);
}

}  // namespace weir::core
