#include "tests/bench/actors/bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace bench {
namespace {

using params = std::vector<std::uint64_t>;

// A program and its parameters: their names, their defaults (the published values), and how many operations
// they amount to.
struct description {
  std::string_view name;
  std::string_view parameters;
  params defaults;
  std::string_view operation;
  std::uint64_t (*operations)(const params&);
};

std::uint64_t first(const params& p) { return p[0]; }
std::uint64_t first_two(const params& p) { return p[0] * p[1]; }

const std::vector<description> descriptions = {
    {"actor_creation", "POW", {20}, "actor", [](const params& p) { return std::uint64_t(1) << p[0]; }},
    {"mailbox_performance", "SENDERS MESSAGES", {100, 1'000'000}, "message", first_two},
    {"mixed_case",
     "RINGS RING_SIZE TOKEN REPETITIONS FACTORISE",
     {100, 100, 1000, 4, 1},
     "hop",
     [](const params& p) { return p[0] * p[3] * p[1] * (p[2] + 1); }},
    {"pingpong", "PINGS", {40'000}, "round trip", first},
    {"count", "MESSAGES", {1'000'000}, "message", first},
    {"fjthrput", "MESSAGES ACTORS", {10'000, 60}, "message", first_two},
    {"threadring", "ACTORS PASSES", {100, 100'000}, "pass", [](const params& p) { return p[1]; }},
    {"big", "PINGS ACTORS", {20'000, 120}, "round trip", first_two},
    {"bndbuffer",
     "BUFFER PRODUCERS CONSUMERS ITEMS PRODUCER_COST CONSUMER_COST",
     {50, 40, 40, 1000, 25, 25},
     "item",
     [](const params& p) { return p[1] * p[3]; }},
    {"idle", "ACTORS", {100'000}, "actor", first},
    {"token_streams", "STREAMS TOKENS", {64, 100'000}, "token", first_two},
    {"token_push", "STREAMS TOKENS PERIOD_US", {64, 2'000, 1000}, "token", first_two},
};

int usage() {
  std::fprintf(stderr, "usage: PROGRAM [--threads=N] [--newest-first] [PARAMETERS]\n");
  for (const description& d : descriptions) {
    std::fprintf(stderr, "  %-20.*s %.*s  (", int(d.name.size()), d.name.data(), int(d.parameters.size()),
                 d.parameters.data());
    for (const auto n : d.defaults) std::fprintf(stderr, " %llu", static_cast<unsigned long long>(n));
    std::fprintf(stderr, " )\n");
  }
  return 2;
}

bool number(std::string_view text, std::uint64_t& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

// A line of /proc/self/status, in bytes. (getrusage would count the memory of whoever started us.)
std::uint64_t memory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == field && status >> kib) return kib * 1024;
  }
  fail("no " + field + " in /proc/self/status");
}

std::uint64_t weighed = 0;

double cpu_seconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](timeval v) { return double(v.tv_sec) + double(v.tv_usec) * 1e-6; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void report(std::string_view impl, const description& d, const task& t, std::uint64_t base) {
  const auto ops = d.operations(t.params);
  std::ostringstream line;
  line << "{\"program\": \"" << d.name << "\", \"params\": [";
  for (std::size_t i = 0; i < t.params.size(); ++i) line << (i ? ", " : "") << t.params[i];
  line << "], \"impl\": \"" << impl << (t.newest_first ? ", newest first" : "")
       << "\", \"threads\": " << t.threads << ", \"seconds\": " << t.watch.seconds()
       << ", \"cpu_seconds\": " << cpu_seconds() << ", \"base_rss_bytes\": " << base
       << ", \"peak_rss_bytes\": " << memory("VmHWM:");
  if (weighed) line << ", \"weighed_rss_bytes\": " << weighed;
  line << ", \"operation\": \"" << d.operation << "\", \"ops\": " << ops
       << ", \"ops_per_s\": " << static_cast<std::uint64_t>(double(ops) / t.watch.seconds()) << "}";
  std::puts(line.str().c_str());
}

}  // namespace

void fail(std::string_view why) {
  std::fprintf(stderr, "bench: %.*s\n", int(why.size()), why.data());
  std::exit(1);
}

void task::weigh() const { weighed = memory("VmRSS:"); }

int main(std::string_view impl, int argc, char** argv, const std::vector<program>& programs) {
  const std::vector<std::string_view> args(argv + 1, argv + argc);
  if (args.empty()) return usage();
  const auto d = std::find_if(descriptions.begin(), descriptions.end(),
                              [&](const description& it) { return it.name == args[0]; });
  if (d == descriptions.end()) return usage();
  const auto p =
      std::find_if(programs.begin(), programs.end(), [&](const program& it) { return it.name == args[0]; });
  if (p == programs.end()) fail(std::string(impl) + " has no " + std::string(args[0]));

  stopwatch watch;
  task t{1, {}, watch};
  for (std::size_t i = 1; i < args.size(); ++i) {
    if (args[i] == "--newest-first") {
      t.newest_first = true;
      continue;
    }
    constexpr std::string_view threads = "--threads=";
    std::uint64_t n = 0;
    const bool option = args[i].starts_with(threads);
    if (!number(option ? args[i].substr(threads.size()) : args[i], n)) return usage();
    if (option) {
      t.threads = static_cast<unsigned>(n);
    } else {
      t.params.push_back(n);
    }
  }
  if (t.params.size() > d->defaults.size() || t.threads == 0) return usage();
  for (std::size_t i = t.params.size(); i < d->defaults.size(); ++i) t.params.push_back(d->defaults[i]);

  const auto base = memory("VmRSS:");
  p->run(t);
  report(impl, *d, t, base);
  return 0;
}

}  // namespace bench
