// far_port.h — the way to an engine in another process: the mailbox of the gateway's far_owner.
//
// Thread safety: any thread.
#pragma once

#include <boost/asio/post.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "actors/job_finder.h"
#include "actors/job_stream.h"
#include "actors/model_place.h"
#include "actors/runtime/ref.h"
#include "core/insist.h"
#include "core/job.h"

namespace weir::actors::fleet {

// An engine of a worker.
struct far_engine {
  std::string worker, model;
  std::uint64_t engine = 0;  // the worker's number
};

struct far_submit {
  core::job job;
  job_stream::owner_end end;
  far_engine where;
  far_submit(core::job j, job_stream::owner_end e, far_engine w)
      : job(std::move(j)), end(std::move(e)), where(std::move(w)) {}
};
struct far_cancel {
  core::job_id id;
  core::finish_reason why;
  far_cancel(core::job_id i, core::finish_reason w) : id(i), why(w) {}
};
// The job has to pause or go on, as its stream wishes by now.
struct far_pause {
  job_stream::owner_end end;
  explicit far_pause(job_stream::owner_end e) : end(std::move(e)) {}
};

// A job that no shard has is to be looked for.
struct far_find {
  job_search what;
  explicit far_find(job_search s) : what(std::move(s)) {}
};
// The jobs of the cell are asked for.
struct far_ask {
  cell_question what;
  explicit far_ask(cell_question q) : what(std::move(q)) {}
};
// A request waits for a model that no worker has ready.
struct far_wish {
  model_wish what;
  explicit far_wish(model_wish w) : what(std::move(w)) {}
};
// No request is to wait any more.
struct far_end_wishes {
  core::error why;
  explicit far_end_wishes(core::error w) : why(std::move(w)) {}
};
// A job that was found has a stream here: it is to be adopted.
struct far_adopt {
  core::job job;
  job_stream::owner_end end;
  far_engine where;
  std::uint8_t attempt;
  bool may_pause;
  principal for_whom;  // who looked for it
  std::uint64_t began_on = 0;  // job_order::arithmetic of the frame that its worker has
  far_adopt(core::job j, job_stream::owner_end e, far_engine w, std::uint8_t a, bool pausable, principal who)
      : job(std::move(j)),
        end(std::move(e)),
        where(std::move(w)),
        attempt(a),
        may_pause(pausable),
        for_whom(who) {}
};

using far_message =
    std::variant<far_submit, far_cancel, far_pause, far_find, far_ask, far_adopt, far_wish, far_end_wishes>;

// The way to the searches of the gateway's far_owner.
class far_finder final : public job_finder {
 public:
  explicit far_finder(ref<far_message> to) : to_(std::move(to)) {}
  void find(job_search s) override {
    const auto told = to_.tell(far_find(s));
    if (told == sent::ok) return;
    job_search::answer no;
    no.how = job_search::end::refused;
    no.why = core::make_error(core::errc::overloaded, "too many responses are looked for in the fleet now");
    core::insist([&] { boost::asio::post(s.shard, [done = s.done, no] { done(no); }); });
  }
  void ask(cell_question q) override {
    if (to_.tell(far_ask(q)) == sent::ok) return;
    cell_question::answer no;
    no.silent = 1;  // nobody was asked
    core::insist([&] { boost::asio::post(q.ex, [done = q.done, no] { done(no); }); });
  }
  void wish(model_wish w) override {
    const auto done = w.done;
    if (to_.tell(far_wish(std::move(w))) == sent::ok) return;
    core::error no =
        core::make_error(core::errc::overloaded, "the gateway has too much to do to wait for a model");
    no.retry_after_ms = 1000;
    done(std::move(no));
  }
  void end_wishes(core::error why) override {
    core::insist([&] { to_.tell(far_end_wishes(why)); });
  }

 private:
  const ref<far_message> to_;
};

// A job is cancelled and paused by its id: wherever it has moved to.
class far_port final : public engine_port {
 public:
  far_port(ref<far_message> to, far_engine where) : to_(std::move(to)), where_(std::move(where)) {}

  bool submit(core::job job, job_stream::owner_end end) override {
    return to_.tell(far_submit(std::move(job), std::move(end), where_)) == sent::ok;
  }
  void cancel(const core::job_id& id, core::finish_reason why) override {
    core::insist([&] { to_.tell(far_cancel(id, why)); });
  }
  void pause(job_stream::owner_end end) override { to_.tell(far_pause(std::move(end))); }

  const far_engine& where() const noexcept { return where_; }

 private:
  const ref<far_message> to_;
  const far_engine where_;
};

}  // namespace weir::actors::fleet
