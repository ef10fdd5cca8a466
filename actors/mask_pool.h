// mask_pool.h — threads that make the masks of constraints, so that the owner of a device does not wait for a
// mask that takes long.
//
// A mask in the queue whose job is gone is dropped: nobody else holds it. A mask in progress is finished. The
// threads also destroy the masks of jobs that have ended.
//
// Thread safety: any thread. The destructor finishes the masks in progress and drops the others; nobody waits
// for those any more, because the engines are gone.
#pragma once

#include <concurrentqueue/blockingconcurrentqueue.h>

#include <memory>
#include <thread>
#include <vector>

#include "core/grammar/masks/job_mask.h"

namespace weir::actors {

class mask_pool final : public core::grammar::mask_helpers {
 public:
  // `most`: masks of running jobs that wait at once, at most. REQUIRES: threads > 0.
  mask_pool(unsigned threads, std::size_t most);
  ~mask_pool() override;

  bool post(std::shared_ptr<core::grammar::job_mask> m) noexcept override;
  void discard(std::shared_ptr<core::grammar::job_mask> m) noexcept override;

 private:
  struct task {
    std::shared_ptr<core::grammar::job_mask> mask;  // null: the thread ends
    bool discards = false;                          // the mask is destroyed, else its work is done
  };
  void run();

  moodycamel::BlockingConcurrentQueue<task> work_;
  std::vector<std::jthread> threads_;
};

}  // namespace weir::actors
