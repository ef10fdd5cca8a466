#include "tests/bench/fleet/policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "tests/bench/fleet/landmark_map.h"

namespace weir::bench::fleet {

namespace {

using random_bits = std::minstd_rand;

// The first few of the devices in the order of `less`.
template <class F>
void order_by(std::size_t devices, std::vector<std::uint32_t>& out, F key) {
  constexpr std::size_t few = 4;
  out.resize(devices);
  std::iota(out.begin(), out.end(), 0u);
  std::ranges::partial_sort(out, out.begin() + static_cast<std::ptrdiff_t>(std::min(few, devices)), {}, key);
}

class by_pick final : public policy {
 public:
  bool asks_landmarks() const noexcept override { return true; }
  void choose(const question& q, std::vector<std::uint32_t>& out) override {
    out = core::pick(q.seen, 1, q.asked.input, q.beginning);
  }
};

class by_chance final : public policy {
 public:
  explicit by_chance(std::uint64_t seed) : random_(static_cast<std::uint32_t>(seed)) {}
  void choose(const question& q, std::vector<std::uint32_t>& out) override {
    out.clear();
    for (int i = 0; i < 4; ++i) out.push_back(static_cast<std::uint32_t>(random_() % q.seen.size()));
  }

 private:
  random_bits random_;
};

class by_turn final : public policy {
 public:
  explicit by_turn(std::uint64_t seed) : next_(static_cast<std::uint32_t>(seed)) {}
  void choose(const question& q, std::vector<std::uint32_t>& out) override {
    out.clear();
    for (std::uint32_t i = 0; i < 4; ++i)
      out.push_back((next_ + i) % static_cast<std::uint32_t>(q.seen.size()));
    ++next_;
  }

 private:
  std::uint32_t next_;
};

class by_load final : public policy {
 public:
  explicit by_load(std::uint64_t seed) : random_(static_cast<std::uint32_t>(seed)) {}
  void choose(const question& q, std::vector<std::uint32_t>& out) override {
    lots_.resize(q.seen.size());
    for (auto& lot : lots_) lot = static_cast<std::uint32_t>(random_());
    order_by(q.seen.size(), out, [&](std::uint32_t i) { return std::pair(q.seen[i].jobs, lots_[i]); });
  }

 private:
  random_bits random_;
  std::vector<std::uint32_t> lots_;
};

// Its tree's eviction is left out: it begins at 2^24 characters a worker, some four million tokens, which a
// gateway does not send to one of 125 devices within hours.
class by_guess final : public policy {
 public:
  by_guess(const trace& t, std::uint32_t devices, std::uint64_t seed)
      : trace_(t), random_(static_cast<std::uint32_t>(seed)), tokens_(devices, 0) {}

  void choose(const question& q, std::vector<std::uint32_t>& out) override {
    const auto& j = q.asked;
    const auto [least, most] = std::ranges::minmax(q.own);
    std::uint32_t matched = 0;
    device_set holders;
    if (trace_.has_prefixes()) matched = match(j, holders);
    if (most - least > 64 && most > 1.5 * least) {
      order_by(q.seen.size(), out, [&](std::uint32_t i) { return q.own[i]; });
    } else if (matched > 0.3 * j.input) {
      const auto skip = random_() % holders.count();
      auto d = holders._Find_first();
      for (std::size_t i = 0; i < skip; ++i) d = holders._Find_next(d);
      order_by(q.seen.size(), out, [&](std::uint32_t i) { return std::pair(i != d, tokens_[i]); });
    } else {
      order_by(q.seen.size(), out, [&](std::uint32_t i) { return tokens_[i]; });
    }
    learn(j, out.front());
  }

 private:
  static constexpr std::uint32_t pages_a_block = trace::pages_a_block;
  std::uint64_t key_of_block(const job& j, std::uint32_t block) const {
    return trace_.name_of(j.request, j.key, (block + 1) * pages_a_block - 1).hi;
  }
  std::uint32_t match(const job& j, device_set& holders) const {
    std::uint32_t block = 0;
    for (; block < j.input / trace::block_tokens; ++block) {
      const auto at = tree_.find(key_of_block(j, block));
      if (at == tree_.end()) break;
      holders = at->second;
    }
    return block * trace::block_tokens;
  }
  void learn(const job& j, std::uint32_t device) {
    if (!trace_.has_prefixes()) {
      tokens_[device] += j.input;
      return;
    }
    for (std::uint32_t block = 0; block < j.input / trace::block_tokens; ++block) {
      auto& at = tree_[key_of_block(j, block)];
      if (!at.test(device)) tokens_[device] += trace::block_tokens;
      at.set(device);
    }
  }

