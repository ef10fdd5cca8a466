#include "actors/open_model.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>

#include "actors/arithmetic.h"
#include "actors/fleet/text_files.h"
#include "actors/gpu_owner.h"
#include "core/model/load/model_path.h"
#include "core/text/chat/special_tokens.h"

namespace weir::actors {
namespace {

using core::errc;

constexpr std::uint32_t random_context = 8192;

// Most tokens of a sequence of a model that has `most`.
std::uint32_t context_of(const model_spec& spec, const owner_options& o, std::uint32_t most) {
  const std::uint32_t asked = asked_context(spec, o);
  return asked != 0 ? std::min(asked, most) : most;
}

// Free memory of the device in bytes; nullopt if the device does not report it.
std::optional<std::uint64_t> available_memory(const kernels::backend* on) {
  const std::uint64_t free = on ? on->free_bytes(on->self) : 0;
  return free ? std::optional(free) : std::nullopt;
}

// The number of pages: as granted, or as core::pages_in() says of what is free now.
core::result<std::uint32_t> pages_of(const model_spec& spec, const owner_options& o,
                                     const core::model_info& info, const kernels::backend* on) {
  const auto free = available_memory(on);
  const auto kind = !free         ? core::memory_kind::unknown
                    : on->on_host ? core::memory_kind::host
                                  : core::memory_kind::device;
  auto needs = pool_of(spec, o, info.context, {{info.page_bytes}});
  needs.steps = info.pool;
  const auto pages = core::pages_in(needs, kind, free.value_or(0), o.reserve_bytes);
  if (!pages && spec.pages)
    return core::make_error(errc::does_not_fit,
                            "{}: {} pages were granted, and {} MB are free now, less than these and the "
                            "reserve of {} MB",
                            spec.name, *spec.pages, free.value_or(0) >> 20, o.reserve_bytes >> 20);
  return pages;
}

// A pool that may grow has whole steps, so that it takes the bytes of its pages alone, and addresses for no
// more than the device has memory for. One that is too small for that, or cannot grow, has the pages that it
// got.
struct chosen_pool {
  std::uint32_t pages = 0, most = 0;  // most: 0: it does not grow
};
chosen_pool pool_that_grows(const model_spec& spec, const core::model_info& info, std::uint32_t pages,
                            std::uint32_t longest, std::uint64_t device_bytes) {
  const auto& steps = info.pool;
  if (!spec.most_pages || steps.step == 0 || info.page_bytes == 0) return {pages};
  const auto most = steps.rounded(
      static_cast<std::uint32_t>(std::min<std::uint64_t>(*spec.most_pages, device_bytes / info.page_bytes)));
  const auto whole = pages - pages % steps.step;
  if (most <= pages || !steps.change(most) || whole < std::max(steps.step, longest)) return {pages};
  return {whole, most};
}

// The number of pages in the host tier, from --kv-host-mb.
core::result<std::uint32_t> host_pages_of(const owner_options& o, const core::model_info& info) {
  if (o.kv_host_mb == 0) return 0u;
  if (info.page_bytes == 0)
    return core::bad_param("kv-host-mb", "--kv-host-mb: {} has no keys and values to keep",
                           info.architecture);
  const std::uint64_t pages = (std::uint64_t{o.kv_host_mb} << 20) / info.page_bytes;
  if (pages == 0)
    return core::bad_param("kv-host-mb", "--kv-host-mb {}: a page takes {} bytes", o.kv_host_mb,
                           info.page_bytes);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(pages, 1u << 24));
}

std::shared_ptr<const core::chat_template> given_chat(const template_text& t, boost::json::object tokens) {
  return core::chat_template::from_source(t.source, std::move(tokens), t.file);
}

// Of a model that has no files, and so no special tokens.
std::shared_ptr<const core::chat_template> chat_without_files(const owner_options& o) {
  return o.chat_template ? given_chat(*o.chat_template, {}) : core::chat_template::chatml();
}

// A template that is given gets the special tokens of the model's files.
core::result<std::shared_ptr<const core::chat_template>> chat_of_files(const model_spec& spec,
                                                                       const owner_options& o,
                                                                       const core::tokenizer& t) {
  if (!o.chat_template) return core::chat_template::load(spec.source, t, o.chatml);
  auto tokens = core::special_tokens_of(spec.source);
  if (!tokens) return tokens.error();
  return given_chat(*o.chat_template, std::move(*tokens));
}

core::result<std::unique_ptr<ready_model>> open_sim(const model_spec& spec, const owner_options& o,
                                                    std::function<void(core::duration)> spend) {
  const auto sim = sim_shape(spec, o);
  if (!sim) return sim.error();
  if (sim->load_fault)
    return core::make_error(errc::internal, "the simulated load failed, as fault=load asks");
  std::shared_ptr<const core::sim_script> script;
  if (!sim->script.empty()) {
    auto read = core::sim_script::read(sim->script);
    if (!read) return read.error();
    script = std::move(*read);
  }
  auto m = std::make_unique<ready_model>();
  m->served->tokenizer = script ? core::make_byte_tokenizer() : core::make_sim_tokenizer();
  m->weights = core::make_sim_model(*sim, std::move(spend), std::move(script));
  m->served->chat = chat_without_files(o);
  return m;
}

core::result<std::unique_ptr<ready_model>> open_random(const model_spec& spec, const owner_options& o,
                                                       std::shared_ptr<const kernels::backend> backend) {
  const auto shape = random_shape(spec, o);
  if (!shape) return shape.error();
  auto loaded = core::make_random_model(*shape, std::move(backend), 1, o.kv);
  if (!loaded) return loaded.error();
  auto m = std::make_unique<ready_model>();
  m->weights = std::move(loaded->weights);
  m->served->tokenizer = core::make_numbered_tokenizer(m->weights->info().vocab_size);
  m->served->chat = chat_without_files(o);
  return m;
}

// Refuses a model whose weights and first page do not fit. This is checked before the files are read.
core::result<void> check_room(const model_spec& spec, const owner_options& o, const kernels::backend& on) {
  const auto free = available_memory(&on);
  if (!free) return {};
  const auto found = core::inspect_model(spec.source, on, o.kv, 1, asked_context(spec, o));
  if (!found) return found.error();
  const std::uint64_t reserve = on.on_host ? 0 : o.reserve_bytes;
  if (found->weight_bytes + found->page_bytes + reserve <= *free) return {};
  return core::make_error(errc::does_not_fit,
                          "{}: the weights take {} MB and a page {} KB; {} MB are free, {} MB of them "
                          "reserved",
                          spec.source, found->weight_bytes >> 20, found->page_bytes >> 10, *free >> 20,
                          reserve >> 20);
}

core::result<std::unique_ptr<ready_model>> open_files(const model_spec& spec, const owner_options& o,
                                                      std::shared_ptr<const kernels::backend> backend,
                                                      const model_progress& progress) {
  if (const auto there = core::check_model_path(spec.source); !there)
    return core::bad_param("model", "--model {}", there.error().message);
  if (const auto fits = check_room(spec, o, *backend); !fits) return fits.error();
  auto m = std::make_unique<ready_model>();
  auto tokenizer = core::load_tokenizer(spec.source);
  if (!tokenizer) return tokenizer.error();
  m->served->tokenizer = std::move(*tokenizer);
  auto chat = chat_of_files(spec, o, *m->served->tokenizer);
  if (!chat) return chat.error();
  m->served->chat = std::move(*chat);
  const auto show = [&](std::uint64_t done, std::uint64_t total) {
    if (progress) progress(spec.name, done, total);
  };
  auto loaded = core::load_model(spec.source, std::move(backend), show, o.kv, asked_context(spec, o));
  if (!loaded) return loaded.error();
  m->weights = std::move(loaded->weights);
  m->served->defaults = loaded->generation.defaults;
  m->served->notes = std::move(loaded->notes);
  return m;
}

std::string fresh_fingerprint() {
  std::random_device device;
  return fmt::format("fp_{:08x}{:08x}", device(), device());
}

// What a model is to requests, once its info, tokenizer and template are known.
void describe(served_model& served, const model_spec& spec, const owner_options& o) {
  served.name = spec.name;
  served.max_tokens_default = o.max_tokens_default;
  served.created_s =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  served.fingerprint = fresh_fingerprint();
  for (const bool tools : {false, true})
    served.answers[tools] =
        std::make_shared<const core::known_format>(served.chat->format(tools), *served.tokenizer);
}

core::result<void> texts_of_sim(served_model& m, const model_spec& spec, const owner_options& o) {
  const auto sim = sim_shape(spec, o);
  if (!sim) return sim.error();
  std::shared_ptr<const core::sim_script> script;
  if (!sim->script.empty()) {
    auto read = core::sim_script::read(sim->script);
    if (!read) return read.error();
    script = std::move(*read);
  }
  m.tokenizer = script ? core::make_byte_tokenizer() : core::make_sim_tokenizer();
  m.info = core::make_sim_model(*sim, {}, std::move(script))->info();
  m.chat = chat_without_files(o);
  return {};
}

core::result<void> texts_of_random(served_model& m, const model_spec& spec, const owner_options& o) {
  const auto shape = random_shape(spec, o);
  if (!shape) return shape.error();
  m.info.architecture = shape->config.architecture;
  m.info.vocab_size = shape->config.shape.vocab;
  m.info.context = shape->config.context;
  m.info.stop_ids = shape->config.stop_ids;
  m.tokenizer = core::make_numbered_tokenizer(m.info.vocab_size);
  m.chat = chat_without_files(o);
  return {};
}

core::result<void> texts_of_files(served_model& m, const model_spec& spec, const owner_options& o) {
  auto facts = core::read_model_facts(spec.source);
  if (!facts) return facts.error();
  m.info.architecture = facts->config.architecture;
  m.info.vocab_size = facts->config.shape.vocab;
  m.info.context = facts->config.context;
  m.info.stop_ids = std::move(facts->generation.stop_ids);
  m.defaults = facts->generation.defaults;
  auto tokenizer = core::load_tokenizer(spec.source);
  if (!tokenizer) return tokenizer.error();
  m.tokenizer = std::move(*tokenizer);
  auto chat = chat_of_files(spec, o, *m.tokenizer);
  if (!chat) return chat.error();
  m.chat = std::move(*chat);
  return {};
}

}  // namespace

