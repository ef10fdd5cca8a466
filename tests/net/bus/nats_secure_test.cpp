// A bus over a server that runs with docs/fleet/nats-server.conf: certificates, keys, and what a role may do.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "net/bus/nkey.h"
#include "tests/net/bus/bus_hall.h"
#include "tests/net/bus/certificates.h"
#include "tests/support/source_dir.h"

namespace weir::tests::nats_secure_test {

using bus = actors::bus;
using how = enum bus::answer::how;

net::nkey key_of(unsigned char n) {
  net::nkey::seed_bytes bytes;
  bytes.fill(n);
  return net::nkey(bytes);
}

struct secured {
  secured()
      : server({{"-c", (source_dir() / "docs/fleet/nats-server.conf").string()},
                {{"WEIR_NATS_LISTEN", "127.0.0.1:-1"},
                 {"WEIR_NATS_CERT", pair.certificate()},
                 {"WEIR_NATS_KEY", pair.key()},
                 {"WEIR_NATS_CA", pair.authority()},
                 {"WEIR_WORKER_KEY", *key_of(1).public_text()},
                 {"WEIR_GATEWAY_KEY", *key_of(2).public_text()},
                 {"WEIR_WATCHER_KEY", *key_of(3).public_text()},
                 {"WEIR_OPERATOR_KEY", *key_of(5).public_text()},
                 {"WEIR_MEMBER_KEY", *key_of(6).public_text()}},
                true}) {}

  core::join_settings settings(unsigned char role) {
    core::join_settings s;
    s.join = "tls://localhost:" + std::to_string(server.port());
    s.join_ca = pair.authority();
    s.join_cert = pair.certificate();
    s.join_key = pair.key();
    s.join_nkey = pair.file(("seed" + std::to_string(role)).c_str());
    std::ofstream(s.join_nkey) << key_of(role).seed_text() << '\n';
    return s;
  }

