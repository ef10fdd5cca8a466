#include "apps/progress.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "actors/loading_lines.h"
#include "apps/log.h"
#include "core/size_text.h"

namespace weir::apps {
namespace {

void bar(const std::string& model, std::uint64_t done, std::uint64_t total) {
  constexpr int width = 30;
  const double part = total ? static_cast<double>(done) / static_cast<double>(total) : 1.0;
  const int full = static_cast<int>(part * width);
  std::string line(static_cast<std::size_t>(full), '#');
  line.resize(width, '.');
  std::fprintf(stderr, "\rloading %s [%s] %3.0f %%  %s   %s", model.c_str(), line.c_str(), part * 100,
               core::size_text(done).c_str(), done == total ? "\n" : "");
  std::fflush(stderr);
}

}  // namespace

bool on_terminal() { return isatty(STDERR_FILENO); }

void show_device(const std::string& why_cpu) {
  if (why_cpu.empty()) return;
  if (current_log_format() == log_format::json) return spdlog::info("device cpu ({})", why_cpu);
  std::fprintf(stderr, "weir: device cpu (%s)\n", why_cpu.c_str());
}

actors::model_progress show_load_progress() {
  if (on_terminal() && current_log_format() == log_format::text) return bar;
  using clock = std::chrono::steady_clock;
  return [lines = actors::loading_lines(), began = clock::now()](const std::string& model, std::uint64_t done,
                                                                 std::uint64_t total) mutable {
    if (const auto line = lines.next(clock::now() - began, model, done, total)) spdlog::info("{}", *line);
  };
}

void show_memory(const actors::memory_use& m) {
  const auto tier = m.host_pages ? fmt::format(", {} of host memory for pages", core::size_text(m.host_pages))
                                 : std::string();
  const auto type = m.kv_type.empty() ? std::string() : fmt::format(" ({})", m.kv_type);
  std::string line = fmt::format("memory: weights {}, pages {}{}", core::size_text(m.weights),
                                 core::size_text(m.pages), type);
  if (m.total != 0)
    line +=
        fmt::format(", workspaces {}, code and graphs {}; {} of {} are free", core::size_text(m.workspaces),
                    core::size_text(m.runtime), core::size_text(m.free), core::size_text(m.total));
  spdlog::info("{}{}", line, tier);
}

}  // namespace weir::apps
