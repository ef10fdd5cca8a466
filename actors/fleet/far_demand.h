// far_demand.h — models on demand at a gateway: requests wait in a line until a worker has their model ready,
// and one worker is asked to load it.
//
// A request waits here as it does on one server (load_line.h), and becomes a job once the model is ready. A
// job that has lost its worker waits in the gateway's far_owner. For each model that either waits for, one
// worker holds a wish in its own line, and has the last word on what has to leave for it. The gateway repeats
// the wish while somebody waits; a worker that does not hear it any more drops it, and undoes a load that
// nobody waits for. A worker that refuses is not asked again in the same wait: the next one is, and after the
// last one those that wait hear its reason. A worker that dies or drains is left for another one.
//
// Two gateways that ask at once choose the same worker (core/fleet/choose_loader.h), or the one that loads
// already. Where they did not, they meet at one as soon as boards say so, and the other load is undone.
//
// Thread safety: the far_owner's executor.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/bus.h"
#include "actors/fleet/fleet_view.h"
#include "actors/load_line.h"
#include "actors/timekeeper.h"
#include "core/fleet/control_frame.h"
#include "core/fleet/subjects.h"

namespace weir::actors::fleet {

class far_demand : public std::enable_shared_from_this<far_demand> {
 public:
  // All parts but `ex` live until stop() has returned, or outlive the far_demand.
  struct parts {
    bus& to;
    const timekeeper& time;
    model_list& list;
    const fleet_view& view;
    const core::fleet::subjects& subjects;
    const gateway_options& options;
    gateway_counts& counts;
    std::string gateway;
    executor ex;
  };
  explicit far_demand(parts p) : p_(std::move(p)) {}

  void take(model_wish w) { line_.take(std::move(w)); }
  void refuse_all(const core::error& why) { line_.refuse_all(why); }
  std::size_t waiting() const noexcept { return line_.size(); }
  bool idle() const noexcept { return line_.empty() && loads_.empty(); }

  // What is to be done now. `for_jobs`: models that jobs without a place wait for. The result: those that
  // every worker has refused to load since somebody waits, with the last reason.
  std::map<std::string, core::error> look_after(const std::set<std::string>& for_jobs);
  // Refuses all, and asks nobody any more.
  void stop();

 private:
  // The load of a model, for as long as somebody waits for it.
  struct load {
    std::string worker;                   // that is asked; empty: none is
    std::optional<std::uint64_t> number;  // of the wish there; nullopt: it has no permit yet
    std::uint64_t asked = 0;         // counts the workers that were asked: answers of older ones are void
    bool asking = false;             // a question is on its way
    core::time_point ask_at{};       // when to ask again
    std::vector<std::string> tried;  // that have refused, or were not there
    std::optional<core::error> why;  // the last refusal
    std::optional<core::time_point> alone;  // since then there has been nobody to ask
  };

  // nullopt: it goes on. Else nobody loads the model.
  std::optional<core::error> look_at(const std::string& model, bool for_jobs);
  void let_in(const std::string& model);
  std::optional<core::error> choose(const std::string& model, load& l);
  void leave(const std::string& model, load& l);
  void ask(const std::string& model, load& l);
  void on_answer(const std::string& model, std::uint64_t asked, const bus::answer& a);
  void on_news(load& l, const core::fleet::load_news& n);

  const parts p_;
  load_line line_;
  std::map<std::string, load> loads_;
  std::map<std::string, core::time_point> rests_;  // until then jobs alone have a model not asked for again
};

}  // namespace weir::actors::fleet
