#include "core/model/sim.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <numbers>
#include <string>

#include "core/sample/pipeline.h"

namespace weir::core {
namespace {

std::uint64_t splitmix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

duration seconds(double s) { return duration(static_cast<std::int64_t>(s * 1e9)); }

class sim_model final : public model {
 public:
  sim_model(const sim_spec& spec, std::function<void(duration)> spend,
            std::shared_ptr<const sim_script> script)
      : spec_(spec),
        grid_(spec.rate > 0 ? seconds(spec.burst / spec.rate) : duration(1)),
        spend_(std::move(spend)),
        script_(std::move(script)) {
    info_.architecture = "sim";
    info_.vocab_size = script_ ? sim_script_vocab : sim_vocab_size;
    if (script_) info_.stop_ids = {sim_script_end};
    info_.context = spec.context;
    info_.weight_bytes = spec.weight_bytes;
    info_.page_bytes = std::uint64_t{spec.page_kb} << 10;
    if (info_.page_bytes > 0) info_.kv_type = "sim";
    info_.paced = spec.step == duration::zero() && spec.rate > 0;
    if (!info_.paced) info_.prompt_rows = device_prompt_rows;
  }

  const model_info& info() const noexcept override { return info_; }
  result<void> allocate_pages(std::uint32_t count) override {
    pages_ = static_cast<std::int32_t>(count);
    return {};
  }
  result<void> allocate_host_pages(std::uint32_t) override { return {}; }
  result<void> save_page(page_id, std::uint32_t) override { return {}; }
  result<void> restore_page(page_id, std::uint32_t) override { return {}; }

  std::int32_t pages() const noexcept override { return pages_; }
  std::int32_t most_pages() const noexcept override {
    return std::max(pages_.load(), spec_.page_step > 0 ? static_cast<std::int32_t>(spec_.most_pages) : 0);
  }
  std::int32_t page_step() const noexcept override { return static_cast<std::int32_t>(spec_.page_step); }

  result<void> set_pages(std::int32_t pages) override {
    if (spec_.page_step == 0) return model::set_pages(pages);
    const auto n = ++changes_;
    if (n == spec_.pages_fault) return broken("pages", n);
    if (n == spec_.pages_room_fault)
      return make_error(errc::does_not_fit, "the simulated device is full, as fault=pages_room@{} asks", n);
    if (asleep_ || pages < 1 || pages > most_pages())
      return make_error(errc::internal, "the simulated model was to have {} pages", pages);
    pages_ = pages;
    return {};
  }

  result<void> move_pages(std::span<const page_copy>) override { return {}; }

  time_point due(const upcoming& u) const override {
    const std::uint32_t end = u.position + u.rows;
    time_point when = u.last;
    if (u.position < u.prompt_tokens) when += seconds(u.rows / spec_.prefill);
    if (end >= u.prompt_tokens && (end - u.prompt_tokens) % spec_.burst == 0)
      when = next_on_grid(when, u.ordinal);
    return after_stall(when);
  }

  std::optional<std::uint64_t> sleep_bytes() const noexcept override {
    return spec_.sleeps ? std::optional(spec_.weight_bytes) : std::nullopt;
  }

  result<void> sleep(const std::atomic<bool>*) override {
    if (!spec_.sleeps) return make_error(errc::not_supported, "the simulated model cannot sleep");
    const auto n = ++sleeps_;
    if (n == spec_.sleep_fault) return broken("sleep", n);
    if (n == spec_.sleep_room_fault)
      return make_error(errc::does_not_fit, "the simulated host memory is short, as fault=sleep_room@{} asks",
                        n);
    asleep_ = true;
    return {};
  }

  result<void> wake(const std::atomic<bool>*) override {
    const auto n = ++wakes_;
    if (n == spec_.wake_fault) return broken("wake", n);
    if (n == spec_.wake_room_fault)
      return make_error(errc::does_not_fit, "the simulated device is full, as fault=wake_room@{} asks", n);
    asleep_ = false;
    return {};
  }

  result<void> forward(const batch& b) override {
    if (asleep_) return make_error(errc::internal, "the simulated model sleeps, and was to compute");
    if (const auto page = gone_page(b))
      return make_error(errc::internal, "the simulated model has {} pages, and page {} was used",
                        pages_.load(), *page);
    if (++forwards_ == spec_.device_fault) {
      return make_error(errc::internal, "the simulated device failed at step {}, as fault=device@{} asks",
                        forwards_, forwards_);
    }
    if (spec_.step != duration::zero() && spend_) spend_(cost_of(b));
    return {};
  }

