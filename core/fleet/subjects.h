// subjects.h — the subjects under which the processes of a cell talk. A cell is a fleet that shares one bus.
//
//   weir.1.CELL.o.WORKER.job   gateway -> worker, asked: a job; answered with `taken` or `refused`
//   weir.1.CELL.o.WORKER.ctl   gateway -> worker: cancel, pause, resume, again, adopt, drop, probe
//                              operator -> worker: drain, undrain, probe
//                              both -> worker, asked: permit_wish, model_wish
//                              gateway -> worker, asked: file_wish, score_wish
//   weir.1.CELL.g.GATEWAY.tok  worker -> gateway: tokens and endings
//   weir.1.CELL.g.GATEWAY.ctl  worker -> gateway: gone, found, adopted, listed
//   weir.1.CELL.board.WORKER   worker -> all gateways: what the worker has
//   weir.1.CELL.pulse.GATEWAY  gateway -> all workers: the gateway lives
//   weir.1.CELL.find           gateway -> all workers: find, list
//   weir.1.CELL.hello          any -> all workers: publish your boards now
//
// Thread safety: pure functions.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace weir::core::fleet {

// A cell's name is a word of subjects: 1 to 32 letters, digits, `-` or `_`.
inline bool is_cell_name(std::string_view s) {
  const auto fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !s.empty() && s.size() <= 32 && std::ranges::all_of(s, fine);
}

class subjects {
 public:
  // REQUIRES: is_cell_name(cell).
  explicit subjects(std::string_view cell) : base_(fmt::format("weir.1.{}.", cell)) {}

  std::string jobs_of(std::string_view worker) const { return fmt::format("{}o.{}.job", base_, worker); }
  std::string control_of(std::string_view worker) const { return fmt::format("{}o.{}.ctl", base_, worker); }
  std::string tokens_to(std::string_view gateway) const { return fmt::format("{}g.{}.tok", base_, gateway); }
  std::string answers_to(std::string_view gateway) const { return fmt::format("{}g.{}.ctl", base_, gateway); }
  std::string board_of(std::string_view worker) const { return fmt::format("{}board.{}", base_, worker); }
  std::string pulse_of(std::string_view gateway) const { return fmt::format("{}pulse.{}", base_, gateway); }
  std::string all_boards() const { return base_ + "board.*"; }
  std::string all_pulses() const { return base_ + "pulse.*"; }
  std::string finds() const { return base_ + "find"; }
  std::string hello() const { return base_ + "hello"; }

 private:
  std::string base_;
};

}  // namespace weir::core::fleet
