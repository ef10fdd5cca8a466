#include "apps/serving.h"

#include <spdlog/spdlog.h>
#include <atomic>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <thread>

#include "actors/device_watch.h"
#include "actors/service_doors.h"
#include "apps/commands.h"
#include "apps/local_service.h"
#include "apps/log.h"
#include "apps/memory_limit.h"
#include "apps/progress.h"
#include "core/insist.h"
#include "core/size_text.h"
#include "core/visible.h"
#include "kernels/cuda/backend.h"
#include "net/access/origin.h"
#include "net/memory_returner.h"
#include "net/metrics/resident.h"
#include "net/preset_files.h"

namespace weir::apps {
namespace {

core::result<std::string> read_file(const char* option, const std::string& file) {
  std::ifstream in(file);
  std::string text;
  char piece[4096];
  while (in.read(piece, sizeof piece) || in.gcount() > 0)
    text.append(piece, static_cast<std::size_t>(in.gcount()));
  if (!in.eof() || in.bad()) return core::bad_param(option, "--{} {}: cannot be read", option, file);
  return text;
}

// The secret without the ends of lines after it; empty where there is no file.
core::result<std::string> read_token_secret(const std::string& file) {
  constexpr std::size_t least_bytes = 32;
  if (file.empty()) return std::string();
  auto text = read_file("token-secret-file", file);
  if (!text) return text.error();
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  if (text->size() < least_bytes)
    return core::bad_param("token-secret-file", "--token-secret-file {}: a secret has {} bytes or more", file,
                           least_bytes);
  return text;
}

std::string url_host(const std::string& host) {
  return host.find(':') == host.npos ? host : "[" + host + "]";
}

// Time for clients to read their last frames, if the server ends before their jobs have ended.
constexpr std::chrono::milliseconds last_words{500};

// Time in which workers say whether they have the jobs that a gateway leaves to them.
constexpr std::chrono::milliseconds hand_over_within{1000};

// Runs a server: listens, loads the models, prints that it is ready, serves until a signal, drains, stops.
class serving {
 public:
  serving(const core::server_settings& o, actors::service_options s, net::server_options n,
          net::key_file keys, std::optional<fleet_part> fleet)
      : devices_(s.devices),
        fleet_(std::move(fleet)),
        far_options_(s.owner),
        shards_(o.io_threads, s.seen),
        service_(std::move(s), clock_),
        server_(service_, shards_, with_fleet(std::move(n))),
        signals_(io_, SIGINT, SIGTERM),
        hang_up_(io_),
        timer_(io_),
        memory_timer_(io_),
        key_timer_(io_),
        watch_timer_(io_),
        keys_(std::move(keys)),
        settings_(o) {}

  int run() {
    if (auto ok = server_.start(); !ok) return fail(ok.error());
    if (const auto at = server_.metrics())
      spdlog::info("metrics, without a key: http://{}:{}/metrics", url_host(at->host), at->port);
    wait_for_signal();
    if (keys_.is_named()) watch_keys();
    service_.load(show_load_progress(), io_.get_executor(), [this](core::result<> r) { loaded(r); });
    io_.run();
    server_.stop();
    return exit_;
  }

 private:
  // A gateway shows its fleet once it has joined.
  net::server_options with_fleet(net::server_options n) {
    if (fleet_)
      n.fleet = [this]() -> std::shared_ptr<const actors::fleet::fleet_figures> {
        auto* const far = joined_.load();
        return far ? std::make_shared<actors::fleet::fleet_figures>(far->figures()) : nullptr;
      };
    if (runs_elsewhere())
      n.order_worker = [this](std::string worker, core::fleet::model_wish wish, actors::executor ex,
                              std::function<void(core::result<core::fleet::wish_answer>)> done) {
        if (auto* const far = joined_.load())
          return far->order(std::move(worker), std::move(wish), std::move(ex), std::move(done));
        core::insist([&] {
          boost::asio::post(ex, [done] {
            done(core::make_error(core::errc::unavailable, "the gateway has not joined its fleet yet"));
          });
        });
      };
    if (fleet_ && fleet_->demo)
      n.kill_worker_of = [this](const core::job_id& id) {
        if (auto* const far = joined_.load()) far->kill_worker_of(id);
      };
    return n;
  }

  void loaded(const core::result<>& r) {
    if (!r) {
      exit_ = fail(r.error());
      return io_.stop();
    }
    if (const auto ok = fleet_ ? join_fleet() : core::result<>(); !ok) {
      exit_ = fail(ok.error());
      return io_.stop();
    }
    if (!runs_elsewhere()) show_memory(service_.stats().memory);
    const auto for_clients =
        clients_limit(process_limit(settings_.max_memory), net::resident_bytes(), settings_.max_memory != 0);
    if (!for_clients) {
      exit_ = fail(for_clients.error());
      return io_.stop();
    }
    service_.memory()->set_limit(*for_clients);
    return_memory();
    for (const auto& device : devices_)
      if (device.starts_with("cuda:")) watched_.push_back({device, {}});
    if (!watched_.empty()) watch_devices();
    spdlog::info("clients may make the process hold {}", core::size_text(*for_clients));
    say_ready();
  }

