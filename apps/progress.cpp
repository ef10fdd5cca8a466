#include "apps/progress.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "actors/loading_lines.h"

namespace weir::apps {
namespace {

void bar(const std::string& model, std::uint64_t done, std::uint64_t total) {
  constexpr int width = 30;
  const double part = total ? static_cast<double>(done) / static_cast<double>(total) : 1.0;
  const int full = static_cast<int>(part * width);
  std::string line(static_cast<std::size_t>(full), '#');
  line.resize(width, '.');
  std::fprintf(stderr, "\rloading %s [%s] %5.1f %%  %.1f MB%s", model.c_str(), line.c_str(), part * 100,
               static_cast<double>(done) / 1e6, done == total ? "\n" : "");
  std::fflush(stderr);
}

}  // namespace

bool on_terminal() { return isatty(STDERR_FILENO); }

void show_device(const std::string& why_cpu) {
  if (!why_cpu.empty()) std::fprintf(stderr, "weir: device cpu (%s)\n", why_cpu.c_str());
}

actors::load_progress show_load_progress() {
  if (on_terminal()) return bar;
  using clock = std::chrono::steady_clock;
  return [lines = actors::loading_lines(), began = clock::now()](const std::string& model, std::uint64_t done,
                                                                 std::uint64_t total) mutable {
    if (const auto line = lines.next(clock::now() - began, model, done, total)) spdlog::info("{}", *line);
  };
}

void show_memory(const actors::memory_use& m) {
  const auto mb = [](std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  const auto tier =
      m.host_pages ? fmt::format(", {:.1f} MB of host memory for pages", mb(m.host_pages)) : std::string();
  const auto type = m.kv_type.empty() ? std::string() : fmt::format(" ({})", m.kv_type);
  if (m.total == 0)
    return spdlog::info("memory: weights {:.1f} MB, pages {:.1f} MB{}{}", mb(m.weights), mb(m.pages), type,
                        tier);
  spdlog::info(
      "memory: weights {:.1f} MB, pages {:.1f} MB{}, workspaces {:.1f} MB, code and graphs {:.1f} MB; {:.1f} "
      "of {:.1f} MB are free{}",
      mb(m.weights), mb(m.pages), type, mb(m.workspaces), mb(m.runtime), mb(m.free), mb(m.total), tier);
}

}  // namespace weir::apps
