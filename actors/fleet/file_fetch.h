// file_fetch.h — the way of one model's text files from workers to a gateway: which piece to ask whom for,
// and whether what comes is what the digest says.
//
// The pieces come one after the other from one worker. Where that worker is wrong (other bytes, a file that
// it does not have, three questions without an answer), the fetch goes on with the next worker of the same
// digest; files that were checked stay. Memory: the files, at most core::fleet::most_file_bytes.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/fleet/sha256.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/fleet/file_frame.h"

namespace weir::actors::fleet {

class file_fetch {
 public:
  // `model`: its name; `digest`: of its list.
  file_fetch(std::string model, const core::fleet::sha256_bytes& digest, core::time_point now)
      : model_(std::move(model)), digest_(digest), began_(now) {}

  const std::string& model() const noexcept { return model_; }
  const core::fleet::sha256_bytes& digest() const noexcept { return digest_; }
  core::time_point began() const noexcept { return began_; }

  struct question {
    std::string worker;
    core::fleet::file_wish what;
  };
  // What to ask now. `workers`: those that have the digest now. nullopt: no worker can be asked.
  std::optional<question> next(const std::vector<std::string>& workers);

  // Takes the answer to the question of next(). `part`: nullopt: no answer came in time, or a frame that is
  // no answer came. Returns true once all files are there.
  bool take(const std::optional<core::fleet::file_part>& part);
  // Nobody listens under the worker's subjects.
  void lose_worker();

  // What was wrong at the worker that was left last; nullopt: none was left yet.
  const std::optional<core::error>& trouble() const noexcept { return trouble_; }
  // REQUIRES: take() was true.
  const core::fleet::file_list& list() const noexcept { return *list_; }
  const std::vector<std::string>& contents() const noexcept { return contents_; }

 private:
  void leave_worker(core::error why);
  bool end_file();
  std::uint64_t size_of_file() const { return list_->files[file_ - 1].size; }

  const std::string model_;
  const core::fleet::sha256_bytes digest_;
  const core::time_point began_;
  std::string worker_;           // that is asked; empty: none
  std::set<std::string> tried_;  // workers that were left
  unsigned in_vain_ = 0;         // questions for this piece without an answer
  std::uint32_t file_ = 0;       // which comes: 0: the list
  std::string coming_;           // what is there of it
  sha256 sum_;                   // of `coming_`
  std::optional<core::fleet::file_list> list_;
  std::vector<std::string> contents_;
  std::optional<core::error> trouble_;
};

}  // namespace weir::actors::fleet
