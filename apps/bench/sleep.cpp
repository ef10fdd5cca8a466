// `weir bench sleep`: a model sleeps and wakes again, round by round. It measures both times beside the rate
// of the link to the device, and compares the tokens and logits of the model before and after. A model that
// gives other bits whenever it is asked is asked for the logits of the same tokens: these may be a little
// apart. Then its pool gives way and grows (pool.h).
#include <CLI/CLI.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "apps/bench/bench.h"
#include "apps/bench/pool.h"
#include "core/model/load.h"
#include "core/sample/pipeline.h"
#include "kernels/host_buffer.h"
#include "kernels/random_weights.h"

namespace weir::apps::bench {
namespace {

struct sleep_options {
  device_options on;
  std::string model = "random:llama-3.1-8b:bf16", kv_type = "auto";
  std::uint64_t kv_tokens = 65'536;
  std::uint32_t rounds = 10;
};

constexpr std::uint32_t context = 8192, max_batch = 8, prompt_tokens = 200, answer_tokens = 32;

using backend_ptr = std::shared_ptr<const kernels::backend>;

core::result<core::loaded_model> open_model(const sleep_options& o, const backend_ptr& on) {
  const auto kv = core::parse_kv_type(o.kv_type);
  if (!kv) return kv.error();
  if (!o.model.starts_with("random:")) return core::load_model(o.model, on, {}, *kv, context);
  const auto shape = core::parse_random_model(std::string_view(o.model).substr(7), context);
  if (!shape) return shape.error();
  return core::make_random_model(*shape, on, 1, *kv);
}

// The rate of one large copy between pinned memory and the device, in bytes a second.
struct link_rates {
  double down = 0, up = 0;
};

core::result<link_rates> measure_link(const backend_ptr& on) {
  constexpr std::uint64_t bytes = 1u << 30;
  const kernels::host_buffer host(on, bytes);
  const kernels::buffer memory(on, bytes);
  if (!host.data() || !memory.data())
    return core::make_error(core::errc::does_not_fit, "no memory for a copy of {} bytes", bytes);
  std::fill_n(host.data(), bytes, std::byte{1});  // maps the pages where that was not done
  double down = 1e9, up = 1e9;
  for (int i = 0; i < 5; ++i) {
    up = std::min(up, seconds_of([&] {
                    if (!on->do_begin_upload)
                      return on->do_upload(on->self, memory.data(), host.data(), bytes);
                    on->do_begin_upload(on->self, memory.data(), host.data(), bytes, 0);
                    on->do_await_upload(on->self, 0);
                  }));
    down = std::min(down, seconds_of([&] { on->do_download(on->self, host.data(), memory.data(), bytes); }));
  }
  return link_rates{static_cast<double>(bytes) / down, static_cast<double>(bytes) / up};
}

// What a model makes of a prompt: drawn tokens, a digest of the logits that each was drawn from, and those of
// the last one.
struct spoken {
  std::vector<core::token_id> tokens;
  std::uint64_t digest = 0;
  std::vector<float> last;
  double first_s = 0;    // to the first token
  double longest_s = 0;  // of the steps behind it
};

// The largest difference of two lists of logits, as a part of the largest logit.
double distance(const spoken& a, const spoken& b) {
  float most = 0, apart = 0;
  for (std::size_t i = 0; i < a.last.size(); ++i) {
    most = std::max(most, std::abs(a.last[i]));
    apart = std::max(apart, std::abs(a.last[i] - b.last[i]));
  }
  return most > 0 ? apart / most : 0;
}

// One sequence by hand, in the model's first pages.
class speaker {
 public:
  explicit speaker(core::model& m) : model_(m), draws_from_(sampling(), m.info().vocab_size, {}, {}) {
    for (core::page_id p = 0; p < core::page_id(core::pages_for(prompt_tokens + answer_tokens)); ++p)
      pages_.push_back(p);
  }

