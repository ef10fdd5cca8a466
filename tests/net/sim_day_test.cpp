// Hours of a server's life in seconds: a simulated device that fails now and then, a pool of pages far too
// small, and clients of every temper, in virtual time. Everything is a function of the seed:
// WEIR_SIM_DAY=SEED replays one day, and WEIR_SIM_DAY=SEED:COUNT its first COUNT arrivals. A day that fails
// is replayed with fewer arrivals, and the test prints the fewest with which it fails.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <sstream>

#include "tests/support/budget.h"
#include "tests/support/seed.h"
#include "tests/support/data.h"
#include "tests/support/shrink.h"
#include "tests/support/town.h"

namespace weir::tests::sim_day_test {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t made_arrivals = 6000;
constexpr std::uint32_t batch = 12, queue = 60, pages = 24;
constexpr std::uint32_t longest_prompt = 1000, longest_output = 200;
constexpr double rate = 50, prefill = 20000;

struct arrival {
  core::duration at{};
  std::uint32_t prompt = 1, output = 1;
};

// An hour of a real conversation service, a quarter as long in tokens; empty where the trace is not there.
std::vector<arrival> traced() {
  std::ifstream in(tests::data_dir() / "traces" / "AzureLLMInferenceTrace_conv.csv");
  std::vector<arrival> all;
  std::string line;
  std::getline(in, line);
  std::optional<double> first;
  while (std::getline(in, line)) {
    unsigned hour = 0, minute = 0, prompt = 0, output = 0;
    double second = 0;
    if (std::sscanf(line.c_str(), "%*s %u:%u:%lf,%u,%u", &hour, &minute, &second, &prompt, &output) != 5)
      continue;
    const double t = hour * 3600.0 + minute * 60.0 + second;
    if (!first) first = t;
    all.push_back(
        {core::duration(static_cast<std::int64_t>((t - *first) * 1e9)), 1 + prompt / 4, 1 + output / 4});
  }
  return all;
}

// A made hour of the same sort: arrivals in surges, with lengths over two orders of magnitude. In storms a
// batchful of short prompts comes at once after a calm: all fit when they enter, and not once grown.
std::vector<arrival> made(std::mt19937_64& random, std::size_t count) {
  std::vector<arrival> all;
  core::duration at{};
  for (std::size_t i = 0; i < count; ++i) {
    const bool surge = i / 64 % 4 == 3, storm = i / 64 % 4 == 1;
    at += std::chrono::microseconds(random() % (surge ? 20000 : storm ? 1000 : 300000));
    if (storm) {
      if (i % 64 % batch == 0) at += 12s;
      all.push_back({at, 1 + static_cast<std::uint32_t>(random() % 40),
                     150 + static_cast<std::uint32_t>(random() % 50)});
      continue;
    }
    all.push_back({at, 1 + static_cast<std::uint32_t>(random() % (8u << random() % 7)),
                   1 + static_cast<std::uint32_t>(random() % (16u << random() % 5))});
  }
  return all;
}

struct day : town {
  explicit day(std::uint64_t seed)
      : town(seed, 1s, [seed](world& w, actors::service_options& o) { found(w, o, seed); }),
        faults(seed % 3 != 2) {}

  static void found(world& w, actors::service_options& o, std::uint64_t seed) {
    const auto fault = [&](const char* what, std::uint64_t n) {
      return fmt::format(",fault={}@{}", what, n);
    };
    std::string sim =
        fmt::format("rate={},prefill={},arrive={}", rate, prefill, seed % 2 ? "staggered" : "together");
    if (seed % 4 == 1) sim += ",stall=60000/3000";
    if (seed % 3 == 0) sim += fault("device", 20000 + w.random() % 20000);
    if (seed % 3 == 1) sim += fault("sampler", 1 + w.random() % 20000);
    o.models.push_back({"sim", "sim:" + sim});
    o.owner.max_batch = batch;
    o.owner.queue = queue;
    o.owner.kv_tokens = pages * core::page_tokens;
  }

  // A client's request. Its prompt is one of a few shared openings and then text of its own.
  actors::request asked(const arrival& a) {
    auto& random = here.random;
    actors::request r;
    const std::uint64_t opening = random() % 6;
    std::string prompt;
    for (std::uint32_t i = 0; i < std::min(a.prompt, longest_prompt) * 3 / 4; ++i)
      prompt += static_cast<char>('a' + (opening * 7 + i * i) % 26);
    for (std::uint32_t i = 0; i <= std::min(a.prompt, longest_prompt) / 4; ++i)
      prompt += static_cast<char>('a' + random() % 26);
    r.input = std::move(prompt);
    r.max_tokens = std::min(a.output, longest_output);
    r.cache_salt = random() % 5 == 0 ? "tenant" : "";
    r.priority = random() % 10 == 0 ? 1 : 0;
    r.who.key = random() % 3;
    if (random() % 12 == 0) r.deadline = std::chrono::milliseconds(1 + random() % 10000);
    if (random() % 8 == 0) r.stop = {fmt::format("w{:02d}", random() % 100)};
    return r;
  }

  void live_through(const std::vector<arrival>& arrivals) {
    const habits h{
        .slow_one_in = 4, .cancel_one_in = 8, .desert_one_in = 10, .patience = 20s, .faults = faults};
    for (const auto& a : arrivals) expect(a.at, [this, a] { return asked(a); }, h);
    live(arrivals.back().at + 1s);
  }

