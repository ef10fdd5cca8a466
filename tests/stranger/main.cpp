// The stranger: talks to a server as an attacker would, and checks after every round that the server is
// whole.
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <cstdio>

#include "tests/stranger/attack.h"
#include "tests/stranger/inspector.h"
#include "tests/stranger/options.h"
#include "tests/stranger/rounds.h"
#include "tests/stranger/server.h"

namespace weir::stranger {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::seconds report_every{10};
constexpr std::chrono::seconds longest_stop{10};

void raise_descriptors() {
  rlimit r{};
  getrlimit(RLIMIT_NOFILE, &r);
  r.rlim_cur = r.rlim_max;
  setrlimit(RLIMIT_NOFILE, &r);
}

std::string run_round(const options& o, std::uint64_t seed, server& s, inspector& eye) {
  const round r = make_round(seed, s.at(), o.kind);
  eye.begin_round();
  const auto results = hold(s.at(), r.talk, r.limit);
  std::string wrong = eye.after_round(o.surge / r.surge_share);
  for (std::size_t i = 0; wrong.empty() && i < results.size(); ++i) wrong = complaint(r.talk[i], results[i]);
  if (wrong.empty()) return {};
  return wrong + "\nround of the kind " + r.kind + ", " + std::to_string(r.talk.size()) +
         " connections, the first: " + r.talk.front().what + "\nagain: " + replay_line(o, seed);
}

// The seeds of the rounds are a chain from the first one, so that a run can begin with any of them.
std::uint64_t seed_after(std::uint64_t seed) { return random_source(seed).next(); }

class campaign {
 public:
  campaign(const options& o, server& s) : options_(o), server_(s), eye_(s, options_) {}

  std::string run() {
    if (auto wrong = eye_.see_baseline(); !wrong.empty()) return wrong;
    begun_ = reported_ = clock::now();
    std::uint64_t seed = options_.seed;
    for (; more(); ++rounds_, seed = seed_after(seed)) {
      if (auto wrong = run_round(options_, seed, server_, eye_); !wrong.empty()) return wrong;
      report();
    }
    if (auto wrong = eye_.after_all(); !wrong.empty()) return wrong + "\n(seen over the whole run)";
    return server_.stop(longest_stop);
  }

  std::size_t rounds() const { return rounds_; }

 private:
  bool more() const {
    if (options_.rounds) return rounds_ < options_.rounds;
    return clock::now() - begun_ < std::chrono::seconds(options_.seconds);
  }

  void report() {
    const auto now = clock::now();
    if (now - reported_ < report_every) return;
    reported_ = now;
    const double s = std::chrono::duration<double>(now - begun_).count();
    std::printf("%.0f s: %zu rounds, %.1f a second, %zu MiB resident, %zu descriptors\n", s, rounds_ + 1,
                static_cast<double>(rounds_ + 1) / s, server_.resident() >> 20, server_.descriptors());
    std::fflush(stdout);
  }

  const options& options_;
  server& server_;
  inspector eye_;
  std::size_t rounds_ = 0;
  clock::time_point begun_{}, reported_{};  // the first round; the last report
};

int fail(const std::string& what) {
  std::printf("stranger found: %s\n", what.c_str());
  return 1;
}

int besiege(const options& o) {
  if (make_round(o.seed, {}, o.kind).talk.empty()) return fail("no kind of round is called " + o.kind);
  std::string fault;
  const auto s = server::start(o, fault);
  if (!s) return fail(fault);
  campaign c(o, *s);
  const std::string wrong = c.run();
  if (wrong.empty()) {
    std::printf("stranger: %zu rounds, seed %llu, nothing found\n", c.rounds(),
                static_cast<unsigned long long>(o.seed));
    return 0;
  }
  return fail(wrong + "\nthe server's last words:\n" + s->last_words());
}

}  // namespace
}  // namespace weir::stranger

int main(int argc, char** argv) {
  using namespace weir::stranger;
  std::signal(SIGPIPE, SIG_IGN);
  const auto o = read_options(argc, argv);
  if (!o) return 2;
  raise_descriptors();
  return o->attack.empty() ? besiege(*o) : attack(*o);
}