core::result<std::shared_ptr<served_model>> open_texts(const model_spec& spec, const owner_options& o) {
  auto m = std::make_shared<served_model>();
  const bool simulated = spec.source == "sim" || spec.source.starts_with("sim:");
  const auto opened = simulated         ? texts_of_sim(*m, spec, o)
                      : is_random(spec) ? texts_of_random(*m, spec, o)
                                        : texts_of_files(*m, spec, o);
  if (!opened) return opened.error();
  m->context = context_of(spec, o, m->info.context);
  describe(*m, spec, o);
  return m;
}

// With auto a step with a slice takes 30 ms on the host. On a device of its own decoding is fast, and auto
// means at most one and a half times a step without a slice. The target is below that, since not all slices
// take the same time. With an objective, auto means what the objective needs.
void set_slices(core::engine_config& c, const owner_options& o, bool own_device) {
  const bool given = o.prefill_time.count() != 0;
  c.slo = o.slo;
  c.prompt_share = !given && !c.slo.set() && own_device ? 0.4 : 0;
  if (given) {
    c.step_target = o.prefill_time;
  } else {
    c.step_target = c.slo.set() || own_device ? core::duration::zero() : std::chrono::milliseconds(30);
  }
}

std::uint32_t asked_context(const model_spec& spec, const owner_options& o) {
  const std::uint32_t own = spec.context.value_or(o.context);
  return own != 0 && o.max_seq_len != 0 ? std::min(own, o.max_seq_len) : std::max(own, o.max_seq_len);
}

