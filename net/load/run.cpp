#include "net/load/run.h"

#include <sys/resource.h>

#include <boost/asio/ip/tcp.hpp>
#include <thread>

#include "net/load/stats.h"

namespace weir::load {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;
using seconds = std::chrono::duration<double>;

constexpr auto patience = std::chrono::seconds(5);  // for the server to end the jobs of closed connections

double cpu_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  const auto s = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return s(u.ru_utime) + s(u.ru_stime);
}

work work_of(const run_options& o, place& at) {
  work w;
  w.how = o.how;
  w.to = at.addresses;
  w.tls = at.tls.get();
  w.ask = std::make_shared<questions>(o.ask);
  w.streams = o.streams;
  w.arrive.rate = o.rate;
  w.arrive.burstiness = o.burstiness;
  w.arrive.ramp_s = o.ramp_s;
  w.arrive.seed = o.seed;
  if (!o.streams && o.rate == 0) w.times = std::make_shared<trace>(o.ask.lengths);
  w.ramp_s = o.ramp_s;
  w.slow_share = o.slow_share;
  w.read_rate = o.read_rate;
  w.cancel_share = o.cancel_share;
  w.disconnect_per_s = o.disconnect_per_s;
  w.resume = o.resume;
  w.followers = o.followers;
  w.silence_s = o.silence_s;
  w.measure.from = static_cast<micros>(o.warmup_s * 1e6);
  w.measure.slo = o.slo;
  w.measure.raster_streams = (o.raster_streams + o.threads - 1) / o.threads;
  w.parts = o.threads;
  w.seed = o.seed;
  return w;
}

// Observes the workers and the server during a run.
class watch {
 public:
  watch(const run_options& o, place& at, std::vector<std::unique_ptr<worker>>& workers,
        steady_clock::time_point zero)
      : o_(o), at_(at), workers_(workers), zero_(zero) {}

  void look() {
    if (auto s = ask()) {
      rss = std::max(rss, s->rss_bytes);
      last = s;
    }
  }
  std::optional<server_stats> ask() { return ask_stats(o_.how.to, at_.addresses, at_.tls.get(), o_.how.key); }

  std::int64_t streams() const {
    std::int64_t n = 0;
    for (const auto& w : workers_) n += w->now().streams;
    return n;
  }
  bool asked_all() const {
    return std::ranges::all_of(workers_, [](const auto& w) { return w->now().asked_all.load(); });
  }
  progress since(steady_clock::time_point now) {
    progress p;
    p.at_s = seconds(now - zero_).count();
    p.streams = streams();
    std::uint64_t tokens = 0;
    for (const auto& w : workers_) {
      tokens += w->now().tokens;
      p.errors += w->now().errors;
      p.gap_p99_ms = std::max(p.gap_p99_ms, w->now().gap_p99_ms.load());
    }
    p.tokens_per_s = static_cast<double>(tokens - told_) / seconds(now - told_at_).count();
    told_ = tokens;
    told_at_ = now;
    return p;
  }

  std::uint64_t rss = 0;
  std::optional<server_stats> last;

 private:
  const run_options& o_;
  place& at_;
  std::vector<std::unique_ptr<worker>>& workers_;
  steady_clock::time_point zero_, told_at_ = zero_;
  std::uint64_t told_ = 0;
};

// Waits until the run's time is over, its trace has ended, or it is interrupted. Returns whether it was
// interrupted.
bool wait(const run_options& o, std::vector<std::unique_ptr<worker>>& workers, watch& eyes,
          steady_clock::time_point zero, const std::function<void(const progress&)>& tell,
          const std::function<bool()>& interrupted, bool stats) {
  const auto end =
      zero + std::chrono::duration_cast<steady_clock::duration>(seconds(o.warmup_s + o.duration_s));
  const auto last =
      end + std::chrono::duration_cast<steady_clock::duration>(seconds(o.streams ? 0 : o.drain_s));
  auto next = zero + std::chrono::seconds(1);
  bool asking = true;
  for (;;) {
    const auto now = steady_clock::now();
    if (interrupted()) return true;
    if (asking && (now >= end || (!o.streams && eyes.asked_all()))) {
      asking = false;
      for (auto& w : workers) w->stop_asking();
    }
    if (!asking && (now >= last || eyes.streams() == 0)) return false;
    if (now >= next) {
      next += std::chrono::seconds(1);
      if (tell) tell(eyes.since(now));
      if (stats) eyes.look();
    }
    std::this_thread::sleep_for(
        std::min<steady_clock::duration>(std::chrono::milliseconds(100), std::max(next, now) - now));
  }
}

}  // namespace

