// order_town.h — a sim_town whose models come, go, sleep and wake by order.
#pragma once

#include <optional>

#include "tests/actors/sim_town.h"

namespace weir::tests {

inline constexpr std::uint64_t one_mb = std::uint64_t{1} << 20;

// A simulated device with memory, on which models take what mb= and pages= say.
inline actors::planned_device sim_device(std::uint64_t total_mb) {
  actors::planned_device d;
  d.name = "sim";
  d.total = total_mb * one_mb;
  return d;
}

struct order_town : sim_town {
  using sim_town::sim_town;

  struct order {
    std::optional<actors::order_replies::answer> begun, done;
    bool over() const { return begun && (!*begun || done); }
  };
  using order_ptr = std::shared_ptr<order>;

  static actors::order_replies into(const order_ptr& o) {
    return {[o](actors::order_replies::answer a) { o->begun = std::move(a); },
            [o](actors::order_replies::answer a) { o->done = std::move(a); }};
  }
  // `source`: empty: where it was.
  order_ptr load(const std::string& name, const std::string& source = "",
                 std::vector<std::string> devices = {}, std::optional<std::uint64_t> kv_tokens = {}) {
    auto o = std::make_shared<order>();
    service->load_model({{name, source}, std::move(devices), kv_tokens}, here.get_executor(), into(o));
    return o;
  }
  order_ptr unload(const std::string& name, std::optional<std::chrono::nanoseconds> drain = {},
                   bool forget = false) {
    auto o = std::make_shared<order>();
    service->unload_model({name, drain, forget}, here.get_executor(), into(o));
    return o;
  }
  order_ptr swap(std::vector<std::string> out, const std::string& in, const std::string& source = "",
                 std::optional<std::chrono::nanoseconds> drain = {}) {
    auto o = std::make_shared<order>();
    service->swap_models({std::move(out), {{in, source}, {}, {}}, drain}, here.get_executor(), into(o));
    return o;
  }
  order_ptr sleep(const std::string& name,
                  std::optional<actors::sleep_level> level = actors::sleep_level::host,
                  std::optional<std::chrono::nanoseconds> drain = {}) {
    auto o = std::make_shared<order>();
    service->sleep_model({name, level, drain}, here.get_executor(), into(o));
    return o;
  }
  order_ptr wake(const std::string& name) {
    auto o = std::make_shared<order>();
    service->wake_model({name}, here.get_executor(), into(o));
    return o;
  }

  void carry_out(const order_ptr& o) {
    REQUIRE(here.run([&] { return o->over(); }, std::chrono::hours(1)));
  }
  // Carries an order out that ends well.
  actors::model_status well(const order_ptr& o) {
    carry_out(o);
    if (!*o->begun) FAIL(o->begun->error().fault.message);
    if (!*o->done) FAIL(o->done->error().fault.message);
    return **o->done;
  }
  // Carries an order out that is refused or fails.
  core::error ill(const order_ptr& o) {
    carry_out(o);
    if (!*o->begun) return o->begun->error().fault;
    REQUIRE(o->done->has_error());
    return o->done->error().fault;
  }
  void pass(core::duration d) {
    here.run([] { return false; }, d);
  }

  std::shared_ptr<job_stream> ask_of(const std::string& model, std::int64_t tokens, std::uint64_t seed = 3) {
    auto r = ask("what is it", tokens, seed);
    r.model = model;
    return send(std::move(r));
  }
  // A new job of the model is answered as the sim's function says.
  void answers(const std::string& model, std::uint64_t seed = 5) {
    const auto job = ask_of(model, 40, seed);
    settle();
    REQUIRE(job->state() == phase::done);
    CHECK(text_of(*job) == sim_text(seed, 40));
  }
  actors::model_status status(std::string_view name) const {
    for (auto& m : service->all_models().models)
      if (m.name == name) return m;
    FAIL("no model is called " << name);
    return {};
  }
  actors::model_state state(std::string_view name) const { return status(name).state; }
  std::uint64_t taken_mb() const { return service->all_models().devices.at(0).models / one_mb; }
  std::uint64_t held_mb() const { return service->all_models().sleep_taken / one_mb; }
};

}  // namespace weir::tests