  result<void> sample(std::span<const draw> draws, std::span<drawn> out) override {
    for (std::size_t i = 0; i < draws.size(); ++i) {
      if (++draws_ >= spec_.sampler_fault &&
          draws_ <= std::max(spec_.sampler_fault, spec_.last_sampler_fault)) {
        out[i].fault = true;
      } else {
        out[i].id = token_of(draws[i]);
        if (draws[i].top_logprobs >= 0) tell_logprobs(draws, i, out[i].id);
      }
    }
    return {};
  }

  const kernels::draw_logprobs& logprobs_of(std::uint32_t i) const override { return logprobs_[i]; }

  std::span<const float> logits(std::uint32_t) const override { return {}; }

 private:
  static constexpr std::uint32_t device_prompt_rows = 2048;  // of a step, as for large models on a GPU

  // A page of the batch that has no memory.
  std::optional<page_id> gone_page(const batch& b) const {
    if (spec_.page_step == 0) return std::nullopt;
    for (const auto& s : b.slices)
      for (const page_id p : s.pages)
        if (p >= pages_) return p;
    return std::nullopt;
  }

  static error broken(std::string_view what, std::uint64_t n) {
    return make_error(errc::internal, "the simulated {} failed, as fault={}@{} asks", what, what, n);
  }

  duration cost_of(const batch& b) const {
    duration all = spec_.step;
    for (const auto& s : b.slices)
      all += s.rows * (s.rows > 1 ? spec_.step_prompt_row : spec_.step_stream_row);
    return all;
  }

  token_id scripted(const draw& d) const {
    const std::string_view say = script_->answer(d.from->prompt());
    const std::uint32_t at = d.position - d.prompt_tokens;
    return at < say.size() ? static_cast<unsigned char>(say[at]) : sim_script_end;
  }

  token_id token_of(const draw& d) const {
    const token_id free = script_ ? scripted(d) : sim_token(d.seed, d.position - d.prompt_tokens);
    if (d.allowed.empty() && d.from->attempt() == 0) return free;
    const auto allowed = [&](std::uint32_t id) {
      const bool in = d.allowed.empty() || (d.allowed[id / 32] >> (id % 32) & 1) != 0;
      return in && !d.from->refuses(static_cast<token_id>(id));
    };
    auto id = static_cast<std::uint32_t>(free);
    for (std::uint32_t looked = 0; looked < info_.vocab_size && !allowed(id); ++looked)
      id = (id + 1) % info_.vocab_size;
    return static_cast<token_id>(id);
  }

  void tell_logprobs(std::span<const draw> draws, std::size_t i, token_id drawn) {
    const auto likely = [&](std::uint32_t k) {
      const auto id = (static_cast<std::uint32_t>(drawn) + k) % info_.vocab_size;
      return kernels::token_logprob{static_cast<token_id>(id),
                                    -static_cast<float>(k + 1) * std::numbers::ln2_v<float>};
    };
    if (logprobs_.size() < draws.size()) logprobs_.resize(draws.size());
    logprobs_[i].drawn = likely(0);
    logprobs_[i].count = static_cast<std::uint32_t>(draws[i].top_logprobs);
    for (std::uint32_t k = 0; k < logprobs_[i].count; ++k) logprobs_[i].likeliest[k] = likely(k);
  }

  // The first point of the grid after `t`. The shift of a staggered grid is the fractional part of a multiple
  // of the golden ratio, rounded down to a sixteenth: these are evenly spread for any number of sequences.
  time_point next_on_grid(time_point t, std::uint64_t ordinal) const {
    duration phase{};
    if (spec_.staggered) {
      const double periods = static_cast<double>(ordinal) * 0.6180339887498949;
      phase = grid_ * static_cast<std::int64_t>((periods - std::floor(periods)) * sim_phases) / sim_phases;
    }
    const duration since = t.time_since_epoch() - phase;
    return time_point((since / grid_ + (since.count() >= 0 ? 1 : 0)) * grid_ + phase);
  }

