// mailbox_port.h — the way to an engine of an owner of this process, which is the owner's mailbox.
//
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <utility>

#include "actors/messages.h"
#include "actors/model_place.h"
#include "actors/runtime/ref.h"
#include "core/insist.h"

namespace weir::actors {

// Each call returns another number: no two engines of this process have the same id, even once one is gone.
inline engine_id next_engine_id() {
  static std::atomic<std::uint64_t> count{0};
  return static_cast<engine_id>(count.fetch_add(1, std::memory_order_relaxed));
}

class mailbox_port final : public engine_port {
 public:
  mailbox_port(ref<owner_msg> to, engine_id engine) : to_(std::move(to)), engine_(engine) {}

  bool submit(core::job job, job_stream::owner_end end) override {
    return to_.tell(submit_job(std::move(job), std::move(end), engine_)) != sent::full;
  }
  void cancel(const core::job_id& id, core::finish_reason why) override {
    core::insist([&] { to_.tell(cancel_job(id, engine_, why)); });
  }
  void pause(job_stream::owner_end end) override { to_.tell(pause_job(std::move(end), engine_)); }

 private:
  const ref<owner_msg> to_;
  const engine_id engine_;
};

}  // namespace weir::actors
