#include "apps/engine_options.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <set>
#include <thread>

#include "actors/open_model.h"
#include "core/model/load.h"

namespace weir::apps {
namespace {

using core::bad_param;

// A number, or nothing for auto.
core::result<std::optional<std::uint64_t>> number_or_auto(const char* option, const std::string& text) {
  if (text == "auto") return std::optional<std::uint64_t>{};
  std::uint64_t n = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (ec != std::errc{} || end != text.data() + text.size() || n == 0)
    return bad_param(option, "--{} must be a number above 0, or auto, not '{}'", option, text);
  return std::optional(n);
}

// NAME=SOURCE, or SOURCE alone.
actors::model_spec spec_of(const std::string& text) {
  actors::model_spec m;
  const auto eq = text.find('=');
  m.source = eq == text.npos ? text : text.substr(eq + 1);
  m.name = eq == text.npos ? actors::name_of_source(m.source) : text.substr(0, eq);
  return m;
}

// The model that ships with weir: beside an installed binary, or in the source tree that it was built from.
std::string bundled_model() {
  namespace fs = std::filesystem;
  std::error_code ec;
  const auto installed = fs::read_symlink("/proc/self/exe", ec).parent_path() / "../share/weir/models/rill";
  return (fs::is_directory(installed, ec) ? installed.lexically_normal() : fs::path(WEIR_MODELS_DIR "/rill"))
      .string();
}

core::result<std::string> device_of(const std::string& asked) {
  if (asked == "auto") {
    std::string why;
    auto best = core::best_device(why);
    if (!why.empty()) std::fprintf(stderr, "weir: device cpu (%s)\n", why.c_str());
    return best;
  }
  if (asked == "cpu" || asked == "reference") return asked;
  if (asked == "sim" || asked.starts_with("sim:")) return std::string("sim");
  if (asked == "cuda") return std::string("cuda:0");
  const bool numbered =
      asked.starts_with("cuda:") && asked.size() > 5 && asked.size() < 9 &&
      std::all_of(asked.begin() + 5, asked.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (numbered) return asked;
  return bad_param("device", "--device must be auto, cuda[:N], cpu, reference or sim[:K=V,...], not '{}'",
                   asked);
}

core::result<std::vector<actors::model_spec>> models_of(const core::engine_settings& s,
                                                        const std::string& device) {
  std::vector<actors::model_spec> out;
  if (device == "sim") {
    if (!s.model.empty())
      return bad_param("model", "--model: the simulated device serves its own model, called sim");
    out.push_back({"sim", s.device, false});
    return out;
  }
  if (s.model.empty()) {
    out.push_back({"rill", bundled_model(), s.chatml});
    return out;
  }
  std::set<std::string> names;
  for (const auto& text : s.model) {
    auto m = spec_of(text);
    m.force_chatml = s.chatml;
    if (m.name.empty()) return bad_param("model", "--model {}: the name is empty", text);
    if (!names.insert(m.name).second)
      return bad_param("model", "--model: two models are called '{}'; give one another name: NAME=DIR",
                       m.name);
    out.push_back(std::move(m));
  }
  return out;
}

}  // namespace

core::result<std::uint64_t> bytes_of(const char* option, const std::string& text) {
  std::uint64_t n = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (ec != std::errc{} || shift < 0 || n > (std::uint64_t{1} << 50) >> shift)
    return bad_param(option, "--{} must be bytes, or a number and K, M or G, not '{}'", option, text);
  return n << shift;
}

core::result<actors::service_options> service_options_of(const core::engine_settings& s,
                                                         std::uint32_t queue) {
  auto device = device_of(s.device);
  if (!device) return device.error();
  auto models = models_of(s, *device);
  if (!models) return models.error();
  const auto kv = number_or_auto("kv-tokens", s.kv_tokens);
  if (!kv) return kv.error();
  const auto prefill = number_or_auto("prefill-ms", s.prefill_ms);
  if (!prefill) return prefill.error();
  const auto reserve = bytes_of("reserve-vram", s.reserve_vram);
  if (!reserve) return reserve.error();

  actors::service_options o;
  o.models = std::move(*models);
  o.owner.device = *device;
  o.owner.threads = s.threads ? s.threads : std::max(1u, std::thread::hardware_concurrency());
  o.owner.deterministic = s.deterministic;
  o.owner.kv_tokens = kv->value_or(0);
  o.owner.kv_host_bytes = std::uint64_t{s.kv_host_mb} << 20;
  o.owner.reserve_bytes = *reserve;
  o.owner.max_batch = s.max_batch;
  o.owner.max_seq_len = s.max_seq_len;
  if (*prefill) o.owner.prefill_time = std::chrono::milliseconds(**prefill);
  o.owner.step_time = std::chrono::milliseconds(s.step_ms);
  o.owner.queue = queue;
  o.owner.max_tokens_default = s.max_tokens_default;
  return o;
}

}  // namespace weir::apps
