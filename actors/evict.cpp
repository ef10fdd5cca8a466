#include "actors/evict.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace weir::actors {
namespace {

constexpr auto most = std::numeric_limits<std::uint64_t>::max();

std::uint64_t sum_of_two(std::uint64_t a, std::uint64_t b) { return a > most - b ? most : a + b; }

struct choice {
  std::uint64_t cost = 0, bytes = 0;
  std::int64_t latest = std::numeric_limits<std::int64_t>::min();
  std::vector<std::size_t> of;

  bool better_than(const choice& o) const {
    if (cost != o.cost) return cost < o.cost;
    if (latest != o.latest) return latest < o.latest;
    if (of.size() != o.of.size()) return of.size() < o.of.size();
    return of < o.of;
  }
};

// Tries each model of `order` in turn, with it and without it. A branch that costs more than the best set so
// far, or that cannot be enough any more, is left.
class search {
 public:
  search(std::span<const leaver> all, std::vector<std::size_t> order, std::uint64_t bytes, std::size_t count)
      : all_(all), order_(std::move(order)), bytes_(bytes), count_(count), rest_(order_.size() + 1, 0) {
    for (std::size_t i = order_.size(); i > 0; --i)
      rest_[i - 1] = sum_of_two(rest_[i], all_[order_[i - 1]].bytes);
  }

  std::optional<std::vector<std::size_t>> run() {
    go(0);
    if (!best_) return std::nullopt;
    return std::move(best_->of);
  }

 private:
  void go(std::size_t at) {
    if (now_.bytes >= bytes_ && now_.of.size() >= count_) {  // a larger set is no better
      choice done = now_;
      std::ranges::sort(done.of);
      if (!best_ || done.better_than(*best_)) best_ = std::move(done);
      return;
    }
    if (sum_of_two(now_.bytes, rest_[at]) < bytes_) return;
    if (now_.of.size() + (order_.size() - at) < count_) return;
    if (at == order_.size() || (best_ && now_.cost > best_->cost)) return;
    if (best_ && now_.cost == best_->cost && now_.latest > best_->latest) return;
    const leaver& one = all_[order_[at]];
    const choice before = now_;
    now_.cost = sum_of_two(now_.cost, one.cost());
    now_.bytes = sum_of_two(now_.bytes, one.bytes);
    now_.latest = std::max(now_.latest, one.last_use);
    now_.of.push_back(order_[at]);
    go(at + 1);
    now_ = before;
    go(at + 1);
  }

  const std::span<const leaver> all_;
  const std::vector<std::size_t> order_;
  const std::uint64_t bytes_;
  const std::size_t count_;
  std::vector<std::uint64_t> rest_;  // bytes of all models from here on
  choice now_;
  std::optional<choice> best_;
};

}  // namespace

std::uint64_t leaver::cost() const noexcept {
  if (ms_to_return == 0 || jobs_lately == 0) return 0;
  return jobs_lately > most / ms_to_return ? most : jobs_lately * ms_to_return;
}

std::optional<std::vector<std::size_t>> leave_for(std::span<const leaver> all, std::uint64_t bytes,
                                                  std::size_t count) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return all[i].last_use; });
  if (order.size() > most_leavers) order.resize(most_leavers);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return all[i].cost(); });  // good sets first
  return search(all, std::move(order), bytes, count).run();
}

}  // namespace weir::actors
