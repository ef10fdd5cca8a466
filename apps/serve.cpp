#include <spdlog/spdlog.h>

#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <thread>

#include "apps/commands.h"
#include "apps/engine_options.h"
#include "apps/local_service.h"
#include "apps/memory_limit.h"
#include "apps/memory_returner.h"
#include "apps/options.h"
#include "apps/progress.h"
#include "net/api_keys.h"
#include "net/resident.h"
#include "net/server.h"

namespace weir::apps {
namespace {

struct serve_options {
  core::engine_settings engine;
  core::server_settings server;
};

core::result<std::vector<std::string>> read_keys(const std::string& file) {
  if (file.empty()) return std::vector<std::string>();
  std::ifstream in(file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in) return core::bad_param("api-key-file", "--api-key-file {}: cannot be read", file);
  return net::parse_api_keys(text, file);
}

std::string url_host(const std::string& host) {
  return host.find(':') == host.npos ? host : "[" + host + "]";
}

// How long clients have to take their last frames when the server ends before their jobs do.
constexpr std::chrono::milliseconds last_words{500};

// The life of a server: listen, load, say so, serve until a signal, drain, stop.
class serving {
 public:
  serving(const serve_options& o, actors::service_options s, net::server_options n,
          std::uint64_t memory_limit)
      : shards_(o.server.io_threads, s.seen),
        service_(std::move(s), clock_),
        server_(service_, shards_, std::move(n)),
        signals_(io_, SIGINT, SIGTERM),
        timer_(io_),
        memory_timer_(io_),
        drain_s_(o.server.drain_s),
        memory_limit_(memory_limit),
        memory_was_asked_for_(o.server.max_memory != "auto") {}

  int run() {
    if (auto ok = server_.start(); !ok) return fail(ok.error());
    wait_for_signal();
    service_.load(show_load_progress(), io_.get_executor(), [this](core::result<> r) { loaded(r); });
    io_.run();
    server_.stop();
    return exit_;
  }

 private:
  void loaded(const core::result<>& r) {
    if (!r) {
      exit_ = fail(r.error());
      return io_.stop();
    }
    show_memory(service_.stats().memory);
    const auto for_clients = clients_limit(memory_limit_, net::resident_bytes(), memory_was_asked_for_);
    if (!for_clients) {
      exit_ = fail(for_clients.error());
      return io_.stop();
    }
    service_.memory()->set_limit(*for_clients);
    return_memory();
    spdlog::info("clients may make the process hold {} MB", *for_clients >> 20);
    const auto models = service_.models();
    std::string names;
    for (const auto& m : models) names += (names.empty() ? "" : ",") + m.name;
    std::printf("weir ready http://%s:%u model=%s device=%s\n", url_host(server_.host()).c_str(),
                server_.port(), names.c_str(), models.front().device.c_str());
    std::fflush(stdout);
  }

  void return_memory() {
    returner_.tick();
    memory_timer_.expires_after(memory_returner::every);
    memory_timer_.async_wait([this](boost::system::error_code ec) {
      if (!ec) return_memory();
    });
  }

  void wait_for_signal() {
    signals_.async_wait([this](boost::system::error_code ec, int number) {
      if (!ec) on_signal(number);
    });
  }

  // The first one drains, a second one stops at once.
  void on_signal(int number) {
    if (std::exchange(draining_, true)) {
      spdlog::warn("stopping at once");
      exit_ = number == SIGINT ? exit_code::interrupted : exit_code::done;
      return cut_short();
    }
    spdlog::info("draining: no new jobs; running ones have {} s", drain_s_);
    wait_for_signal();
    server_.drain([this] { io_.stop(); });
    timer_.expires_after(std::chrono::seconds(drain_s_));
    timer_.async_wait([this](boost::system::error_code ec) {
      if (ec) return;
      spdlog::warn("jobs still run after {} s: stopping", drain_s_);
      cut_short();
    });
  }

  // What still runs is cancelled, so that every client hears how its job ended; those that do not listen are
  // left.
  void cut_short() {
    service_.cancel_all();
    timer_.expires_after(last_words);
    timer_.async_wait([this](boost::system::error_code ec) {
      if (!ec) io_.stop();
    });
  }


  static int fail(const core::error& e) {
    std::cerr << e.message << '\n';
    return exit_of(e);
  }

  actors::system_time clock_;
  boost::asio::io_context io_{1};
  net::shards shards_;  // outlive the service, whose streams post to them
  actors::service service_;
  net::server server_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_, memory_timer_;
  memory_returner returner_;
  const std::uint32_t drain_s_;
  const std::uint64_t memory_limit_;
  const bool memory_was_asked_for_;
  bool draining_ = false;
  int exit_ = exit_code::done;
};

net::server_limits limits_of(const core::server_settings& s) {
  using std::chrono::milliseconds;
  net::server_limits l;
  l.sockets_per_address = s.sockets_per_address;
  l.trusted.insert(l.trusted.end(), s.trusted_proxy.begin(), s.trusted_proxy.end());
  l.jobs = s.max_jobs;
  l.messages_per_s = s.messages_per_s;
  l.frames_per_s = s.frames_per_s;
  l.frame_bytes = s.max_frame;
  l.body_bytes = s.max_body;
  l.drained_bytes = 2 * l.body_bytes;
  l.header_bytes = s.max_header;
  l.json_depth = s.json_depth;
  l.json_values = s.json_values;
  l.handshake = milliseconds(s.handshake_ms);
  l.authenticate = milliseconds(s.auth_ms);
  l.write_time = milliseconds(s.write_ms);
  l.backlog_bytes = s.max_backlog;
  l.max_age = std::chrono::seconds(s.max_age_s);
  l.detach_grace = milliseconds(s.detach_grace_ms);
  return l;
}

int run(const serve_options& o) {
  auto service = service_options_of(o.engine, o.server.queue);
  auto keys = read_keys(o.server.api_key_file);
  const auto memory = process_limit(o.server.max_memory);
  for (const auto& e : {service.error(), keys.error(), memory.error()})
    if (!e.message.empty()) {
      std::cerr << e.message << '\n';
      return exit_of(e);
    }
  service->owner.queue_tokens = o.server.queue_tokens;
  service->owner.queue_wait = std::chrono::seconds(o.server.queue_wait_s);
  service->text.queue = o.server.text_queue;
  service->text.queue_bytes = o.server.text_queue_bytes;
  service->share_prefixes = o.server.share_prefixes;
  net::server_options n;
  n.listen = o.server.listen;
  n.allow_origin = o.server.allow_origin;
  n.api_keys = std::move(*keys);
  n.drain = std::chrono::seconds(o.server.drain_s);
  n.limits = limits_of(o.server);
  service->seen = std::make_shared<core::incidents>([](std::string_view line) { spdlog::error("{}", line); });
  return serving(o, std::move(*service), std::move(n), *memory).run();
}

}  // namespace

command add_serve(CLI::App& app) {
  auto o = std::make_shared<serve_options>();
  add_settings(app, o->server);
  add_settings(app, o->engine);
  refuse(app, {"retain-mb", "metrics-listen", "share"});
  add_common(app);
  return [o] { return run(*o); };
}

}  // namespace weir::apps
