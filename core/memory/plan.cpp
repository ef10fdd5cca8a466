#include "core/memory/plan.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "core/cache/page.h"

namespace weir::core {
namespace {

using u64 = std::uint64_t;

constexpr u64 most_pages = 1u << 30;  // the number of a page has 31 bits
constexpr u64 unmapped_pages = 1u << 24;
constexpr std::uint32_t usual_length = 16'384;
constexpr std::uint32_t longest_unasked = 262'144;  // tokens of a sequence that a model's file alone gets
constexpr std::uint32_t least_tokens = 8192;        // of an auto pool beside others

// a * b, or the most that 64 bits can count.
u64 product_of(u64 a, u64 b) {
  u64 out = 0;
  return __builtin_mul_overflow(a, b, &out) ? ~0ull : out;
}

u64 pages_of_usual_length(const pool_needs& p) {
  return u64{pages_for(std::min(p.context, usual_length))} * p.max_batch;
}

// Pages beyond which an auto pool has no use of them. On the host a length that only the model's file asks
// for is one sequence's, up to a bound, and the others are of a usual length: a file that declares millions
// of tokens takes no gigabytes. Pages that take no memory still have bookkeeping, so there are only as many
// as are likely to be used.
u64 useful_pages(const pool_needs& p, memory_kind kind) {
  const u64 whole = u64{pages_for(p.context)} * p.max_batch;
  switch (kind) {
    case memory_kind::unknown:
      return std::clamp<u64>(pages_of_usual_length(p), pages_for(p.context), unmapped_pages);
    case memory_kind::host:
      if (p.context_asked) break;
      return std::min(most_pages, std::max<u64>(pages_of_usual_length(p),
                                                pages_for(std::min(p.context, longest_unasked))));
    case memory_kind::device:
      break;
  }
  return std::min(whole, most_pages);
}

// The pages of --kv-tokens. Error: does_not_fit.
result<u64> asked_pages(const pool_needs& p) {
  const u64 pages = pages_for(p.kv_tokens), one = page_bytes(p);
  const u64 most = one == 0 ? unmapped_pages : most_pages;
  u64 bytes = 0;
  if (pages > most || __builtin_mul_overflow(pages, one, &bytes))
    return make_error(errc::does_not_fit, "--kv-tokens {} takes {} pages, {} are the most", p.kv_tokens,
                      pages, most);
  return pages;
}

// The pages of an auto pool that got `pages`, once it is rounded down to a size that can change.
u64 able_to_change(const pool_needs& p, u64 pages) {
  const u64 floor = pages_for(p.kv_floor);
  const u64 fewer = p.steps.rounded(static_cast<std::uint32_t>(pages));
  return fewer < floor ? pages : fewer;
}

// The auto pool of one model while memory is divided.
struct share {
  std::size_t model;  // its index; behind those of the models: of a pool that stays, in steps
  u64 one;            // bytes of a page
  u64 pages = 0, floor = 0, most = 0;
};

// Gives the pools equal bytes of `left`, none more than `bound` pages. What a pool that reaches its bound
// leaves over is divided among the others.
void divide(std::span<share> pools, u64 share::*bound, u64& left) {
  for (bool again = true; again;) {
    again = false;
    const auto hungry =
        static_cast<u64>(std::ranges::count_if(pools, [&](const share& s) { return s.pages < s.*bound; }));
    if (hungry == 0) return;
    const u64 each = left / hungry;
    for (share& s : pools) {
      if (s.pages >= s.*bound) continue;
      const u64 more = std::min(s.*bound - s.pages, each / s.one);
      s.pages += more;
      left -= more * s.one;
      again |= s.pages == s.*bound;
    }
  }
}

// Takes bytes of a device one after another, and keeps what was too much.
class taker {
 public:
  explicit taker(u64 total) : left_(total) {}

  template <class Name>
  void take(u64 bytes, const Name& of) {
    if (bytes > left_) {
      if (missing_ == 0) of_ = of();
      missing_ = sum_of(missing_, bytes - left_);
    }
    left_ -= std::min(left_, bytes);
  }
  u64 left() const { return left_; }
  u64 missing() const { return missing_; }
  const std::string& of() const { return of_; }

 private:
  u64 left_, missing_ = 0;
  std::string of_;
};

std::string line_of(const char* line, const planned_model& m) {
  return fmt::format("the {} of {}", line, m.name);
}

// The plan of one device. `here`: its models, in the order of their loads.
class device_planner {
 public:
  device_planner(memory_plan::device_row& d, const std::vector<model_needs>& needs,
                 std::vector<planned_model*> here)
      : d_(d), needs_(needs), here_(std::move(here)) {}

