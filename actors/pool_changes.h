// pool_changes.h — engines of a host whose pools of pages are changing their size.
//
// A pool that shrinks: the engine lets go of its upper pages between two steps, and then the loader's thread
// gives their memory back beside its steps. A pool that grows: the loader's thread takes the memory, and then
// the engine uses it. The engine stays with its owner and works all the while.
//
// Thread safety: the owner's thread only, but for pool_change.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "actors/messages.h"

namespace weir::actors {

// How long an engine may take to let go of pages: for pages of jobs that are paused, it can be forever.
inline constexpr core::duration let_go_within = std::chrono::seconds(2);

class pool_changes {
 public:
  using finder = std::function<core::engine*(engine_id)>;  // null: there is no such engine that works

  // Takes in a change. REQUIRES: the engine has no other
  void add(resize_engine m, std::uint32_t before, core::time_point now);
  bool has(engine_id id) const noexcept;
  bool empty() const noexcept { return all_.empty(); }

  // Asks the engines that have not let go of their pages yet. The changes of engines that have are given to
  // `by`, which tells `to`. Where an engine cannot let go, or its time is over, the engine uses its pages
  // again, and the change is answered with the error. Returns the time of the next call, or the end of time
  // where no change waits. REQUIRES: also called after each step of an engine
  core::time_point advance(core::time_point now, const finder& find, loader& by, const ref<owner_msg>& to);
  // Ends the change that the loader's thread has made. Returns the error where the device has failed.
  std::optional<core::error> end(pages_set& m, const finder& find);

  // The engine is about to go: from here on the loader's thread does not use it. Waits for a call of
  // set_pages() that is under way.
  void lose(engine_id id);
  void lose_all();

 private:
  struct waiting {
    resize_engine what;
    std::uint32_t before = 0;
    core::time_point until{};
    std::shared_ptr<pool_change_word> word;  // null: the loader does not have it yet
  };
  static bool let_go(waiting& w, core::engine& e, core::time_point now, std::optional<core::error>& wrong);
  static void lose(waiting& w);

  std::vector<waiting> all_;
};

}  // namespace weir::actors