bool is_random(const model_spec& spec) { return spec.source.starts_with("random:"); }

core::result<core::random_model> random_shape(const model_spec& spec, const owner_options& o) {
  const std::uint32_t asked = asked_context(spec, o);
  return core::parse_random_model(std::string_view(spec.source).substr(7),
                                  asked != 0 ? asked : random_context);
}

core::result<core::sim_spec> sim_shape(const model_spec& spec, const owner_options& o) {
  if (o.kv) return core::bad_param("kv-type", "--kv-type: sim has no keys and values to store");
  const auto colon = spec.source.find(':');
  return core::parse_sim_spec(colon == spec.source.npos ? "" : spec.source.substr(colon + 1));
}

core::result<owner_options> options_for(const model_spec& spec, const owner_options& o) {
  owner_options out = o;
  std::optional<core::error> wide;
  const auto narrow = [&](std::string_view name, const std::optional<std::uint64_t>& limit, auto& of) {
    if (!limit) return;
    if (*limit > of && !wide)
      wide = core::bad_param("limits", "{}: the limit {} is {}, and the server's is {}", spec.name, name,
                             *limit, of);
    of = static_cast<std::remove_reference_t<decltype(of)>>(*limit);
  };
  narrow("batch", spec.limits.batch, out.max_batch);
  narrow("queue", spec.limits.queue, out.queue);
  narrow("queue_tokens", spec.limits.queue_tokens, out.queue_tokens);
  if (wide) return *wide;
  if (spec.limits.kv_tokens) out.kv_tokens = *spec.limits.kv_tokens;
  if (const auto& most = spec.limits.max_tokens)
    out.max_tokens_default = static_cast<std::uint32_t>(std::min<std::uint64_t>(*most, o.max_tokens_default));
  return out;
}

