// inspector.h — whether the server is whole: it answers, an honest job gets its tokens, and nothing is left
// of the round before.
//
// Thread safety: one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/stranger/server.h"

namespace weir::stranger {

class inspector {
 public:
  inspector(server& s, const options& o) : server_(s), options_(o) {}

  // Before the first round: fills the cache of prefixes where that takes seconds (sim), so that all rounds
  // meet a server with a history; then sees what an honest job gets, and how many descriptors are open.
  // Empty, or what is wrong.
  std::string see_baseline();

  void begin_round();
  // Waits, for the time that the options give, until everything is as before. Returns what is not, or empty.
  std::string after_round(std::size_t surge);
  // Returns how much more memory the server has than after its first rounds; empty: not too much.
  std::string after_all() const;

 private:
  std::string not_yet();  // what is not as before, but may be soon
  std::string memory(std::size_t surge);
  std::string fill_cache();
  std::string stats_at_rest();
  std::string honest_tokens();
  std::string own_model_awake(const std::string& all);  // of all models: wakes the server's own if it sleeps
  std::string guests_gone();  // forgets the models that strangers have loaded
  std::string descriptors_closed();
  std::string threads_at_rest();

  server& server_;
  const options& options_;
  std::string tokens_;  // of the honest job, the first time
  std::size_t descriptors_ = 0;
  std::string busy_;                   // a thread that worked when it was looked at last; empty: none did
  std::size_t before_ = 0;             // resident bytes at the beginning of this round
  std::vector<std::size_t> resident_;  // after each round
  std::size_t asked_ = 0;
};

}  // namespace weir::stranger
