#include "net/bus/fleet_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "core/fleet/arithmetic_class.h"
#include "core/visible.h"

namespace weir::net {
namespace {

using core::fleet::board_model;
using core::fleet::fleet_board;

constexpr std::size_t columns = 9;
using row = std::array<std::string, columns>;

std::string state_of(const fleet_board& b, const board_model& m) {
  return m.closed.empty() ? core::fleet::name(b.state) : core::one_line(m.closed);
}

row row_of(const fleet_board& b, const board_model& m) {
  return {core::one_line(b.worker),
          core::one_line(m.name),
          core::one_line(m.device),
          m.arithmetic == 0 ? "-" : core::fleet::class_text(m.arithmetic),
          fmt::format("{}", m.context),
          fmt::format("{}/{}", m.jobs, m.batch),
          fmt::format("{}", m.prompt_tokens),
          m.rate > 0 ? fmt::format("{:.0f}", m.rate) : "-",
          state_of(b, m)};
}

// A line for each model whose workers have different files.
std::string notes_on_files(const seen_boards& boards) {
  constexpr std::size_t shown = 12;                               // digits of a digest
  std::map<std::string, std::map<std::string, std::string>> all;  // model, digest: workers
  for (const auto& [name, b] : boards)
    for (const auto& m : b.models)
      if (!m.files.empty()) {
        auto& workers = all[m.name][m.files.substr(0, shown)];
        workers += (workers.empty() ? "" : ", ") + core::one_line(b.worker);
      }
  std::string out;
  for (const auto& [model, digests] : all) {
    if (digests.size() == 1) continue;
    out += fmt::format("{}: its workers have different files, and a gateway uses those of one digest:",
                       core::one_line(model));
    for (const auto& [digest, workers] : digests) out += fmt::format(" {} ({})", digest, workers);
    out += '\n';
  }
  return out;
}

}  // namespace

std::string fleet_table(const seen_boards& boards) {
  if (boards.empty()) return "no worker has said anything\n";
  std::vector<row> rows{
      {"worker", "model", "device", "class", "context", "jobs", "prompts", "tok/s", "state"}};
  for (const auto& [name, b] : boards) {
    for (const auto& m : b.models) rows.push_back(row_of(b, m));
    if (b.models.empty())
      rows.push_back({core::one_line(name), "-", "-", "-", "-", "-", "-", "-", core::fleet::name(b.state)});
  }
  std::array<std::size_t, columns> widths{};
  for (const auto& r : rows)
    for (std::size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], r[i].size());
  std::string out;
  for (const auto& r : rows) {
    for (std::size_t i = 0; i + 1 < columns; ++i) out += fmt::format("{:<{}}  ", r[i], widths[i]);
    out += r.back() + '\n';
  }
  return out + notes_on_files(boards);
}

std::string fleet_json(const seen_boards& boards) {
  std::string out = "{\"workers\":[";
  bool first = true;
  for (const auto& [name, b] : boards) {
    if (!std::exchange(first, false)) out += ',';
    out += core::fleet::json_of(b);
  }
  return out + "]}\n";
}

}  // namespace weir::net
