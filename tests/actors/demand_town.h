// demand_town.h — a sim_town of models that requests load and wake, with what its log says.
#pragma once

#include <string>

#include "tests/actors/order_town.h"

namespace weir::tests {

inline actors::model_spec sim_model(std::string name, std::string more = "") {
  actors::model_spec m;
  m.name = std::move(name);
  m.source = "sim:prefill=100000,rate=1000" + more;
  return m;
}

// A device of 8,192 MB, and as much host memory for sleep as is asked.
inline actors::service_options demand_options(std::vector<actors::model_spec> ready,
                                              std::vector<actors::model_spec> known,
                                              std::uint64_t sleep_mb = 0) {
  actors::service_options o;
  o.models = std::move(ready);
  o.known_models = std::move(known);
  o.measured.push_back(sim_device(8192));
  o.owner.max_batch = 4;
  o.owner.audit = true;
  o.demand.on = true;
  o.sleep_bytes = sleep_mb * one_mb;
  return o;
}

struct log_lines {
  std::shared_ptr<std::vector<std::string>> lines = std::make_shared<std::vector<std::string>>();
};

struct demand_town : log_lines, order_town {
  explicit demand_town(actors::service_options o, std::uint64_t seed = 1)
      : order_town(seed, heard(std::move(o), lines)) {}
  static actors::service_options heard(actors::service_options o,
                                       const std::shared_ptr<std::vector<std::string>>& to) {
    o.seen = std::make_shared<core::incidents>([to](std::string_view line) { to->emplace_back(line); });
    return o;
  }

  void wait(core::duration d) {  // also where nothing else happens
    bool over = false;
    here.after(d, [&] { over = true; });
    REQUIRE(here.run([&] { return over; }));
  }
};

}  // namespace weir::tests
