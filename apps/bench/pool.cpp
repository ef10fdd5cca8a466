#include "apps/bench/pool.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "apps/bench/bench.h"

namespace weir::apps::bench {
namespace {

// What the driver keeps for itself beside memory, such as tables of addresses.
constexpr std::int64_t most_apart = 8 << 20;

struct moves {
  std::vector<double> gives, takes;  // seconds
  std::int64_t most_apart = 0;       // bytes between what was free and what the pages say
  core::result<void> ok;
};

// What stays if a fifth of the pool leaves, in whole steps; at least one leaves.
std::int32_t pages_left(const core::model& m) {
  const std::int32_t step = m.page_step(), most = m.most_pages();
  return (most - std::max(most / 5 / step, 1) * step) / step * step;
}

void move_once(core::model& m, std::int32_t left, const std::function<std::uint64_t()>& free_bytes,
               moves& out) {
  const std::int32_t most = m.most_pages();
  const auto expected = static_cast<std::int64_t>((most - left) * m.info().page_bytes);
  const auto before = static_cast<std::int64_t>(free_bytes());
  out.gives.push_back(seconds_of([&] { out.ok = m.set_pages(left); }));
  if (!out.ok) return;
  const auto apart = static_cast<std::int64_t>(free_bytes()) - before - expected;
  out.most_apart = std::max(out.most_apart, std::abs(apart));
  out.takes.push_back(seconds_of([&] { out.ok = m.set_pages(most); }));
}

boost::json::object spread(std::vector<double> v) {
  return {{"p50", percentile(v, 0.5)}, {"worst", percentile(v, 1)}};
}

}  // namespace

core::result<boost::json::object> measure_pool(core::model& m, std::uint32_t rounds,
                                               const std::function<core::result<double>()>& decode,
                                               const std::function<std::uint64_t()>& free_bytes) {
  if (m.page_step() == 0) return boost::json::object{{"cannot_change", m.set_pages(1).error().message}};
  const std::int32_t left = pages_left(m);
  const auto alone = decode();
  if (!alone) return alone.error();
  moves quiet, busy;
  for (std::uint32_t i = 0; i < rounds && quiet.ok; ++i) move_once(m, left, free_bytes, quiet);
  if (!quiet.ok) return quiet.ok.error();
  double longest = 0;
  core::result<void> decoded;
  {
    std::atomic<bool> done = false;
    std::jthread beside([&] {
      for (std::uint32_t i = 0; i < rounds && busy.ok; ++i) move_once(m, left, free_bytes, busy);
      done = true;
    });
    do {
      const auto one = decode();
      if (one)
        longest = std::max(longest, *one);
      else
        decoded = one.error();
    } while (decoded && !done);
  }
  if (!decoded) return decoded.error();
  if (!busy.ok) return busy.ok.error();
  const bool on_device = m.sleep_bytes().value_or(0) > 0;  // what is free on the host is of all processes
  if (on_device && quiet.most_apart > most_apart)
    return core::make_error(core::errc::internal,
                            "the bytes that came and went are {} off those of the pages", quiet.most_apart);
  boost::json::object out{{"pages", m.most_pages()}, {"page_step", m.page_step()}, {"pages_left", left}};
  out["moved_bytes"] = static_cast<std::uint64_t>(m.most_pages() - left) * m.info().page_bytes;
  if (on_device) out["bytes_apart"] = quiet.most_apart;
  out["give_back_s"] = spread(quiet.gives);
  out["take_again_s"] = spread(quiet.takes);
  out["give_back_beside_decoding_s"] = spread(busy.gives);
  out["take_again_beside_decoding_s"] = spread(busy.takes);
  out["longest_step_alone_s"] = *alone;
  out["longest_step_beside_s"] = longest;
  return out;
}

}  // namespace weir::apps::bench
