#include "core/fleet/pick.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <tuple>

namespace weir::core {
namespace {

constexpr double crowded_above = 1.25;  // times the mean of jobs
// A place is near the best if its cost is at most near_share times the best cost, or at most near_s seconds
// above it. A place is far if its cost is above far_share times the best and more than far_s seconds above
// it.
constexpr double near_share = 1.2, near_s = 0.02;
constexpr double far_share = 2, far_s = 0.05;
constexpr double weight_of_computing = 2;  // its own time, and the wait of others

// Tokens that a prompt with `left` tokens to compute waits for, of other prompts.
std::uint64_t in_front(const place_load& p, std::uint32_t left) {
  return p.prompts == 0 ? p.prompt_tokens : std::min(p.prompt_tokens, std::uint64_t{p.prompts} * left);
}

// What the job costs at a place, in seconds: its first token's time, and what others wait for its prompt.
// `rate`: prompt tokens a second of a place that is not known yet.
double cost_s(const place_load& p, std::uint32_t prompt_tokens, double rate) {
  if (p.prompt_tokens_per_s > 0) rate = p.prompt_tokens_per_s;
  const auto left = prompt_tokens - std::min(prompt_tokens, p.known);
  const double seat = std::chrono::duration<double>(p.wait).count();
  if (rate <= 0) return seat;
  return std::max(seat, static_cast<double>(in_front(p, left)) / rate) + weight_of_computing * left / rate;
}

// The finaliser of MurmurHash3 (A. Appleby), over a sum of both.
std::uint64_t mixed(std::uint64_t place, std::uint64_t beginning) {
  auto h = place * 0x9E37'79B9'7F4A'7C15 + beginning;
  h = (h ^ h >> 33) * 0xFF51'AFD7'ED55'8CCD;
  h = (h ^ h >> 33) * 0xC4CE'B9FE'1A85'EC53;
  return h ^ h >> 33;
}

// Most jobs of a place that is not crowded. The emptiest place never is.
double most_jobs(std::span<const place_load> places, std::uint32_t jobs) {
  double all = jobs, least = std::numeric_limits<double>::infinity();
  for (const auto& p : places) all += p.jobs, least = std::min<double>(least, p.jobs);
  return std::max(std::ceil(crowded_above * all / static_cast<double>(places.size())), least + jobs);
}

}  // namespace

std::vector<std::uint32_t> pick(std::span<const place_load> places, std::uint32_t jobs,
                                std::uint32_t prompt_tokens, std::uint64_t beginning) {
  constexpr double none = std::numeric_limits<double>::infinity();
  struct choice {
    bool far, no_seat;
    double cost;  // 0: near the best
    bool crowded;
    std::uint32_t jobs;   // 0: there is a seat, and no crowd
    std::uint32_t known;  // place_load::known
    std::uint64_t turn;
    std::uint32_t index;
  };
  std::vector<choice> order;
  const double most = most_jobs(places, jobs);
  double best = none, best_seat = none, rate = 0;
  for (const auto& p : places) rate = std::max(rate, p.prompt_tokens_per_s);
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    const auto& p = places[i];
    const bool no_seat = p.jobs + jobs > std::max(p.seats, jobs), crowded = p.jobs + jobs > most;
    order.push_back({false, no_seat, cost_s(p, prompt_tokens, rate), crowded, no_seat || crowded ? p.jobs : 0,
                     p.known, mixed(p.name, beginning), i});
    best = std::min(best, order.back().cost);
  }
  for (auto& c : order) {
    c.far = c.cost > std::max(far_share * best, best + far_s);
    if (!c.far && !c.no_seat) best_seat = std::min(best_seat, c.cost);
  }
  for (auto& c : order)
    if (!c.far && !c.no_seat && c.cost <= std::max(near_share * best_seat, best_seat + near_s)) c.cost = 0;
  std::ranges::sort(order, [](const choice& a, const choice& b) {
    return std::tie(a.far, a.no_seat, a.cost, a.crowded, a.jobs, b.known, b.turn, a.index) <
           std::tie(b.far, b.no_seat, b.cost, b.crowded, b.jobs, a.known, a.turn, b.index);
  });
  std::vector<std::uint32_t> out;
  for (const auto& c : order) out.push_back(c.index);
  return out;
}

}  // namespace weir::core
