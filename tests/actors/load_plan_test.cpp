// Which host loads which copy of which model.
#include "actors/load_plan.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>

namespace weir::tests::load_plan_test {

using actors::plan_loads;

TEST_CASE("load plan: copies of a model are on different hosts, and hosts have about as many loads") {
  for (std::size_t hosts = 1; hosts <= 5; ++hosts)
    for (std::uint32_t copies = 1; copies <= hosts; ++copies) {
      CAPTURE(hosts, copies);
      const std::vector<actors::model_spec> models{{"a"}, {"b"}, {"c"}, {"d"}};
      const auto plan = plan_loads(models, copies, hosts);
      REQUIRE(plan.size() == models.size() * copies);
      std::map<std::string, std::set<std::size_t>> of_model;
      std::map<std::size_t, std::size_t> loads;
      for (std::size_t i = 0; i < plan.size(); ++i) {
        CHECK(plan[i].spec.name == models[i / copies].name);
        CHECK(plan[i].copy == i % copies);
        of_model[plan[i].spec.name].insert(plan[i].host);
        ++loads[plan[i].host];
      }
      for (const auto& [name, on] : of_model) CHECK(on.size() == copies);
      for (const auto& [host, n] : loads) {
        CHECK(n * hosts < plan.size() + hosts);
        CHECK(host < hosts);
      }
    }
}

}  // namespace weir::tests::load_plan_test
