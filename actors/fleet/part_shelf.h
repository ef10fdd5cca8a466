// part_shelf.h — the parts of jobs that are longer than a message, until all parts of a job are there.
//
// What lies here is bounded: parts that are not completed in time are dropped, and so are the oldest ones
// where there are too many bytes.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/fleet/job_frame.h"

namespace weir::actors::fleet {

class part_shelf {
 public:
  static constexpr std::size_t most_bytes = std::size_t{64} << 20, most_jobs = 1024;
  static constexpr core::duration patience = std::chrono::seconds(5);

  // The joined bytes once the job's last missing part has come.
  std::optional<std::string> add(const core::fleet::job_part& p, core::time_point now);
  void expire(core::time_point now);
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct pile {
    core::job_id id;
    std::uint8_t attempt = 0;
    core::time_point since{};
    std::vector<std::optional<std::string>> parts;
    std::size_t bytes = 0;
  };
  void remove(std::vector<pile>::iterator at);

  std::vector<pile> piles_;  // the oldest first
  std::size_t bytes_ = 0;
};

}  // namespace weir::actors::fleet