core::pool_needs pool_of(const model_spec& spec, const owner_options& o, std::uint32_t context,
                         std::vector<core::page_group> groups) {
  core::pool_needs p;
  p.groups = std::move(groups);
  p.context = context_of(spec, o, context);
  p.context_asked = asked_context(spec, o) != 0;
  p.max_batch = o.max_batch;
  p.kv_tokens = spec.pages ? std::uint64_t{*spec.pages} * core::page_tokens : o.kv_tokens;
  p.kv_floor = o.kv_floor;
  return p;
}

std::string name_of_source(const std::string& source) {
  if (source.starts_with("random:")) return source.substr(7, source.find(':', 7) - 7);
  const auto path = std::filesystem::absolute(source).lexically_normal();
  const std::string last = (path.has_filename() ? path : path.parent_path()).filename().string();
  return last.ends_with(".gguf") ? last.substr(0, last.size() - 5) : last;
}

namespace {

// What gateways ask of a model. What cannot be said is a note for the log: the model serves all the same.
void ready_for_fleet(ready_model& m, const model_spec& spec, const owner_options& o,
                     const kernels::backend* on) {
  auto facts = arithmetic_of(spec, o, on, m.weights->info());
  if (facts)
    m.place->arithmetic = std::move(*facts);
  else
    m.served->notes.push_back("the class of its arithmetic is not known: " + facts.error().message);
  auto files = fleet::text_files::open(spec.source);
  if (files)
    m.served->files = std::move(*files);
  else
    m.served->notes.push_back("gateways need --model for it: " + files.error().message);
}

}  // namespace