  // `as`: its tokens are said in place of those that are drawn.
  core::result<spoken> speak(const spoken* as = nullptr) {
    spoken out;
    std::vector<core::token_id> ids;
    core::result<void> ok;
    for (std::uint32_t i = 0; i < prompt_tokens; ++i)
      ids.push_back(static_cast<core::token_id>(kernels::mix_bits(i) % model_.info().vocab_size));
    std::uint32_t position = 0;
    out.first_s = seconds_of([&] { ok = step(ids, position, out); });
    while (ok && out.tokens.size() < answer_tokens) {
      const auto next = as ? as->tokens[out.tokens.size() - 1] : out.tokens.back();
      out.longest_s = std::max(out.longest_s, seconds_of([&] { ok = step({next}, position, out); }));
    }
    if (!ok) return ok.error();
    return out;
  }

 private:
  static core::sampling_params sampling() {
    core::sampling_params p;
    p.temperature = 0;
    return p;
  }

  core::result<void> step(const std::vector<core::token_id>& ids, std::uint32_t& position, spoken& out) {
    core::batch b;
    core::batch_slice s;
    b.tokens = ids;
    s.rows = static_cast<std::uint32_t>(ids.size());
    s.position = position;
    position += s.rows;
    s.pages = std::span(pages_).first(core::pages_for(position));
    s.logits_row = 0;
    b.logits_rows = 1;
    b.slices.push_back(s);
    if (auto ok = model_.forward(b); !ok) return ok;
    const core::draw d{&draws_from_, 0, position, 1, prompt_tokens};
    core::drawn token;
    if (auto ok = model_.sample({&d, 1}, {&token, 1}); !ok) return ok;
    if (token.id < 0) return core::make_error(core::errc::internal, "no token could be drawn");
    out.tokens.push_back(token.id);
    const auto logits = model_.logits(0);
    if (logits.empty()) return core::make_error(core::errc::internal, "the model has no logits");
    out.last.assign(logits.begin(), logits.end());
    for (const float x : logits) out.digest = kernels::mix_bits(out.digest ^ std::bit_cast<std::uint32_t>(x));
    return {};
  }