  certificates pair;
  nats_server server;
};

enum role : unsigned char { worker = 1, gateway = 2, watcher = 3, stranger = 4, overseer = 5, member = 6 };

TEST_CASE("nats: with the sample configuration, each role says and hears what it needs") {
  if (!can_run_nats()) return;
  secured at;
  bus_hall hall;
  const auto w = hall.join(at.settings(worker)), g = hall.join(at.settings(gateway)),
             f = hall.join(at.settings(watcher)), v = hall.join(at.settings(overseer)),
             m = hall.join(at.settings(member));
  std::vector<std::string> heard;
  const auto note = [&](const char* who) {
    return [&heard, who](const bus::message& m) { heard.push_back(who + (" " + m.subject)); };
  };
  const auto jobs = hall.hear(*w, "weir.1.main.o.w.job",
                              [&](const bus::message& m) { CHECK(w->publish(m.answer_to, "taken")); });
  const auto orders = hall.hear(*w, "weir.1.main.o.w.ctl", note("worker"));
  const auto pulses = hall.hear(*w, "weir.1.main.pulse.*", note("worker"));
  const auto finds = hall.hear(*w, "weir.1.main.find", note("worker"));
  const auto hello = hall.hear(*w, "weir.1.main.hello", note("worker"));
  const auto tokens = hall.hear(*g, "weir.1.main.g.g.tok", note("gateway"));
  const auto answers = hall.hear(*g, "weir.1.main.g.g.ctl", note("gateway"));
  const auto boards = hall.hear(*g, "weir.1.main.board.*", note("gateway"));
  const auto seen = hall.hear(*f, "weir.1.main.board.*", note("watcher"));
  // What is worker and gateway at once says and hears what both do.
  std::vector<std::unique_ptr<bus::subscription>> of_member;
  for (const char* subject : {"weir.1.main.o.m.ctl", "weir.1.main.pulse.*", "weir.1.main.find",
                              "weir.1.main.hello", "weir.1.main.g.m.tok", "weir.1.main.board.*"})
    of_member.push_back(hall.hear(*m, subject, note("member")));
  hall.until([&] { return hall.ask(*m, "weir.1.main.o.w.job", "a job").bytes == "taken"; });
  hall.until([&] { return hall.ask(*g, "weir.1.main.o.w.job", "a job").bytes == "taken"; });
  // Said again until each has heard it: subscriptions of other connections may be under way.
  const auto says = [&](bus& from, const char* subject, const std::vector<std::string>& who) {
    hall.until([&] {
      from.publish(subject, "x");
      hall.drain();
      return std::ranges::all_of(who, [&](const std::string& one) {
        return std::ranges::find(heard, one + " " + subject) != heard.end();
      });
    });
  };
  says(*w, "weir.1.main.board.w", {"gateway", "watcher"});
  says(*w, "weir.1.main.g.g.tok", {"gateway"});
  says(*w, "weir.1.main.g.g.ctl", {"gateway"});
  says(*g, "weir.1.main.o.w.ctl", {"worker"});
  says(*g, "weir.1.main.pulse.g", {"worker"});
  says(*g, "weir.1.main.find", {"worker"});
  says(*g, "weir.1.main.hello", {"worker"});
  says(*f, "weir.1.main.hello", {"worker"});
  says(*v, "weir.1.main.o.w.ctl", {"worker"});
  says(*w, "weir.1.main.g.m.tok", {"member"});
  says(*w, "weir.1.main.board.w", {"member"});
  says(*g, "weir.1.main.o.m.ctl", {"member"});
  says(*g, "weir.1.main.pulse.g", {"member"});
  says(*m, "weir.1.main.board.m", {"gateway", "watcher", "member"});
  says(*m, "weir.1.main.g.g.tok", {"gateway"});
  says(*m, "weir.1.main.pulse.m", {"worker"});
  says(*m, "weir.1.main.find", {"worker"});
  says(*m, "weir.1.main.hello", {"worker"});
  INFO(hall.troubles());
  CHECK(hall.troubles().find("ermission") == std::string::npos);
}

TEST_CASE("nats: with the sample configuration, what is another role's is refused, and the link stays") {
  if (!can_run_nats()) return;
  secured at;
  bus_hall hall;
  const auto w = hall.join(at.settings(worker)), g = hall.join(at.settings(gateway)),
             f = hall.join(at.settings(watcher)), v = hall.join(at.settings(overseer));
  int heard = 0;
  const auto count = [&](const bus::message&) { ++heard; };
  std::vector<std::unique_ptr<bus::subscription>> all;
  all.push_back(hall.hear(*w, "weir.1.main.o.w.ctl", count));
  all.push_back(hall.hear(*g, "weir.1.main.g.g.tok", count));
  all.push_back(hall.hear(*g, "weir.1.main.board.*", count));
  for (const char* subject : {"weir.1.main.board.*", "weir.1.main.g.*.tok", "weir.1.main.>", ">"})
    all.push_back(hall.hear(*w, subject, count));  // a worker reads no answers of others
  for (const char* subject : {"weir.1.main.o.*.job", ">"}) all.push_back(hall.hear(*g, subject, count));
  for (auto* from : {f.get(), v.get()})
    for (const char* subject : {"weir.1.main.o.*.job", "weir.1.main.g.*.tok", ">"})
      all.push_back(hall.hear(*from, subject, count));
  const std::pair<bus*, const char*> refused[] = {
      {w.get(), "weir.1.main.o.w.ctl"}, {g.get(), "weir.1.main.g.g.tok"}, {g.get(), "weir.1.main.board.x"},
      {f.get(), "weir.1.main.board.x"}, {f.get(), "weir.1.main.o.w.ctl"}, {w.get(), "elsewhere"},
      {v.get(), "weir.1.main.o.w.job"}, {v.get(), "weir.1.main.board.x"}, {w.get(), "weir.1.main.find"},
      {f.get(), "weir.1.main.find"},    {v.get(), "weir.1.main.find"}};
  for (const auto& [from, subject] : refused) from->publish(subject, "x");
  const auto refusals = [&] {
    const auto text = hall.troubles();
    std::size_t n = 0;
    for (auto i = text.find("ermissions Violation"); i != text.npos;
         i = text.find("ermissions Violation", i + 1))
      ++n;
    return n;
  };
  hall.until([&] { return refusals() >= 12 + std::size(refused); });
  hall.drain();
  CHECK(heard == 0);
  for (const auto* b : {w.get(), g.get(), f.get(), v.get()}) CHECK(b->state() == bus::link::up);
}

TEST_CASE("nats: who has no key, another key, no certificate or another authority's is refused by name") {
  if (!can_run_nats()) return;
  secured at;
  bus_hall hall;
  const auto why = [&](const core::join_settings& s) {
    const auto b = net::join_nats(s, hall.hooks());
    return b ? std::string("joined") : b.error().message;
  };
  auto s = at.settings(worker);
  CHECK(why(s) == "joined");
  CHECK(why(at.settings(stranger)).find("uthorization") != std::string::npos);
  s.join_nkey.clear();
  CHECK(why(s).find("uthorization") != std::string::npos);
  s = at.settings(worker);
  s.join_cert.clear();
  s.join_key.clear();
  CHECK(why(s) != "joined");
  s = at.settings(worker);
  const certificates other;
  s.join_ca = other.authority();
  CHECK(why(s).find("certificate") != std::string::npos);
  s = at.settings(worker);
  s.join = "tls://127.0.0.1:" + std::to_string(at.server.port());  // the certificate is for localhost
  CHECK(why(s) != "joined");
  s = at.settings(worker);
  s.join_ca = s.join_nkey;
  CHECK(why(s).find("--join-ca") != std::string::npos);
  s = at.settings(worker);
  s.join_key = s.join_nkey;
  CHECK(why(s).find("--join-cert") != std::string::npos);
  s = at.settings(worker);
  s.join_nkey = at.pair.key();
  CHECK(why(s).find("--join-nkey") != std::string::npos);
}

TEST_CASE("nats: a connection without TLS is refused where the server asks for it") {
  if (!can_run_nats()) return;
  secured at;
  bus_hall hall;
  core::join_settings s;
  s.join = at.server.url();
  const auto b = net::join_nats(s, hall.hooks());
  REQUIRE(!b);
  CHECK(b.error().message.find("--join nats://127.0.0.1") != std::string::npos);
}

}  // namespace weir::tests::nats_secure_test