  void say_ready() {
    const auto models = service_.models();
    std::string names;
    const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ",") + name; };
    for (const auto& spec : runs_elsewhere() ? fleet_->models : std::vector<actors::model_spec>())
      add(spec.name);
    for (const auto& m : models) {
      if (!runs_elsewhere()) add(m.name);
      for (const auto& note : m.notes) spdlog::info("{}: {}", m.name, core::one_line(note));
      if (!m.no_messages.empty()) spdlog::warn("{}: {}", m.name, m.no_messages);
    }
    std::printf("weir ready http://%s:%u model=%s device=%s\n", url_host(server_.host()).c_str(),
                server_.port(), names.c_str(), runs_elsewhere() ? "fleet" : models.front().device.c_str());
    std::fflush(stdout);
  }

  // Whether the service loads no model, and those of workers are its models.
  bool runs_elsewhere() const noexcept { return fleet_ && !fleet_->worker; }

  core::result<> join_fleet() {
    auto models = runs_elsewhere() ? models_of_workers() : core::result<far_models>(own_models());
    if (!models) return models.error();
    bus_ = std::move(fleet_->bus);
    bus_->watch(io_.get_executor(), [this](actors::bus::link now) {
      if (now == actors::bus::link::closed) lost_fleet();
    });
    if (fleet_->worker) {
      worker_.emplace(*bus_, service_, clock_, *fleet_->worker);
      if (const auto begun = worker_->start(); !begun) return begun;
      fleet_->options.own_worker = worker_->name();
    }
    if (fleet_->fetch) fleet_->options.fetch = far_options_;
    fleet_->options.on_fetched = [](const std::string& model) {
      spdlog::info("{}: its tokenizer, template and configuration came from a worker", core::one_line(model));
    };
    far_.emplace(*bus_, service_, clock_, std::move(*models), fleet_->options);
    const auto begun = far_->start();
    if (begun) joined_ = &*far_;
    return begun;
  }
  using far_models = std::vector<actors::fleet::far_model>;
  core::result<far_models> models_of_workers() const {
    const auto doors = service_.doors();
    far_models out;
    for (const auto& spec : fleet_->models) {
      auto m = actors::fleet::open_far_model(spec, far_options_, doors.lasting, doors.compiled);
      if (!m) return m.error();
      out.push_back(std::move(*m));
    }
    return out;
  }
  // Workers that have the same models run jobs of these.
  far_models own_models() const {
    far_models out;
    const auto all = service_.doors().list.models();
    for (const auto& m : *all) out.push_back(actors::fleet::far_copy(*m));
    return out;
  }
  // A server with models of its own goes on with these.
  void lost_fleet() {
    const auto why =
        core::make_error(core::errc::unavailable, "the servers of --join no longer take this process");
    if (!runs_elsewhere()) return spdlog::error("{}; it goes on alone", why.message);
    exit_ = fail(why);
    io_.stop();
  }

  void return_memory() {
    returner_.tick();
    memory_timer_.expires_after(net::memory_returner::every);
    memory_timer_.async_wait([this](boost::system::error_code ec) {
      if (!ec) return_memory();
    });
  }

  // The keys are read again on SIGHUP, and when their file has changed.
  void watch_keys() {
    hang_up_.add(SIGHUP);
    wait_for_hang_up();
    poll_keys();
  }
  void wait_for_hang_up() {
    hang_up_.async_wait([this](boost::system::error_code ec, int) {
      if (ec) return;
      key_trouble_.clear();
      read_keys_again();
      wait_for_hang_up();
    });
  }
  void poll_keys() {
    key_timer_.expires_after(net::key_file::poll_every);
    key_timer_.async_wait([this](boost::system::error_code ec) {
      if (ec) return;
      if (keys_.has_changed(std::chrono::steady_clock::now())) read_keys_again();
      poll_keys();
    });
  }
  void read_keys_again() {
    core::contained(service_.seen(), "reading the keys again", [this] {
      server_.set_keys_stale(true);
      const auto keys = keys_.read();
      if (!keys) return say_keys_stay(keys.error().message);
      key_trouble_.clear();
      const auto d = server_.set_keys(*keys);
      spdlog::info("--api-key-file {}: {} keys; {} new, {} removed, {} changed", keys_.name(), keys->size(),
                   d.added, d.removed, d.changed);
    });
  }

  // Says a reason once, however often the file is tried again.
  void say_keys_stay(const std::string& why) {
    if (why != key_trouble_) spdlog::error("{}; the keys stay as they were", why);
    key_trouble_ = why;
  }

  void watch_devices() {
    for (auto& [device, watch] : watched_)
      if (const auto line = watch.tick(kernels::cuda_state(std::atoi(device.c_str() + 5))))
        spdlog::log(line->slower ? spdlog::level::warn : spdlog::level::info, "{}: {}", device, line->text);
    watch_timer_.expires_after(actors::device_watch::every);
    watch_timer_.async_wait([this](boost::system::error_code ec) {
      if (!ec) watch_devices();
    });
  }

