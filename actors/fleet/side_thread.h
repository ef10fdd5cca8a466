// side_thread.h — the executor of a worker's or a gateway's side: a thread of its own, or a strand of the
// executor of a simulation, so that what is posted runs in order.
//
// Thread safety: any thread but its own.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "actors/job_stream.h"
#include "actors/runtime/exclusive_thread.h"
#include "core/incidents.h"

namespace weir::actors::fleet {

class side_thread {
 public:
  side_thread(const char* name, const std::optional<executor>& simulated,
              std::shared_ptr<core::incidents> seen) {
    if (simulated) {
      ex_ = boost::asio::make_strand(*simulated);
      return;
    }
    exclusive_thread::options own{.name = name};
    own.on_escape = [seen = std::move(seen)](std::exception_ptr what) {
      seen->note("a thread of the fleet", std::move(what));
    };
    thread_ = std::make_shared<exclusive_thread>(std::move(own));
    ex_ = thread_->get_executor();
  }

  const executor& get_executor() const noexcept { return ex_; }
  std::shared_ptr<const void> thread() const noexcept { return thread_; }  // null: it has none

  // Calls `f` there, and returns what it returns. In a simulation everything runs on the caller's thread.
  template <class F>
  auto call(F f) const {
    if (!thread_) return f();
    std::packaged_task<decltype(f())()> task(std::move(f));
    auto over = task.get_future();
    boost::asio::post(ex_, std::move(task));
    return over.get();
  }

 private:
  std::shared_ptr<exclusive_thread> thread_;
  executor ex_;
};

}  // namespace weir::actors::fleet