  const trace& trace_;
  random_bits random_;
  std::vector<std::uint64_t> tokens_;  // of its tree, by device
  std::unordered_map<std::uint64_t, device_set> tree_;
};

class by_pick_now final : public policy {
 public:
  explicit by_pick_now(const truth& t) : truth_(t) {}
  void choose(const question& q, std::vector<std::uint32_t>& out) override {
    now_.assign(q.seen.begin(), q.seen.end());
    for (std::uint32_t d = 0; d < now_.size(); ++d) {
      now_[d] = truth_.engines[d]->admission.load(q.seen[d].name, truth_.found(q.asked, d));
      now_[d].jobs = truth_.jobs[d];
    }
    out = core::pick(now_, 1, q.asked.input, q.beginning);
  }

 private:
  const truth& truth_;
  std::vector<core::place_load> now_;
};

class by_oracle final : public policy {
 public:
  by_oracle(const truth& t, std::uint64_t seed) : truth_(t), random_(static_cast<std::uint32_t>(seed)) {}
  void choose(const question& q, std::vector<std::uint32_t>& out) override {
    const auto devices = static_cast<std::uint32_t>(q.seen.size());
    double jobs = 1;
    for (std::uint32_t d = 0; d < devices; ++d) jobs += truth_.jobs[d];
    const auto most = std::ceil(1.25 * jobs / devices);
    keys_.resize(devices);
    for (std::uint32_t d = 0; d < devices; ++d)
      keys_[d] = {truth_.jobs[d] + 1 > most, -static_cast<std::int64_t>(truth_.found(q.asked, d)),
                  truth_.jobs[d], static_cast<std::uint32_t>(random_())};
    order_by(devices, out, [&](std::uint32_t i) { return keys_[i]; });
  }

 private:
  const truth& truth_;
  random_bits random_;
  std::vector<std::tuple<bool, std::int64_t, std::uint32_t, std::uint32_t>> keys_;
};

std::unique_ptr<policy> make_policy(std::string_view name, std::uint32_t devices, const truth& t,
                                    std::uint64_t seed) {
  if (name == "weir") return std::make_unique<by_pick>();
  if (name == "random") return std::make_unique<by_chance>(seed);
  if (name == "round-robin") return std::make_unique<by_turn>(seed);
  if (name == "least-loaded") return std::make_unique<by_load>(seed);
  if (name == "sglang") return std::make_unique<by_guess>(t.all, devices, seed);
  if (name == "weir-now") return std::make_unique<by_pick_now>(t);
  if (name == "oracle") return std::make_unique<by_oracle>(t, seed);
  return nullptr;
}

}  // namespace

// A page that is a node has all pages before it as nodes, too.
std::uint32_t truth::found(const job& j, std::uint32_t device) const {
  const auto& names = engines[device]->pool().names();
  std::array<core::token_id, core::page_tokens> ids;
  const auto has = [&](std::uint32_t page) {
    if (!all.repeats(j.request, page)) return false;
    all.read_ids(j.request, j.key, page, ids.data());
    return names.find(all.name_of(j.request, j.key, page), ids) != core::no_page;
  };
  std::uint32_t high = (j.input - 1) / core::page_tokens;
  if (!all.has_prefixes() || high == 0 || !has(0)) return 0;
  std::uint32_t low = 1;
  while (low < high) {
    const auto middle = (low + high + 1) / 2;
    if (has(middle - 1)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low * core::page_tokens;
}

core::result<std::vector<std::unique_ptr<policy>>> make_policies(std::string_view name,
                                                                 std::uint32_t gateways,
                                                                 std::uint32_t devices, const truth& t,
                                                                 std::uint64_t seed) {
  std::vector<std::unique_ptr<policy>> out;
  for (std::uint32_t g = 0; g < gateways; ++g) {
    out.push_back(make_policy(name, devices, t, seed * 1000 + g * 7 + 1));
    if (!out.back()) return core::bad_param("policy", "policy: there is no {}, but {}", name, policy_names);
  }
  return out;
}

}  // namespace weir::bench::fleet
