// sim_town.h — a service of simulated models in virtual time, and the jobs that a test sends to it.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/actors/service_fixture.h"
#include "tests/support/world.h"

namespace weir::tests {

struct sim_town {
  sim_town(std::uint64_t seed, actors::service_options o) : here(seed) {
    o.owner.device = "sim";
    service = here.make_service(std::move(o));
  }

  std::shared_ptr<job_stream> send(actors::request r) {
    all.push_back(service->submit(std::move(r), here.get_executor(), [] {}));
    return all.back();
  }
  // Runs until every job has ended, and until the owners have published that.
  void settle() {
    REQUIRE(here.run([&] {
      return std::ranges::all_of(
          all, [](const auto& s) { return s->state() == phase::done || s->state() == phase::refused; });
    }));
    here.run([] { return false; }, std::chrono::seconds(1));
  }
  actors::model_figures figures(std::string_view name) const {
    for (auto& m : service->figures())
      if (m.name == name) return m;
    FAIL("no such model");
    return {};
  }

  world here;
  std::unique_ptr<actors::service> service;
  std::vector<std::shared_ptr<job_stream>> all;
};

}  // namespace weir::tests