  core::model& model_;
  core::sampler draws_from_;
  std::vector<core::page_id> pages_;
};

struct times {
  std::vector<double> sleeps, wakes, first_tokens;
  std::uint64_t freed = 0;  // bytes, the least of all rounds
  bool bits = true;         // tokens and logits were those of before
  double distance = 0;      // the largest one to what was said before
};

std::uint64_t free_of(const backend_ptr& on) { return on->free_bytes(on->self); }

core::error in_round(std::uint32_t round, const core::error& e) {
  return core::error{e.code, fmt::format("round {}: {}", round + 1, e.message), e.param};
}

// Other weights are further apart than bits that elements of 16 bits round away.
constexpr double most_distance = 0.03;

// `before`: what the model said before; `sure`: it says the same to the bit whenever it is asked.
core::result<times> run_rounds(core::model& m, const backend_ptr& on, std::uint32_t rounds,
                               const spoken& before, bool sure) {
  times out;
  out.freed = ~std::uint64_t{0};
  speaker s(m);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const std::uint64_t free = free_of(on);
    core::result<void> ok;
    out.sleeps.push_back(seconds_of([&] { ok = m.sleep(); }));
    if (!ok) return in_round(round, ok.error());
    const std::uint64_t asleep = free_of(on);
    out.freed = std::min(out.freed, asleep - std::min(asleep, free));
    out.wakes.push_back(seconds_of([&] { ok = m.wake(); }));
    if (!ok) return in_round(round, ok.error());
    const auto after = s.speak(&before);
    if (!after) return in_round(round, after.error());
    out.first_tokens.push_back(out.wakes.back() + after->first_s);
    out.bits &= after->tokens == before.tokens && after->digest == before.digest;
    out.distance = std::max(out.distance, distance(before, *after));
    if (sure ? !out.bits : !(out.distance <= most_distance))
      return in_round(round, {core::errc::internal, "the logits differ from those before the sleep", {}});
  }
  return out;
}

boost::json::object spread(std::vector<double> v) {
  return {{"p50", percentile(v, 0.5)}, {"worst", percentile(v, 1)}};
}

void add_figures(boost::json::object& out, const times& t, const link_rates& link) {
  const std::vector<double> later(t.sleeps.begin() + (t.sleeps.size() > 1 ? 1 : 0), t.sleeps.end());
  out["link_gb_per_s"] = {{"down", link.down * 1e-9}, {"up", link.up * 1e-9}};
  out["first_sleep_s"] = t.sleeps.front();
  out["sleep_s"] = spread(later);
  out["wake_s"] = spread(t.wakes);
  out["wake_to_first_token_s"] = spread(t.first_tokens);
  out["logits"] = t.bits ? "equal" : "apart by rounding, as they are without a sleep";
  out["logits_distance"] = t.distance;
}

// The rates of a sleep and of a wake that moved `bytes` bytes, beside those of the link.
void add_rates(boost::json::object& out, double bytes, const link_rates& link) {
  const auto add = [&](const std::string& what, double of_link) {
    const double rate = bytes / out.at(what + "_s").at("p50").as_double();
    out[what + "_gb_per_s"] = rate * 1e-9;
    out[what + "_share_of_link"] = rate / of_link;
  };
  add("sleep", link.down);
  add("wake", link.up);
}

core::result<boost::json::object> measure(const sleep_options& o) {
  const auto on = open(o.on);
  if (!on) return on.error();
  const auto link = measure_link(*on);
  if (!link) return link.error();
  const auto loaded = open_model(o, *on);
  if (!loaded) return loaded.error();
  core::model& m = *loaded->weights;
  if (auto ok = m.allocate_pages(core::pages_for(o.kv_tokens)); !ok) return ok.error();
  if (auto ok = m.warm_up(max_batch, m.info().prompt_rows); !ok) return ok.error();
  const auto host_bytes = m.sleep_bytes();
  if (!host_bytes) return m.sleep().error();
  speaker s(m);
  const auto before = s.speak();
  if (!before) return before.error();
  const auto again = s.speak(&*before);
  if (!again) return again.error();
  const bool sure = before->tokens == again->tokens && before->digest == again->digest;
  const std::uint64_t free = free_of(*on);
  auto t = run_rounds(m, *on, o.rounds, *before, sure);
  if (!t) return t.error();
  const std::uint64_t left = free_of(*on);
  const auto decode = [&]() -> core::result<double> {
    const auto said = s.speak(&*before);
    if (!said) return said.error();
    return said->longest_s;
  };
  auto pool = measure_pool(m, o.rounds, decode, [&] { return free_of(*on); });
  if (!pool) return pool.error();
  boost::json::object out{{"benchmark", "sleep"}, {"backend", std::string((*on)->name)}};
  out.insert({{"model", o.model}, {"rounds", o.rounds}, {"weight_bytes", m.info().weight_bytes}});
  out["pages_bytes"] = core::pages_for(o.kv_tokens) * m.info().page_bytes;
  out["host_bytes"] = *host_bytes;
  out["logits_distance_without_sleep"] = distance(*before, *again);
  add_figures(out, *t, *link);
  out["pool"] = *std::move(pool);
  if ((*on)->on_host) return out;  // weights stay where they are, and what is free is of all processes
  out["freed_bytes"] = t->freed;
  out["lost_bytes"] = static_cast<std::int64_t>(free) - static_cast<std::int64_t>(left);
  add_rates(out, static_cast<double>(m.info().weight_bytes), *link);
  return out;
}

int run(const sleep_options& o) { return report(measure(o), o.on.json); }

}  // namespace

command add_sleep(CLI::App& app) {
  auto o = std::make_shared<sleep_options>();
  add_options(app, o->on);
  app.add_option("--model", o->model, "a directory, a GGUF file, or random:SHAPE:TYPE")
      ->capture_default_str();
  app.add_option("--kv-type", o->kv_type, "of keys and values, as `weir serve` has it")
      ->capture_default_str();
  app.add_option("--kv-tokens", o->kv_tokens, "of the pool of pages, which is given back too")
      ->capture_default_str()
      ->check(CLI::Range(512, 1 << 30));
  app.add_option("--rounds", o->rounds, "sleeps and wakes; the first sleep allocates host memory")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  return [o] { return run(*o); };
}

}  // namespace weir::apps::bench
