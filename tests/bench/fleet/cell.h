// cell.h — a cell of a fleet in virtual time: gateways, workers of one device each, and what they tell each
// other.
//
// Real are core::pick(), the landmarks and how they change, the numbers of boards (board_numbers.h), the
// admissions of gateways and workers, and what engine.h names. The bus is a distribution of hops.
//
// Thread safety: one thread.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "actors/fleet/worker_side.h"
#include "core/fleet/fleet_board.h"
#include "tests/bench/fleet/engine.h"
#include "tests/bench/fleet/figures.h"
#include "tests/bench/fleet/landmark_map.h"
#include "tests/bench/fleet/policy.h"
#include "tests/bench/fleet/trace.h"

namespace weir::bench::fleet {

struct cell_settings {
  std::uint32_t devices = 125, gateways = 12;
  engine::settings each;
  std::string policy = "weir";
  double requests_per_s = 0;               // on the mean
  double seconds = 3600, warm_up_s = 600;  // of virtual time; the second is a part of the first
  std::uint64_t seed = 1;
  // worker_options::board_after_job.
  nanos board_after_job = std::chrono::nanoseconds(actors::fleet::worker_options().board_after_job).count();
};

// Requests a second that one device answers while it always has some to begin with, and finds nothing in its
// cache.
double capacity_of(const trace& t, const engine::settings& s);

class cell {
 public:
  // Error: bad_param for a policy that there is not, and for more than most_devices.
  static core::result<figures> live(const trace& t, const cell_settings& s);

 private:
  enum class kind : std::uint8_t {
    offer,
    step,
    first,
    over,
    refused,
    board,
    board_heard,
    landmarks,
    landmarks_heard
  };
  struct event {
    nanos at = 0;
    std::uint64_t order = 0;
    kind what{};
    std::uint32_t which = 0;  // a job or a device
    bool operator>(const event& o) const noexcept { return at != o.at ? at > o.at : order > o.order; }
  };
  struct arrival {
    nanos at = 0;
    std::uint32_t request = 0, copy = 0;
  };
  struct gateway {
    std::deque<actors::admission_control> places;  // by device
    std::vector<std::uint32_t> own;                // jobs, by device
  };
  struct device {
    std::uint64_t name = 0;                 // place_load::name
    std::vector<std::uint32_t> by_gateway;  // jobs that it has
    core::fleet::board_model board;         // that is on its way
    std::vector<std::uint32_t> board_shares;
    core::fleet::landmark_list told;
    core::fleet::landmark_news news;  // that is on its way
    std::uint64_t landmarks_seen = 0;
    nanos told_at = 0;      // when its last board was published
    nanos busy_before = 0;  // the warm-up's end
  };

  cell(const trace& t, const cell_settings& s);
  core::result<void> choose_policy();
  void draw_arrivals();
  figures run();
  void handle(const event& e);

  void arrive(const arrival& a);
  void ask(std::uint32_t job);
  void offer(std::uint32_t job);
  void refused(std::uint32_t job);
  void step(std::uint32_t device);
  void first_token(std::uint32_t job);
  void over(std::uint32_t job);
  void tell_board(std::uint32_t device);
  void hear_board(std::uint32_t device);
  void tell_landmarks(std::uint32_t device);

  std::uint32_t new_job();
  void look(std::uint32_t gateway, const job& j);
  void post(kind what, std::uint32_t which, nanos at) { events_.push({at, ++order_, what, which}); }
  nanos hop();
  bool counts(const job& j) const noexcept { return j.came >= warm_; }

  const trace& trace_;
  const cell_settings settings_;
  const nanos end_, warm_;
  std::mt19937_64 random_;
  std::vector<job> jobs_;
  std::vector<std::uint32_t> free_;
  std::vector<std::unique_ptr<engine>> engines_;
  std::vector<device> devices_;
  std::vector<gateway> gateways_;
  std::vector<std::uint32_t> assigned_;  // jobs, by device, with those on their way
  truth truth_;
  std::vector<std::unique_ptr<policy>> policies_;  // by gateway
  landmark_map landmarks_;
  std::vector<arrival> arrivals_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::vector<core::place_load> loads_;
  std::vector<std::uint64_t> names_;
  std::vector<std::uint32_t> choice_;
  std::array<nanos, 4096> hops_;
  std::uint64_t order_ = 0;
  nanos now_ = 0;
  figures out_;
};

}  // namespace weir::bench::fleet
