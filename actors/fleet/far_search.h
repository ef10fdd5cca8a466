// far_search.h — the searches of a gateway for jobs that other gateways had: what is asked, what has been
// answered, and when a search is over.
//
// All workers are asked, and the worker that has the job answers. Two workers may have the job, where one of
// them has not heard yet that the job has moved. So a search waits a moment after the first whole answer, and
// takes the newest attempt.
//
// What a search may take is bounded: searches at a time and a second, in all and of a key; bytes of parts,
// which the account of memory counts.
//
// Thread safety: none; the far_owner's executor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/fleet/per_second.h"
#include "actors/job_finder.h"
#include "core/clock.h"
#include "core/fleet/control_frame.h"
#include "core/memory/account.h"

namespace weir::actors::fleet {

class far_searches {
 public:
  static constexpr std::size_t most = 2048, most_of_a_key = 1024;
  static constexpr std::uint64_t most_a_second = 4096;
  static constexpr core::duration asked_again_after = std::chrono::milliseconds(100),
                                  patience = std::chrono::milliseconds(400),
                                  patience_with_parts = std::chrono::seconds(3),
                                  settles_after = std::chrono::milliseconds(20);

  // The job and the client of a search. All who ask for the same job as the same client share one search.
  struct name {
    core::job_id id;
    principal who;
    auto operator<=>(const name&) const = default;
  };
  struct whole {
    core::fleet::found head;
    std::string job;  // body of its frame
  };

  explicit far_searches(std::shared_ptr<core::memory_account> memory) : memory_(std::move(memory)) {}

  // Begins a search. True: a search for the same job and client is under way, which answers this asker, too;
  // no worker has to be asked. Error: overloaded. `question`: a random number.
  core::result<bool> begin(job_search s, std::uint64_t question, core::time_point now);
  // Takes a part of an answer. False: nobody asked, or there is no room.
  bool take(core::fleet::found f, core::time_point now);

  struct due {
    std::vector<core::fleet::find> again;       // questions to be asked once more, without `gateway`
    std::vector<std::pair<name, whole>> found;  // their searches go on until end()
    std::vector<core::fleet::found> older;      // attempts that a found job has left behind
    std::vector<name> over;                     // nobody has answered
  };
  due look(core::time_point now);
  // The first who asked, whose shard gets the job. REQUIRES: the search has not ended.
  const job_search& first(const name& n) const { return all_.at(n).askers.front(); }
  // Ends a search: the askers that nobody has answered.
  std::vector<job_search> end(const name& n);
  bool empty() const noexcept { return all_.empty(); }
  std::vector<name> names() const;

 private:
  struct pile {  // of one worker's answer
    core::fleet::found head;
    std::vector<std::optional<std::string>> parts;
    std::size_t missing = 0;
    core::time_point came{};  // its first part
  };
  struct search {
    std::uint64_t question = 0;
    core::time_point since{}, asked{};
    std::vector<job_search> askers;
    std::vector<pile> piles;
    std::optional<core::time_point> settles;  // the first whole answer has come
    bool found = false;                       // it was given out
    core::memory_hold memory;
  };
  static whole join(pile& p, core::time_point now);
  std::size_t searches_of(std::uint64_t key) const;

  std::map<name, search> all_;
  std::map<std::uint64_t, std::size_t> of_key_;  // of keys that have a search
  per_second begun_{most_a_second};
  const std::shared_ptr<core::memory_account> memory_;
};

}  // namespace weir::actors::fleet