core::result<std::unique_ptr<ready_model>> open_model(const model_spec& spec, const owner_options& all,
                                                      std::shared_ptr<const kernels::backend> backend,
                                                      const model_progress& progress,
                                                      std::function<void(core::duration)> spend) {
  const auto own = options_for(spec, all);
  if (!own) return own.error();
  const owner_options& o = *own;
  const auto memory = [&] {
    return backend && backend->memory ? backend->memory(backend->self) : kernels::device_memory{};
  };
  const auto before = memory();
  auto opened = o.device == "sim" ? open_sim(spec, o, std::move(spend))
                : is_random(spec) ? open_random(spec, o, backend)
                                  : open_files(spec, o, backend, progress);
  if (!opened) return opened;
  if (spec.unwanted && *spec.unwanted)
    return core::make_error(core::errc::unavailable, "nobody waits for {} any more", spec.name);
  auto& m = **opened;
  const auto& info = m.weights->info();
  const auto context = context_of(spec, o, info.context);
  m.config.prefill_rows = info.prompt_rows;
  if (backend && !backend->on_host) {  // allocates what steps need; pages_of() then gets the rest
    if (auto ok = m.weights->allocate_pages(1); !ok) return ok.error();
    if (auto ok = m.weights->warm_up(o.max_batch, m.config.prefill_rows); !ok) return ok.error();
  }
  const auto pages = pages_of(spec, o, info, backend.get());
  if (!pages) return pages.error();
  const auto host = host_pages_of(o, info);
  if (!host) return host.error();
  const auto pool = pool_that_grows(spec, info, *pages, core::pages_for(context), before.total);
  if (pool.most > 0)
    if (auto ok = m.weights->reserve_pages(pool.most); !ok) return ok.error();
  if (auto ok = m.weights->allocate_pages(pool.pages); !ok) return ok.error();
  if (*host > 0)
    if (auto ok = m.weights->allocate_host_pages(*host); !ok) return ok.error();
  if (auto ok = m.weights->warm_up(o.max_batch, m.config.prefill_rows); !ok) return ok.error();

  m.config.max_batch = o.max_batch;
  m.config.kv_pages = pool.pages;
  m.config.host_pages = *host;
  m.config.max_seq_len = context;
  m.config.keep_jobs = true;  // the owner starts a device that failed again, and their tokens go on
  set_slices(m.config, o, backend && !backend->on_host);
  m.config.lone_step_target = o.step_time;

  auto& place = *m.place;
  place.device = o.device;
  place.memory.weights = info.weight_bytes;
  place.sleep_bytes = m.weights->sleep_bytes();
  place.kv_tokens = std::uint64_t{pool.pages} * core::page_tokens;
  place.memory.pages = pool.pages * info.page_bytes;
  place.pages = pool.pages;
  place.most_pages = static_cast<std::uint32_t>(std::max(0, m.weights->most_pages()));
  place.page_step = static_cast<std::uint32_t>(std::max(0, m.weights->page_step()));
  place.page_bytes = info.page_bytes;
  place.memory.kv_type = info.kv_type;
  place.memory.host_pages = *host * info.page_bytes;
  place.memory.workspaces = m.weights->activation_bytes();
  if (backend && backend->memory) place.memory.reconcile(before, memory());
  place.context = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(context, std::uint64_t{pool.pages} * core::page_tokens));
  place.admission = std::make_unique<admission_control>(o.max_batch, o);

  auto& served = *m.served;
  if (o.joins_fleet) ready_for_fleet(m, spec, o, backend.get());
  served.info = info;
  served.context = place.context;
  describe(served, spec, o);
  if (spec.limits.max_tokens) served.max_tokens = static_cast<std::uint32_t>(*spec.limits.max_tokens);
  return opened;
}

core::duration simulated_load(const model_spec& spec, const owner_options& o) {
  if (o.device != "sim") return {};
  const auto sim = sim_shape(spec, o);
  return sim ? sim->load : core::duration();
}

simulated_nap_times simulated_naps(const model_spec& spec, const owner_options& o) {
  if (o.device != "sim") return {};
  const auto sim = sim_shape(spec, o);
  return sim ? simulated_nap_times{sim->sleep, sim->wake} : simulated_nap_times();
}

void make_engine(ready_model& m, const core::clock& time,
                 std::shared_ptr<core::grammar::mask_helpers> masks) {
  m.engine = std::make_unique<core::engine>(std::move(m.weights), core::token_table(*m.served->tokenizer),
                                            m.config, time, std::move(masks));
}

}  // namespace weir::actors