  void wait_for_signal() {
    signals_.async_wait([this](boost::system::error_code ec, int number) {
      if (!ec) on_signal(number);
    });
  }

  // The first signal drains the server; the second one stops it at once.
  void on_signal(int number) {
    if (std::exchange(draining_, true)) {
      spdlog::warn("stopping at once");
      exit_ = number == SIGINT ? exit_code::interrupted : exit_code::done;
      return cut_short();
    }
    spdlog::info("draining: no new jobs; running ones have {} s", settings_.drain.count());
    wait_for_signal();
    server_.drain([this] { one_is_drained(); });
    if (worker_) worker_->drain(settings_.drain, io_.get_executor(), [this] { one_is_drained(); });
    timer_.expires_after(settings_.drain);
    timer_.async_wait([this](boost::system::error_code ec) {
      if (ec) return;
      spdlog::warn("jobs still run after {} s: stopping", settings_.drain.count());
      cut_short();
    });
  }

  // The server has no job left, or its worker's jobs of other gateways are gone.
  void one_is_drained() {
    if (++drained_ == (worker_ ? 2 : 1)) io_.stop();
  }

  // A gateway leaves what other gateways can go on with to its workers.
  void cut_short() {
    if (!joined_) return cancel_the_rest();
    far_->hand_over(hand_over_within, io_.get_executor(), [this](std::uint32_t left) {
      if (left > 0) spdlog::info("{} jobs go on in their workers, and are resumed at other gateways", left);
      cancel_the_rest();
    });
  }

  // Cancels the running jobs, so that every client is told how its job ended, and stops after `last_words`,
  // also if a client has not read its last frames.
  void cancel_the_rest() {
    service_.cancel_all();
    timer_.expires_after(last_words);
    timer_.async_wait([this](boost::system::error_code ec) {
      if (!ec) io_.stop();
    });
  }

  struct watched {
    std::string device;
    actors::device_watch watch;
  };
  const std::vector<std::string> devices_;
  std::vector<watched> watched_;
  std::optional<fleet_part> fleet_;
  const actors::owner_options far_options_;
  actors::system_time clock_;
  boost::asio::io_context io_{1};
  net::shards shards_;  // must outlive the service, whose streams post to them
  actors::service service_;
  // Answers to the gateway's questions are posted to a thread that lives as long as the service.
  std::unique_ptr<actors::bus> bus_;
  std::optional<actors::fleet::worker_side> worker_;
  std::optional<actors::fleet::gateway_side> far_;
  std::atomic<actors::fleet::gateway_side*> joined_{nullptr};  // far_, once it has begun
  net::server server_;
  boost::asio::signal_set signals_, hang_up_;
  boost::asio::steady_timer timer_, memory_timer_, key_timer_, watch_timer_;
  net::key_file keys_;
  std::string key_trouble_;  // why the keys could not be read, as it was last said; empty: they were
  net::memory_returner returner_;
  const core::server_settings& settings_;
  bool draining_ = false;
  int drained_ = 0;  // of the server and its worker
  int exit_ = exit_code::done;
};

}  // namespace

int fail(const core::error& e) {
  std::cerr << core::visible(e.message) << '\n';
  return exit_of(e);
}

core::result<server_parts> server_parts_of(const core::server_settings& s) {
  net::key_file source(s.api_key_file);
  core::result<std::vector<net::api_key>> keys = std::vector<net::api_key>();
  if (source.is_named()) keys = source.read();
  if (!keys) return keys.error();
  auto secret = read_token_secret(s.token_secret_file);
  if (!secret) return secret.error();
  auto origins = net::parse_origins(s.allow_origin);
  if (!origins) return origins.error();
  net::server_options at{s, std::move(*keys), std::move(*secret), {s.clients}};
  at.allow_origin = std::move(*origins);
  at.on_request = [log = std::make_shared<request_log>()](const net::request_record& r) { log->write(r); };
  if (std::ranges::find(at.allow_origin, net::no_origin) != at.allow_origin.end())
    spdlog::warn(
        "--allow-origin null: pages from files may use the server, and so may any site from a sandboxed "
        "frame");
  if (net::open_to_anyone(at))
    spdlog::warn("--listen {} without --api-key-file: anyone who can reach this address can use the server",
                 at.listen);
  if (net::metrics_open_to_anyone(at))
    spdlog::warn("--metrics-listen {}: anyone who can reach this address can read the metrics",
                 at.metrics_listen);
  return server_parts{std::move(source), std::move(at)};
}

core::result<> set_server_settings(actors::service_options& o, const core::server_settings& s) {
  auto presets = net::read_presets(s.preset);
  if (!presets) return presets.error();
  o.drain = s.drain;
  o.presets = std::move(*presets);
  o.share_prefixes = s.share_prefixes;
  o.seen = std::make_shared<core::incidents>([](std::string_view line) { spdlog::error("{}", line); });
  return {};
}

int serve_until_signal(const core::server_settings& s, actors::service_options service, server_parts parts,
                       std::optional<fleet_part> fleet) {
  return serving(s, std::move(service), std::move(parts.options), std::move(parts.key_source),
                 std::move(fleet))
      .run();
}

}  // namespace weir::apps