  // A hash of what the clients saw and of the time at the end.
  std::size_t digest() const {
    std::string all = std::to_string(here.now().time_since_epoch().count());
    for (const auto& l : lives) all += l->ending() + l->text();
    return std::hash<std::string>()(all);
  }

  const bool faults;
};

struct tally {
  std::map<std::string, int> endings;
  std::uint64_t preemptions = 0, prefix_hits = 0;
};

// No job waits longer than it takes to serve, one by one, all jobs that may be before it.
constexpr double longest_wait_ms =
    (batch + queue) * 1000.0 * (longest_output / rate + longest_prompt / prefill + 2 / rate) + 3000;

std::size_t run_day(std::uint64_t seed, const std::vector<arrival>& arrivals, tally& t) {
  CAPTURE(seed);
  day d(seed);
  d.live_through(arrivals);
  d.judge(t.endings);
  for (const auto& l : d.lives)
    if (l->ending() != "deserted") REQUIRE(l->queued_ms() < longest_wait_ms);
  const auto stats = d.service->stats();
  t.preemptions += stats.engine.preemptions;
  t.prefix_hits += stats.engine.prefix_hits;
  return d.digest();
}

// Which day WEIR_SIM_DAY names, if it does.
struct replay {
  std::uint64_t seed = 0;
  std::size_t count = made_arrivals;
};
std::optional<replay> asked_for() {
  const char* what = std::getenv("WEIR_SIM_DAY");
  if (!what) return std::nullopt;
  replay r;
  char* end = nullptr;
  r.seed = std::strtoull(what, &end, 10);
  if (*end == ':') r.count = std::strtoull(end + 1, nullptr, 10);
  return r;
}

bool fails(std::uint64_t seed, std::size_t count) {
  const auto again = fmt::format("WEIR_SIM_DAY={}:{} /proc/{}/exe 'sim_day: an hour*' > /dev/null 2>&1", seed,
                                 count, ::getpid());
  return std::system(again.c_str()) != 0;
}

// After a day that failed, prints how few of its arrivals fail.
struct mourner {
  std::uint64_t seed;
  const int before = std::uncaught_exceptions();
  ~mourner() {
    if (std::uncaught_exceptions() == before || asked_for()) return;
    const auto few = tests::shrink(made_arrivals, [this](std::size_t n) { return fails(seed, n); });
    std::cout << "sim_day: it fails with WEIR_SIM_DAY=" << seed << ":" << few << std::endl;
  }
};

void live_day(std::uint64_t seed, std::size_t count, tally& t) {
  std::cout << "sim_day: WEIR_SIM_DAY=" << seed << ":" << count << std::endl;
  const mourner at_its_end{seed};
  std::mt19937_64 random(seed);
  auto arrivals = made(random, made_arrivals);
  arrivals.resize(count);
  run_day(seed, arrivals, t);
}

}  // namespace

TEST_CASE("sim_day: the first minutes of a day leave nothing behind, and each client is served as promised") {
  tally t;
  live_day(drawn_seed(2000), made_arrivals / 8, t);
  CHECK(t.endings["length"] > 0);
}

TEST_CASE(
    "sim_day: an hour of every kind of client and fault leaves nothing behind, and each is served as "
    "promised",
    "[long]") {
  tally t;
  if (const auto day = asked_for()) return live_day(day->seed, day->count, t);
  // Only the known days are sure to have what is checked below: a drawn day has ten preemptions, or hundreds.
  constexpr std::array<std::uint64_t, 6> known{11, 13, 3, 4, 5, 6};
  const auto days = std::min<std::size_t>(known.size(), rounds(known.size()));
  for (std::size_t i = 0; i < days; ++i) live_day(known[i], made_arrivals, t);
  for (unsigned i = 0; i < rounds(2); ++i) live_day(drawn_seed(1000 + i), made_arrivals, t);
  for (const char* every : {"length", "stop", "timeout", "cancel", "overloaded", "deserted", "error"}) {
    CAPTURE(every);
    // A single day need not have a fault that ends a job.
    if (days == known.size() || std::string_view(every) != "error") CHECK(t.endings[every] > 0);
  }
  CAPTURE(t.preemptions);
  CHECK(t.preemptions > 160 * days);
  CHECK(t.prefix_hits > 160 * days);
}

TEST_CASE("sim_day: the arrivals of a real service", "[long]") {
  auto arrivals = traced();
  if (arrivals.empty()) {
    WARN("no trace below " << tests::data_dir() << "; arrivals are made alone");
    return;
  }
  arrivals.resize(std::min<std::size_t>(arrivals.size(), rounds(static_cast<unsigned>(arrivals.size()))));
  tally t;
  run_day(5, arrivals, t);
  CHECK(t.preemptions > 0);
}

TEST_CASE("sim_day: the same seed is the same day", "[long]") {
  tally t;
  std::mt19937_64 random(1);
  const auto arrivals = made(random, 1500);
  const auto first = run_day(9, arrivals, t);
  CHECK(run_day(9, arrivals, t) == first);
  CHECK(run_day(10, arrivals, t) != first);
}

TEST_CASE("sim_day: a failing day is cut down to as few arrivals as fail") {
  for (const std::size_t least : {1u, 2u, 137u, 5999u, 6000u}) {
    std::size_t runs = 0;
    CHECK(tests::shrink(6000, [&](std::size_t n) { return ++runs, n >= least; }) == least);
    CHECK(runs <= 13);
  }
}

}  // namespace weir::tests::sim_day_test
