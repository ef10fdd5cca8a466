// Models that come, run and leave beside others on one device change no bit of anybody's output.
#include <map>

#include "tests/actors/service_fixture.h"
#include "tests/support/budget.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::models_beside_test {

namespace {

constexpr std::int64_t tokens = 60;

std::function<void(actors::service_options&)> on_cpu(const std::string& model) {
  return [model](actors::service_options& o) {
    o.models = {{"a", model, false}};
    o.owner.device = "cpu";
    o.owner.threads = 2;
    o.owner.kv_tokens = 8192;
    o.owner.max_batch = 8;
  };
}

actors::request question(const std::string& model, std::uint64_t seed) {
  auto r = ask("question " + std::to_string(seed), tokens, seed);
  r.model = model;
  r.sampling.temperature = 0.9;
  r.ignore_eos = true;
  return r;
}

// A service in which orders are carried out.
struct house : service_fixture {
  explicit house(const std::string& model) : service_fixture("", on_cpu(model)) { load(); }
  void carry_out(const std::function<void(actors::order_replies)>& order) {
    bool over = false, well = false;
    order({[&](actors::order_replies::answer a) { over = a.has_error(); },
           [&](actors::order_replies::answer a) {
             over = true;
             well = a.has_value();
           }});
    run_until([&] { return over; });
    REQUIRE(well);
  }
  void bring(const std::string& name, const std::string& source) {
    carry_out([&](actors::order_replies to) {
      service->load_model({{name, source}, {}, 4096}, io.get_executor(), std::move(to));
    });
  }
  void send_away(const std::string& name) {
    carry_out([&](actors::order_replies to) {
      service->unload_model({name, {}, true}, io.get_executor(), std::move(to));
    });
  }
};

}  // namespace

TEST_CASE("models beside: outputs are bit for bit those of a model that is alone, under loads and unloads") {
  const temporary_dir first, second, third;
  write_toy_directory(first.path(), {.seed = 1});
  write_toy_directory(second.path(), {.seed = 2});
  write_toy_directory(third.path(), {.seed = 3});
  const std::uint64_t jobs = 6;
  std::map<std::pair<std::string, std::uint64_t>, std::string> alone;
  for (const auto& [name, dir] : {std::pair("a", &first), std::pair("b", &second)}) {
    house h(dir->path().string());
    for (std::uint64_t seed = 0; seed < jobs; ++seed) {
      const auto s = h.submit(question("a", seed));
      h.run_to_end(s);
      REQUIRE(s->state() == phase::done);
      alone[{name, seed}] = text_of(*s);
    }
  }
  CHECK(alone[{"a", 0}] != alone[{"b", 0}]);

  house h(first.path().string());
  for (unsigned round = 0; round < rounds(3); ++round) {
    std::map<std::pair<std::string, std::uint64_t>, std::shared_ptr<job_stream>> running;
    const auto begin = [&](const std::string& name) {
      for (std::uint64_t seed = 0; seed < jobs; ++seed)
        running[{name, seed}] = h.submit(question(name, seed));
    };
    begin("a");
    h.bring("b", second.path().string());
    begin("b");
    h.bring("c", third.path().string());  // comes and goes meanwhile
    h.send_away("c");
    h.send_away("b");
    for (const auto& [of, s] : running) {
      h.run_to_end(s);
      CAPTURE(of.first, of.second);
      REQUIRE(s->state() == phase::done);
      CHECK(s->ended().reason == core::finish_reason::length);
      CHECK(text_of(*s) == alone[of]);
    }
  }
}

}  // namespace weir::tests::models_beside_test
