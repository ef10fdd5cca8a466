// far_list.h — the questions of a gateway for the jobs of its cell: who was asked, what has been answered,
// and when a question is over.
//
// A round of a question is over when all workers that the gateway knew at its beginning have answered, or
// after its patience. A question that cancels jobs has rounds until all of them have ended.
//
// Who asks the same as another does shares the other's question. What questions may take is bounded: at a
// time and a second, in all and of a key; bytes of answers, which the account of memory counts.
//
// Thread safety: none; the far_owner's executor. Answers are posted.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/fleet/per_second.h"
#include "actors/job_finder.h"
#include "core/clock.h"
#include "core/fleet/list_frame.h"
#include "core/memory/account.h"

namespace weir::actors::fleet {

class far_lists {
 public:
  static constexpr std::size_t most = 256, most_of_a_key = 32;
  static constexpr std::uint64_t most_a_second = 256;
  static constexpr core::duration asked_again_after = std::chrono::milliseconds(100),
                                  patience = std::chrono::milliseconds(400),
                                  until_ended = std::chrono::seconds(5);  // jobs that are cancelled

  // `self`: name of the gateway.
  far_lists(std::shared_ptr<core::memory_account> memory, std::string self)
      : memory_(std::move(memory)), self_(std::move(self)) {}

  enum class begun { asks, joins, crowded };
  // Begins a question to `workers`. asks: they have to be asked (look()). joins: they were. crowded: there
  // are too many; `q` is answered by nobody. `question`: a random number.
  begun begin(const cell_question& q, std::uint64_t question, std::vector<std::string> workers,
              core::time_point now);
  // Takes a part of an answer. False: nobody asked that worker, or there is no room.
  bool take(const core::fleet::listed& part);

  // Answers the questions that are over. Returns those that have to be asked now.
  std::vector<core::fleet::job_question> look(core::time_point now);
  // Answers all with what there is.
  void end_all();
  bool empty() const noexcept { return all_.empty(); }

 private:
  struct name {
    asker who;
    std::optional<core::job_id> id;
    bool cancel = false;
    auto operator<=>(const name&) const = default;
  };
  struct pile {  // of one worker
    std::vector<std::optional<core::fleet::listed>> parts;
    std::size_t missing = 1;  // also before the first part
    bool whole() const noexcept { return missing == 0; }
  };
  struct asked {
    std::uint64_t question = 0;
    core::time_point since{}, round{};   // when it began, and its last round
    std::optional<core::time_point> at;  // when it was asked last
    std::vector<cell_question> askers;
    std::map<std::string, pile> piles;  // by worker
    // What the rounds before said. A worker forgets a job that nobody can resume once the job's gateway has
    // its ending, so that a job of these that is gone has ended.
    std::map<core::job_id, core::fleet::listed_job> before;
    core::memory_hold memory;
  };
  static bool is_answered(const asked& a);
  static bool has_ended(const asked& a);
  static bool is_over(const name& n, const asked& a, core::time_point now);
  cell_question::answer answer_of(const asked& a) const;
  static void begin_round(asked& a, core::time_point now);
  core::fleet::job_question ask(const name& n, asked& a, core::time_point now);
  void answer(const asked& a) const;
  void forget(std::map<name, asked>::iterator at);

  std::map<name, asked> all_;
  std::map<std::optional<std::uint64_t>, std::size_t> of_key_;  // of those that ask; nullopt: an admin
  per_second begun_{most_a_second};
  const std::shared_ptr<core::memory_account> memory_;
  const std::string self_;
};

}  // namespace weir::actors::fleet
