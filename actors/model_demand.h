// model_demand.h — models on demand: what the model registry does for requests that wait (load_line.h), and
// for models that rest.
//
// After each order and each message the registry looks at the line. The model of the oldest request is loaded
// where it fits, or woken where it sleeps; else models that rest leave for it, those whose absence costs the
// least (actors/evict.h), and come back where that fails. Those that leave sleep on the host where --sleep-mb
// has room for them, and are unloaded elsewhere; those that sleep on the host leave for the disk. A model
// rests while it has no job and none on its way, and `stay` has passed since its last one; pinned models
// never leave. Where only busy models are in the way, and the request has waited for `swap_wait`, the way to
// the one of them that was let in the longest ago is closed: what it has runs to its end, and later requests
// for it wait in the line. So A B A A becomes A A A B.
//
// Nothing is decided by an event of its own: while requests wait, the registry looks around every 100 ms.
//
// Thread safety: the registry's thread only.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/model_naps.h"

namespace weir::actors {

class model_demand : public model_naps {
 public:
  using model_naps::model_naps;

 protected:
  void begin_demand(const self_type& self);
  bool heard(registry_messages::order& o) override;
  // Does for requests and resting models what can be done now. REQUIRES: no order is under way
  boost::asio::awaitable<void> serve(self_type& self);

 private:
  // Hosts on which a model may be loaded, or those on which it sleeps, and what they lack.
  struct option {
    std::vector<std::size_t> on;
    std::string device;       // that lacks memory; else the first one's
    std::uint64_t lacks = 0;  // bytes
    bool crowded = false;     // a host has as many models as it may have
    std::string why;          // the shortage, for people; empty: it fits
  };
  using options = std::vector<option>;
  struct looked_up {
    std::uint64_t version = 0;  // of the list
    core::time_point at{};
    core::result<options> found = options();
  };
  using entries = std::vector<entry*>;

  void tidy();
  void let_in();
  void set_clock();

  // Loads a model that requests wait for, if it fits now.
  boost::asio::awaitable<void> try_load(self_type& self, entry& e);
  boost::asio::awaitable<core::result<options>> options_for(self_type& self, entry& e);
  std::vector<std::vector<std::size_t>> placements(const entry& e) const;
  boost::asio::awaitable<core::result<option>> look_at(self_type& self, entry& e,
                                                       std::vector<std::size_t> on);
  // The same for the wake of a model that sleeps on the host.
  option look_at_wake(const entry& e) const;
  void note_crowd(option& o) const;
  // The models that leave for `o`, and what that costs; nullopt: those that rest are not enough.
  struct exit_set {
    std::vector<leaving> out;
    std::uint64_t cost = 0;
  };
  std::optional<exit_set> leave_for(const option& o, const entries& may) const;
  // The same where each of them sleeps that can (`naps`), or is unloaded.
  std::optional<exit_set> cheapest(const option& o, const entries& may, bool naps) const;
  exit exit_of(const entry& e, bool naps) const;
  // How much longer requests for a model wait once it has left.
  core::duration return_of(const entry& e, exit how) const;
  std::uint64_t freed_by(const leaving& l, const std::string& device) const;
  // Whether the models of `out` are enough by the plan; where they are not, the option lacks more.
  boost::asio::awaitable<bool> confirmed(self_type& self, entry& e, option& o,
                                         const std::vector<leaving>& out);
  boost::asio::awaitable<void> load_wanted(self_type& self, entry& e, std::vector<std::size_t> on,
                                           const std::vector<leaving>& out);
  // Closes the way to a busy model, where a request for `e` has waited long enough.
  void make_way(const entry& e, const option& o);
  void reopen();
  // Unloads models that had no job for as long as --idle-unload says, or lets them sleep.
  boost::asio::awaitable<void> settle_idle(self_type& self);
  boost::asio::awaitable<void> settle_one(self_type& self, entry& e, bool unload);
  // When an idle model is due to be unloaded or to sleep; nullopt: never.
  std::optional<core::time_point> idle_until(const entry& e) const;

  bool is_on(const entry& e, const option& o) const;
  // No job runs or waits there, and none is on its way.
  static bool is_empty(entry& e) { return e.use->coming() == 0 && unfinished({&e}) == 0; }
  core::time_point last_use(const entry& e) const;
  core::duration stay_of(const entry& e) const;
  bool rests(entry& e) const;
  entries on_the_way(const entry& e, const option& o, bool resting);

  load_line line_;
  std::unique_ptr<timekeeper::timer> clock_;
  std::map<std::string, looked_up> looked_up_;     // by the name of a model that requests wait for
  std::map<std::string, std::string> closed_for_;  // the way to [this model] is closed for that one
  std::string loads_for_;                          // requests for this model, under way; empty: no load is
};

}  // namespace weir::actors
