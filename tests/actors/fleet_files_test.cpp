// A gateway without any file of a model gets them from workers, whatever befalls these and the bus.
#include <catch2/catch.hpp>

#include "actors/fleet/sha256.h"
#include "actors/fleet/text_files.h"
#include "core/fleet/file_frame.h"
#include "core/fleet/subjects.h"
#include "tests/actors/fleet_town.h"
#include "tests/support/seed.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::fleet_files_test {
namespace {

namespace wire = core::fleet;
using std::chrono::seconds;

// Workers with real files, on a bus whose messages are short, so that these take many.
struct files_town : fleet_town {
  explicit files_town(std::uint64_t seed, net_manners how = {}) : fleet_town(seed, "rate=50", how) {
    write_toy_directory(dir.path());
    write_file(dir.path() / "chat_template.jinja",
               "{#" + std::string(20'000, '-') + "#}{{ messages[0].content }}");
  }
  // A bus that is so slow that a model takes seconds.
  static net_manners slow() {
    return {.least = std::chrono::milliseconds(50), .most = std::chrono::milliseconds(90)};
  }

  worker& add_toys(const std::string& name = "toy", const std::filesystem::path& from = {},
                   bool gives_files = true) {
    worker& w = workers.emplace_back();
    w.bus = net->join();
    w.bus->longest = 1024;
    actors::service_options s;
    s.models.push_back({name, (from.empty() ? dir.path() : from).string()});
    s.owner.device = "reference";
    s.owner.kv_tokens = 4096;
    s.owner.max_batch = 4;
    s.owner.joins_fleet = gives_files;
    w.service = here.make_service(std::move(s));
    fleet::worker_options o;
    o.where = here.get_executor();
    o.name = this->name();
    w.side = std::make_unique<fleet::worker_side>(*w.bus, *w.service, here, std::move(o));
    REQUIRE(w.side->start().has_value());
    return w;
  }
  gateway& add_empty_gateway() {
    actors::service_options s;
    s.owner.device = "sim";
    s.seen = std::make_shared<core::incidents>([to = log](std::string_view line) {
      *to += line;
      *to += '\n';
    });
    gateway& g = gateways.emplace_back();
    g.bus = net->join();
    fleet::gateway_options o;
    o.fetch = s.owner;
    o.on_fetched = [to = log](const std::string& model) { *to += "came: " + model + '\n'; };
    o.where = here.get_executor();
    o.name = name();
    g.service = here.make_service(std::move(s));
    g.side = std::make_unique<fleet::gateway_side>(*g.bus, *g.service, here, std::vector<fleet::far_model>(),
                                                   std::move(o));
    REQUIRE(g.side->start().has_value());
    return g;
  }
  static bool has(const gateway& g, const std::string& model = "toy") {
    return g.service->doors().list.find(model).has_value();
  }
  bool comes(const gateway& g, core::duration within = std::chrono::minutes(5),
             const std::string& model = "toy") {
    return here.run([&] { return has(g, model); }, within);
  }
  std::uint64_t pieces() const {
    std::uint64_t all = 0;
    for (const auto& w : workers) all += w.side->counts().file_pieces;
    return all;
  }
  std::string text_at(actors::service& s, const std::string& model = "toy") {
    auto r = ask("a question to nobody", 24, 5);
    r.model = model;
    const auto stream = s.submit(std::move(r), here.get_executor(), [] {});
    REQUIRE(here.run([&] { return over(stream); }, seconds(60)));
    if (stream->state() == phase::refused) FAIL(stream->refusal().message);
    CHECK(stream->log().size() > 0);
    return text_of(*stream);
  }
  // A worker of whom only its board is there, and what `says` answers to questions for files.
  void add_liar(const std::string& name, const std::string& digest,
                std::function<std::optional<std::string>(const wire::file_wish&)> says) {
    liars.push_back(net->join());
    auto& bus = *liars.back();
    ears.push_back(std::move(*bus.subscribe(wire::subjects("main").control_of(name), here.get_executor(),
                                            [&bus, says = std::move(says)](actors::bus::message m) {
                                              const auto w = wire::read_file_wish(m.bytes);
                                              if (!w || m.answer_to.empty()) return;
                                              if (const auto answer = says(*w))
                                                bus.publish(m.answer_to, *answer);
                                            })));
    wire::fleet_board b;
    b.worker = name;
    b.models.push_back({.name = "toy", .files = digest});
    ears.push_back(std::move(*bus.subscribe(
        wire::subjects("main").hello(), here.get_executor(), [&bus, b](const actors::bus::message&) {
          bus.publish(wire::subjects("main").board_of(b.worker), wire::json_of(b));
        })));
    say_board(b, 1);
  }
  void say_board(wire::fleet_board b, std::uint64_t number) {
    b.number = number;
    liars.front()->publish(wire::subjects("main").board_of(b.worker), wire::json_of(b));
    here.after(std::chrono::milliseconds(250), [this, b, number, lives = std::weak_ptr<int>(alive)] {
      if (!lives.expired()) say_board(b, number + 1);
    });
  }

  temporary_dir dir;
  const std::shared_ptr<std::string> log = std::make_shared<std::string>();  // of gateways
  std::deque<std::unique_ptr<loop_net::endpoint>> liars;
  std::vector<std::unique_ptr<actors::bus::subscription>> ears;
  const std::shared_ptr<int> alive = std::make_shared<int>();  // this, while the world may still run
};

}  // namespace

TEST_CASE("fleet files: a gateway without a model serves what a worker has, in the same words") {
  files_town t(drawn_seed(301));
  auto& g = t.add_empty_gateway();
  t.wait(seconds(1));
  CHECK(!files_town::has(g));
  auto& w = t.add_toys();
  REQUIRE(t.comes(g));
  CHECK(t.text_at(*g.service) == t.text_at(*w.service));
  t.wait(seconds(1));
  CHECK(g.side->counts().fetched == 1);
  CHECK(g.side->counts().fetch_failures == 0);
  CHECK(*t.log == "came: toy\n");
  CHECK(w.side->counts().file_pieces > 20);
  const auto before = t.pieces();
  t.add_toys();  // has the same digest: nothing is asked of it
  t.wait(seconds(5));
  CHECK(t.pieces() == before);
  CHECK(w.side->counts().broken == 0);
}

TEST_CASE("fleet files: a second model comes after the first, and a sim is made of its name") {
  files_town t(drawn_seed(302));
  t.add_toys("one");
  t.add_toys("two");
  t.add_worker();
  auto& g = t.add_empty_gateway();
  for (const char* name : {"one", "two", "sim"}) REQUIRE(t.comes(g, seconds(60), name));
  CHECK(t.text_at(*g.service, "one") == t.text_at(*t.workers[0].service, "one"));
  CHECK(t.text_at(*g.service, "sim") == sim_text(5, 24));
  t.wait(seconds(1));
  CHECK(g.side->counts().fetched == 3);
}

TEST_CASE("fleet files: lost and doubled messages delay a model, and do not change it") {
  files_town t(drawn_seed(303), {.loss = 0.05, .twice = 0.05});
  auto& w = t.add_toys();
  auto& g = t.add_empty_gateway();
  REQUIRE(t.comes(g, std::chrono::minutes(20)));
  t.net->how.loss = 0;
  t.wait(seconds(3));
  CHECK(t.text_at(*g.service) == t.text_at(*w.service));
}

TEST_CASE("fleet files: a worker that dies in the middle leaves the rest to the next one of its digest") {
  files_town t(drawn_seed(304), files_town::slow());
  t.add_toys();
  t.add_toys();
  auto& g = t.add_empty_gateway();
  REQUIRE(t.here.run([&] { return t.pieces() >= 5; }, seconds(30)));
  REQUIRE(!files_town::has(g));
  auto& dies = t.workers[0].side->counts().file_pieces > 0 ? t.workers[0] : t.workers[1];
  auto& lives = &dies == &t.workers[0] ? t.workers[1] : t.workers[0];
  dies.bus->kill();
  REQUIRE(t.comes(g, seconds(60)));
  t.wait(seconds(1));
  CHECK(lives.side->counts().file_pieces > 0);
  CHECK(t.text_at(*g.service) == t.text_at(*lives.service));
  t.wait(seconds(1));
  CHECK(g.side->counts().fetch_failures == 0);
}

TEST_CASE("fleet files: the only worker dies in the middle, and the model comes with the next one") {
  files_town t(drawn_seed(305), files_town::slow());
  auto& first = t.add_toys();
  auto& g = t.add_empty_gateway();
  REQUIRE(t.here.run([&] { return t.pieces() >= 5; }, seconds(30)));
  first.bus->kill();
  t.wait(seconds(10));
  CHECK(!files_town::has(g));
  CHECK(g.side->counts().fetch_failures >= 1);
  t.add_toys();
  REQUIRE(t.comes(g, seconds(120)));
}

TEST_CASE("fleet files: wrong bytes are refused, and another worker is asked") {
  for (const bool of_list : {false, true}) {
    files_town t(drawn_seed(306));
    const auto files = *fleet::text_files::open(t.dir.path().string());
    unsigned asked = 0;
    t.add_liar("aaaaaaaaaaaaaaaa", wire::digest_text(files->digest()), [&](const wire::file_wish& w) {
      ++asked;
      auto bytes = files->read(w.file, w.at, 700);
      if (bytes && (w.file == 0) == of_list) bytes->assign(bytes->size(), 'x');
      return std::optional(
          wire::frame_of(wire::file_part{w.digest, w.file, w.at, bytes.has_value(), bytes.value_or("")}));
    });
    auto& w = t.add_toys();
    auto& g = t.add_empty_gateway();
    REQUIRE(t.comes(g, seconds(60)));
    CHECK(asked > 0);
    CHECK(t.text_at(*g.service) == t.text_at(*w.service));
    t.wait(seconds(1));
    CHECK(g.side->counts().fetched == 1);
  }
}

TEST_CASE("fleet files: a worker that never answers, says noise or promises too much gives no model") {
  for (int kind = 0; kind < 3; ++kind) {
    files_town t(drawn_seed(307));
    wire::file_list much;
    much.files = {{"config.json", wire::most_file_bytes + 1, 0, {}}};
    const auto list = wire::bytes_of(much);
    t.add_liar("aaaaaaaaaaaaaaaa", wire::digest_text(fleet::sha256_of(list)),
               [&, kind](const wire::file_wish& w) -> std::optional<std::string> {
                 if (kind == 0) return std::nullopt;
                 if (kind == 1) return "noise";
                 return wire::frame_of(wire::file_part{w.digest, w.file, w.at, true, list.substr(w.at)});
               });
    auto& g = t.add_empty_gateway();
    t.wait(seconds(20));
    CHECK(!files_town::has(g));
    CHECK(g.side->counts().fetch_failures == 1);
    if (kind == 1) CHECK(g.side->counts().broken == 3);
    if (kind == 2) CHECK(t.log->find("64 MiB") != std::string::npos);
    CHECK(t.log->find("toy") != std::string::npos);
    t.add_toys();  // its digest is another one, which as many workers have
    t.add_toys();
    REQUIRE(t.comes(g, seconds(120)));
  }
}

TEST_CASE("fleet files: of two digests under one name a gateway keeps the first, and says so") {
  files_town t(drawn_seed(308));
  auto& a = t.add_toys();
  auto& g = t.add_empty_gateway();
  REQUIRE(t.comes(g));
  const temporary_dir other;
  write_toy_directory(other.path());
  write_file(other.path() / "chat_template.jinja", "{{ messages[0].content }}");  // the same tokens
  auto& b = t.add_toys("toy", other.path());
  t.add_toys("toy", other.path());
  t.wait(seconds(2));
  CHECK(t.log->find("other files") != std::string::npos);
  for (int i = 0; i < 8; ++i) t.text_at(*g.service);
  t.wait(seconds(1));
  CHECK(a.side->counts().taken == 8);
  CHECK(b.side->counts().taken == 0);
  CHECK(g.side->counts().fetched == 1);
  a.bus->kill();
  t.wait(seconds(5));
  CHECK(!files_town::has(g));  // nobody has the files that it has opened
  auto& fresh = t.add_empty_gateway();
  REQUIRE(t.comes(fresh));
  CHECK(t.text_at(*fresh.service) == t.text_at(*b.service));
}

TEST_CASE("fleet files: a worker that gives no files runs jobs where its tokens are the same") {
  files_town t(drawn_seed(310));
  auto& earlier = t.add_toys("toy", {}, false);  // as one of an earlier build
  auto& g = t.add_empty_gateway();
  t.wait(seconds(5));
  CHECK(!files_town::has(g));
  auto& giver = t.add_toys();
  REQUIRE(t.comes(g));
  giver.bus->kill();
  t.wait(seconds(5));
  CHECK(t.text_at(*g.service) == t.text_at(*earlier.service));
  t.wait(seconds(1));
  CHECK(earlier.side->counts().taken == 1);
}

TEST_CASE("fleet files: a worker tells nothing of other digests, of other files or beyond their ends") {
  files_town t(drawn_seed(309));
  auto& w = t.add_toys();
  const auto files = *fleet::text_files::open(t.dir.path().string());
  const auto stranger = t.net->join();
  const auto asked = [&](const wire::file_wish& wish) {
    std::optional<std::optional<wire::file_part>> said;
    stranger->ask(wire::subjects("main").control_of(w.side->name()), wire::frame_of(wish), seconds(1),
                  t.here.get_executor(),
                  [&](actors::bus::answer a) { said = wire::read_file_part(a.bytes); });
    REQUIRE(t.here.run([&] { return said.has_value(); }, seconds(5)));
    REQUIRE(said->has_value());
    return **said;
  };
  CHECK(asked({files->digest(), 0, 0}).there);
  CHECK(!asked({{}, 0, 0}).there);
  const auto last = static_cast<std::uint32_t>(files->list().files.size());
  CHECK(asked({files->digest(), last, 0}).there);
  CHECK(!asked({files->digest(), last + 1, 0}).there);
  CHECK(!asked({files->digest(), UINT32_MAX, UINT64_MAX}).there);
  CHECK(!asked({files->digest(), last, files->list().files.back().size + 1}).there);
  CHECK(asked({files->digest(), last, files->list().files.back().size}).bytes.empty());
  t.wait(seconds(1));
  CHECK(w.side->counts().broken == 0);
}

}  // namespace weir::tests::fleet_files_test