  std::optional<memory_plan::shortage> run() {
    for (planned_model* m : here_) least_of(*m);
    if (d_.total == 0) return finish(), std::nullopt;
    const u64 given = std::min(d_.loaded, add_givers());
    taker all(d_.total);
    all.take(d_.outside, [] { return "what others hold"; });
    all.take(d_.context, [] { return "the context"; });
    all.take(d_.reserve, [] { return "the reserve"; });
    all.take(d_.loaded - given, [] { return "the models that are loaded"; });
    u64 free = all.left();  // once weights and pages of a given number are there
    for (planned_model* m : here_) {
      for_lines(m->lines,
                [&](const char* line, u64 bytes) { all.take(bytes, [&] { return line_of(line, *m); }); });
      free -= std::min(free, sum_of(m->lines.weights, is_auto(*m) ? 0 : m->lines.pages));
    }
    d_.free = all.left();
    if (all.missing() != 0) return finish(), memory_plan::shortage{d_.name, all.missing(), all.of()};
    u64 left = all.left();
    if (d_.kind == memory_kind::host) {
      taker pages(free / 4);
      for (const share& s : autos_)
        if (s.model < here_.size())
          pages.take(s.pages * s.one, [&] { return line_of("pages", *here_[s.model]); });
      if (pages.missing() != 0) return finish(), memory_plan::shortage{d_.name, pages.missing(), pages.of()};
      left = std::min(left, pages.left());
    }
    const u64 to_divide = left;
    divide(autos_, &share::floor, left);
    if (std::ranges::all_of(autos_, [](const share& s) { return s.pages >= s.floor; }))
      divide(autos_, &share::most, left);
    for (share& s : autos_) {
      if (s.model >= here_.size()) continue;
      const u64 pages = able_to_change(pool(*here_[s.model]), s.pages);
      left += (s.pages - pages) * s.one;
      s.pages = pages;
    }
    d_.free -= to_divide - left;
    note_givers();
    finish();
    return std::nullopt;
  }

 private:
  const pool_needs& pool(const planned_model& m) const { return needs_[m.needs].pool; }
  bool is_auto(const planned_model& m) const { return pool(m).kv_tokens == 0; }

  memory_kind kind_of(const pool_needs& p) const {
    return d_.total == 0 || page_bytes(p) == 0 ? memory_kind::unknown : d_.kind;
  }

  // Whether an auto pool has its device for itself.
  bool alone() const {
    return d_.pools.empty() &&
           std::ranges::count_if(here_, [&](const planned_model* m) { return is_auto(*m); }) == 1;
  }

  // Pools that stay are divided anew, in steps. Returns their bytes, of which each has its least at once.
  u64 add_givers() {
    u64 sum = 0, kept = 0;
    for (std::size_t i = 0; i < d_.pools.size(); ++i) {
      const giving_pool& p = d_.pools[i];
      if (most_given(p) == 0) continue;
      share s{here_.size() + i, step_bytes(p)};
      s.pages = s.floor = kept_steps(p);
      s.most = steps_of(p);
      sum = sum_of(sum, s.most * s.one);
      kept = sum_of(kept, s.pages * s.one);
      autos_.push_back(s);
    }
    return sum - kept;
  }

  void note_givers() {
    bool gives = false;
    std::vector<u64> left_with;
    for (const giving_pool& p : d_.pools) left_with.push_back(p.pages);
    for (const share& s : autos_) {
      if (s.model < here_.size()) continue;
      const std::size_t i = s.model - here_.size();
      left_with[i] = pages_at(d_.pools[i], s.pages);
      gives |= left_with[i] < d_.pools[i].pages;
    }
    if (gives) d_.left_with = std::move(left_with);
  }

  // Gives a model the pages that it has in any case.
  void least_of(planned_model& m) {
    const pool_needs& p = pool(m);
    const u64 one = page_bytes(p);
    if (!is_auto(m)) {
      m.pages = pages_for(p.kv_tokens);
    } else if (kind_of(p) == memory_kind::unknown) {
      m.pages = useful_pages(p, memory_kind::unknown);
    } else {
      share s{static_cast<std::size_t>(std::ranges::find(here_, &m) - here_.begin()), one};
      s.most = useful_pages(p, d_.kind);
      const u64 longest = pages_for(p.context);
      s.floor = std::min(s.most, p.kv_floor ? u64{pages_for(p.kv_floor)} : longest + p.max_batch);
      s.pages = p.kv_floor ? s.floor
                : alone()  ? 1
                           : std::min({s.most, longest, u64{pages_for(least_tokens)}});
      m.pages = s.pages;
      autos_.push_back(s);
    }
    m.lines.pages = product_of(m.pages, one);
  }