core::result<std::shared_ptr<place>> place::find(const target& to, bool insecure) {
  auto p = std::make_shared<place>();
  asio::io_context io;
  boost::system::error_code ec;
  for (const auto& found : asio::ip::tcp::resolver(io).resolve(to.host, to.port, ec))
    p->addresses.push_back(found.endpoint());
  if (ec || p->addresses.empty())
    return core::bad_param("url", "--url: {} has no address: {}", to.host, ec.message());
  if (!to.tls) return p;
  p->tls = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  p->tls->set_default_verify_paths(ec);
  p->tls->set_verify_mode(insecure ? asio::ssl::verify_none : asio::ssl::verify_peer, ec);
  return p;
}

core::result<std::shared_ptr<place>> place::find(const manner& how, bool insecure) {
  auto all = find(how.to, insecure);
  for (const auto& to : how.also) {
    if (!all) break;
    auto more = find(to, insecure);
    if (!more) return more;
    auto& known = (*all)->addresses;
    known.insert(known.end(), (*more)->addresses.begin(), (*more)->addresses.end());
  }
  return all;
}

report run(const run_options& o, place& at, const std::function<void(const progress&)>& tell,
           const std::function<bool()>& interrupted) {
  std::vector<std::unique_ptr<worker>> workers;
  std::optional<server_stats> before;  // of one server alone
  if (o.how.also.empty()) before = ask_stats(o.how.to, at.addresses, at.tls.get(), o.how.key);
  const double cpu = cpu_seconds();
  work w = work_of(o, at);
  w.zero = steady_clock::now();
  const auto zero = w.zero;
  for (w.part = 0; w.part < o.threads; ++w.part) {
    workers.push_back(std::make_unique<worker>(w));
    workers.back()->start();
  }
  watch eyes(o, at, workers, zero);
  report r;
  r.interrupted = wait(o, workers, eyes, zero, tell, interrupted, before.has_value());
  const double lived = seconds(steady_clock::now() - zero).count();
  for (auto& one : workers) one->stop();
  for (auto& one : workers) one->join();
  r.all = pool(w.measure);
  for (auto& one : workers) r.all.merge(one->result());
  r.all.number(figure::frames_per_read) /= static_cast<double>(o.threads);
  r.all.number(figure::client_cpu) = (cpu_seconds() - cpu) / (lived * o.threads);
  if (before) {
    auto after = eyes.ask();
    const auto until = steady_clock::now() + patience;
    while (after && after->jobs > before->jobs && steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      after = eyes.ask();
    }
    if (after) {
      r.all.number(figure::leaked_jobs) =
          after->jobs > before->jobs ? static_cast<double>(after->jobs - before->jobs) : 0;
      r.all.number(figure::slow_closed) = static_cast<double>(after->slow_closed - before->slow_closed);
      r.all.number(figure::server_rss_growth_bytes) =
          static_cast<double>(after->rss_bytes) - static_cast<double>(before->rss_bytes);
      r.all.number(figure::server_rss_bytes) = static_cast<double>(std::max(eyes.rss, after->rss_bytes));
      r.all.number(figure::server_sent_p99_ms) = after->sent_p99_ms;
    }
  }
  r.all.conclude(std::max(0.0, lived - o.warmup_s));
  r.url = o.url;
  r.protocol = o.how.to.speaks == protocol::weir ? "weir.v1"
               : o.how.to.chat()                 ? "openai chat"
                                                 : "openai completions";
  r.options = o.shown;
  r.sampled_times = r.all.of(figure::added_jitter_ms).count() > 0;
  r.bottleneck = bottleneck_of(r.all);
  r.all.number(figure::bottleneck) = r.bottleneck.empty() ? 0 : 1;
  return r;
}

}  // namespace weir::load