  time_point after_stall(time_point t) const {
    if (spec_.stall_every == duration::zero()) return t;
    const duration since = t.time_since_epoch();
    const duration into = since % spec_.stall_every;
    if (since < spec_.stall_every || into >= spec_.stall_for) return t;
    return t - into + spec_.stall_for;
  }

  sim_spec spec_;
  duration grid_;
  std::function<void(duration)> spend_;
  std::shared_ptr<const sim_script> script_;
  model_info info_;
  std::uint64_t forwards_ = 0, draws_ = 0, sleeps_ = 0, wakes_ = 0, changes_ = 0;
  std::atomic<std::int32_t> pages_{0};
  bool asleep_ = false;
  std::vector<kernels::draw_logprobs> logprobs_;  // by draw of the latest sample()
};

error bad(std::string_view key, std::string_view value, std::string_view wanted) {
  return bad_param("device", "sim: {}={} is not {}", key, value, wanted);
}

template <class T>
bool number(std::string_view text, T& out) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failed == std::errc{} && end == text.data() + text.size();
}

template <class T>
result<void> set(T& field, std::string_view key, std::string_view value, T least, T most) {
  T n{};
  if (!number(value, n) || !(n >= least && n <= most)) {
    return bad(key, value, fmt::format("a number from {} to {}", least, most));
  }
  field = n;
  return {};
}

result<void> set_stall(sim_spec& s, std::string_view value) {
  const auto slash = value.find('/');
  std::uint32_t every = 0, lasts = 0;
  const bool read =
      slash != value.npos && number(value.substr(0, slash), every) && number(value.substr(slash + 1), lasts);
  if (!read || lasts == 0 || lasts >= every)
    return bad("stall", value, "EVERY_MS/FOR_MS with 0 < FOR_MS < EVERY_MS");
  s.stall_every = std::chrono::milliseconds(every);
  s.stall_for = std::chrono::milliseconds(lasts);
  return {};
}

result<void> set_step(sim_spec& s, std::string_view value) {
  constexpr double most_us = 1e6;
  duration* const into[] = {&s.step, &s.step_prompt_row, &s.step_stream_row};
  std::string_view left = value;
  for (std::size_t i = 0; i < std::size(into); ++i) {
    const auto slash = i + 1 < std::size(into) ? left.find('/') : left.size();
    double us = 0;
    if (slash == left.npos || !number(left.substr(0, slash), us) || !(us >= 0 && us <= most_us))
      return bad("step", value, "BASE/PROMPT/STREAM, each from 0 to 1e6 us");
    *into[i] = duration(std::llround(us * 1e3));
    left.remove_prefix(std::min(slash + 1, left.size()));
  }
  if (s.step <= duration::zero()) return bad("step", value, "BASE/PROMPT/STREAM with BASE above 0");
  return {};
}

result<void> set_fault(sim_spec& s, std::string_view value) {
  if (value == "load") {
    s.load_fault = true;
    return {};
  }
  const auto at = value.find('@');
  const std::string_view kind = value.substr(0, at);
  const std::string_view when = at == value.npos ? std::string_view() : value.substr(at + 1);
  const struct {
    std::string_view kind;
    std::uint64_t& first;
  } kinds[] = {{"sampler", s.sampler_fault},       {"device", s.device_fault},
               {"sleep", s.sleep_fault},           {"wake", s.wake_fault},
               {"pages", s.pages_fault},           {"pages_room", s.pages_room_fault},
               {"sleep_room", s.sleep_room_fault}, {"wake_room", s.wake_room_fault}};
  const auto known = std::ranges::find(kinds, kind, [](const auto& k) { return k.kind; });
  const auto dash = kind == "sampler" ? when.find('-') : when.npos;
  std::uint64_t n = 0, last = 0;
  const bool read = number(when.substr(0, dash), n) && n > 0;
  const bool to = dash == when.npos ? (last = n, true) : number(when.substr(dash + 1), last) && last >= n;
  if (!read || !to || known == std::end(kinds))
    return bad(
        "fault", value,
        "load, sampler@N, sampler@N-M, device@N, sleep@N, sleep_room@N, wake@N, wake_room@N, pages@N or "
        "pages_room@N with 1 <= N <= M");
  known->first = n;
  if (kind == "sampler") s.last_sampler_fault = last;
  return {};
}

result<void> set_sleep(sim_spec& s, std::string_view value) {
  constexpr std::uint32_t most_ms = 600'000;
  s.sleeps = value != "never";
  if (!s.sleeps) return {};
  const auto slash = value.find('/');
  std::uint32_t sleep = 0, wake = 0;
  const bool read = slash != value.npos && number(value.substr(0, slash), sleep) &&
                    number(value.substr(slash + 1), wake) && sleep <= most_ms && wake <= most_ms;
  if (!read) return bad("sleep", value, "never, or SLEEP_MS/WAKE_MS of at most 600000 each");
  s.sleep = std::chrono::milliseconds(sleep);
  s.wake = std::chrono::milliseconds(wake);
  return {};
}

result<void> set_pages(sim_spec& s, std::string_view value) {
  constexpr std::uint32_t most_kb = 1u << 20, most = 1u << 24;
  const auto first = value.find('/'), last = value.rfind('/');
  const bool read = first != value.npos && first != last && number(value.substr(0, first), s.page_kb) &&
                    number(value.substr(first + 1, last - first - 1), s.page_step) &&
                    number(value.substr(last + 1), s.most_pages) && s.page_kb > 0 && s.page_kb <= most_kb &&
                    s.page_step <= most && s.most_pages <= most;
  if (!read) return bad("pages", value, "KB/STEP/MOST with KB from 1 to 2^20, STEP and MOST up to 2^24");
  return {};
}

result<void> set_key(sim_spec& s, std::string_view key, std::string_view value) {
  if (key == "rate") {
    if (auto ok = set(s.rate, key, value, 0.0, 1e6); !ok) return ok;
    return s.rate != 0 && s.rate < 1e-3 ? result<void>(bad(key, value, "0 (the default) or at least 0.001"))
                                        : result<void>();
  }
  if (key == "arrive") {
    if (value != "together" && value != "staggered") return bad(key, value, "together or staggered");
    s.staggered = value == "staggered";
    return {};
  }
  if (key == "prefill") return set(s.prefill, key, value, 1e-3, 1e9);
  if (key == "burst") return set<std::uint32_t>(s.burst, key, value, 1, 10000);
  if (key == "stall") return set_stall(s, value);
  if (key == "step") return set_step(s, value);
  if (key == "fault") return set_fault(s, value);
  if (key == "sleep") return set_sleep(s, value);
  if (key == "pages") return set_pages(s, value);
  if (key == "script") {
    if (value.empty()) return bad(key, value, "the path of a file");
    s.script = value;
    return {};
  }
  if (key == "ctx") return set<std::uint32_t>(s.context, key, value, 2, 1u << 24);
  std::uint32_t n = 0;
  if (key == "load") {
    if (auto ok = set<std::uint32_t>(n, key, value, 0, 600'000); !ok) return ok;
    s.load = std::chrono::milliseconds(n);
    return {};
  }
  if (key == "mb") {
    if (auto ok = set<std::uint32_t>(n, key, value, 0, 1'000'000); !ok) return ok;
    s.weight_bytes = std::uint64_t{n} << 20;
    return {};
  }
  return bad_param("device",
                   "sim: no key «{}» (there are rate arrive prefill burst step stall fault ctx load sleep mb "
                   "pages script)",
                   key);
}

}  // namespace

result<sim_spec> parse_sim_spec(std::string_view text) {
  sim_spec spec;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text = comma == text.npos ? std::string_view{} : text.substr(comma + 1);
    const auto equals = item.find('=');
    if (equals == item.npos) return bad_param("device", "sim: «{}» is not KEY=VALUE", item);
    if (auto ok = set_key(spec, item.substr(0, equals), item.substr(equals + 1)); !ok) return ok.error();
  }
  if (spec.rate == 0 && spec.script.empty()) spec.rate = sim_spec{}.rate;
  return spec;
}

token_id sim_token(std::uint64_t seed, std::uint32_t index) {
  return static_cast<token_id>(splitmix64((seed << 32) + index) % sim_vocab_size);
}

std::unique_ptr<model> make_sim_model(const sim_spec& spec, std::function<void(duration)> spend,
                                      std::shared_ptr<const sim_script> script) {
  return std::make_unique<sim_model>(spec, std::move(spend), std::move(script));
}

}  // namespace weir::core