  void finish() {
    for (const share& s : autos_) {
      if (s.model >= here_.size()) continue;
      planned_model& m = *here_[s.model];
      m.pages = s.pages;
      m.useful = s.most;
      const pool_needs& p = pool(m);
      m.floor = floor_of_pool(s.most, p.kv_floor, p.context, p.max_batch);
    }
    for (planned_model* m : here_) {
      const pool_needs& p = pool(*m);
      m->lines.pages = product_of(m->pages, page_bytes(p));
      for (const page_group& g : p.groups) m->pools.push_back({g, m->pages});
      m->kv_tokens = m->pages * page_tokens;
      m->context = static_cast<std::uint32_t>(std::min<u64>(p.context, m->kv_tokens));
    }
  }

  memory_plan::device_row& d_;
  const std::vector<model_needs>& needs_;
  const std::vector<planned_model*> here_;
  std::vector<share> autos_;
};

}  // namespace

u64 page_bytes(const pool_needs& p) noexcept {
  u64 sum = 0;
  for (const page_group& g : p.groups) sum = sum_of(sum, g.page_bytes);
  return sum;
}

result<std::uint32_t> pages_in(const pool_needs& p, memory_kind kind, u64 free, u64 reserve) {
  const u64 one = page_bytes(p);
  if (one == 0) kind = memory_kind::unknown;
  const bool device = kind == memory_kind::device;
  const u64 kept = device ? reserve : 0;
  const auto beside = device ? fmt::format(" beside --reserve-vram, {} MB", kept >> 20) : std::string();
  const auto too_much = [&](const char* option, u64 tokens, u64 bytes) {
    return make_error(errc::does_not_fit, "--{} {} takes {} MB, {} MB more than is free{}", option, tokens,
                      bytes >> 20, (sum_of(bytes, kept) - free) >> 20, beside);
  };
  if (p.kv_tokens != 0) {
    const auto pages = asked_pages(p);
    if (!pages) return pages.error();
    if (kind != memory_kind::unknown && sum_of(*pages * one, kept) > free)
      return too_much("kv-tokens", p.kv_tokens, *pages * one);
    return static_cast<std::uint32_t>(*pages);
  }
  const u64 useful = useful_pages(p, kind);
  if (kind == memory_kind::unknown) return static_cast<std::uint32_t>(useful);
  const u64 room = (device ? free - std::min(free, kept) : free / 4) / one;
  if (room == 0)
    return make_error(errc::does_not_fit, "no memory is left for a page of {} bytes: {} MB are free{}", one,
                      free >> 20, beside);
  const u64 floor = std::min(useful, u64{pages_for(p.kv_floor)});
  if (room < floor)
    return make_error(errc::does_not_fit, "--kv-floor {} takes {} pages, there is room for {}{}", p.kv_floor,
                      floor, room, beside);
  return static_cast<std::uint32_t>(able_to_change(p, std::min(useful, room)));
}

result<memory_plan> make_plan(std::vector<plan_device> devices, const std::vector<model_needs>& models) {
  memory_plan out;
  for (plan_device& d : devices) out.devices.push_back({std::move(d), 0});
  std::vector<std::size_t> order(models.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return models[i].lines.weights; });
  for (const std::size_t i : order) {
    if (models[i].pool.kv_tokens != 0)
      if (const auto asked = asked_pages(models[i].pool); !asked) return asked.error();
    planned_model m;
    m.name = models[i].name;
    m.needs = i;
    m.device = models[i].device;
    m.lines = models[i].lines;
    out.models.push_back(std::move(m));
  }
  for (std::size_t d = 0; d < out.devices.size(); ++d) {
    std::vector<planned_model*> here;
    for (planned_model& m : out.models)
      if (m.device == d) here.push_back(&m);
    auto lacks = device_planner(out.devices[d], models, std::move(here)).run();
    if (lacks && !out.lacks) out.lacks = std::move(lacks);
  }
  return out;
}

}  // namespace weir::core
