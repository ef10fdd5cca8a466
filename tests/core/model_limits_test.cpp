#include "core/model_limits.h"

#include <catch2/catch.hpp>

namespace weir::tests::model_limits_test {

TEST_CASE("model limits: each has a name, and what is no limit is refused") {
  const auto l = core::parse_limits("batch:8,queue:0,queue_tokens:500,kv_tokens:4096,max_tokens:64", "limit");
  REQUIRE(l.has_value());
  CHECK(l->batch == 8u);
  CHECK(l->queue == 0u);
  CHECK(l->queue_tokens == 500u);
  CHECK(l->kv_tokens == 4096u);
  CHECK(l->max_tokens == 64u);
  CHECK(core::parse_limits("batch:8", "limit")->queue == std::nullopt);
  CHECK(core::model_limits().none());
  CHECK_FALSE(l->none());
  for (const char* bad : {"", "batch", "batch:", "batch:0", "batch:8192000", "batch:-1", "batch:8,",
                          ",batch:8", "batch:8,batch:9", "rows:3", "queue:1.5", "batch=8"}) {
    CAPTURE(bad);
    const auto refused = core::parse_limits(bad, "limit");
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == core::errc::invalid_param);
    CHECK(refused.error().param == "limit");
  }
}

}  // namespace weir::tests::model_limits_test
