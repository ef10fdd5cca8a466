// Bodies of orders: what is read, and every refusal with its field and its code.
#include "net/protocol/model_orders.h"

#include <catch2/catch.hpp>

namespace weir::tests::model_orders_test {
namespace {

using namespace weir::net;
using core::errc;

struct bad_row {
  const char *body, *param, *words;
  errc code = errc::invalid_param;
};

template <class Parse>
void check_bad(std::initializer_list<bad_row> rows, Parse parse) {
  for (const auto& row : rows) {
    CAPTURE(row.body);
    const auto read = parse(row.body, SIZE_MAX);
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().param == row.param);
    CHECK(read.error().code == row.code);
    CHECK_THAT(read.error().message, Catch::Contains(row.words));
  }
}

}  // namespace

TEST_CASE("model orders: a load has a name, and may say where, how much and whether it waits") {
  const auto least = orders::parse_load(R"({"name":"a","source":null})");
  REQUIRE(least.has_value());
  CHECK(least->name == "a");
  CHECK(least->source.empty());
  CHECK(least->devices.empty());
  CHECK_FALSE(least->kv_tokens);
  CHECK(least->wait);
  const auto full = orders::parse_load(
      R"({"name":"a/b","source":"s","device":["cuda:0","cuda:1"],"kv_tokens":4096,"wait":false,)"
      R"("evict":"none","share":0.5,"limits":{"batch":2,"queue":null,"max_tokens":9}})");
  REQUIRE(full.has_value());
  CHECK(full->source == "s");
  CHECK(full->devices == std::vector<std::string>{"cuda:0", "cuda:1"});
  CHECK(full->kv_tokens == 4096u);
  CHECK_FALSE(full->wait);
  CHECK(full->share == 0.5);
  CHECK(full->limits.batch == 2u);
  CHECK_FALSE(full->limits.queue);
  CHECK(full->limits.max_tokens == 9u);
  CHECK(orders::parse_load(R"({"name":"a","device":"cpu"})")->devices == std::vector<std::string>{"cpu"});
}

TEST_CASE("model orders: what is wrong with a load is named, and what is planned is refused as such") {
  check_bad({{"", "", "JSON"},
             {"[]", "", "object"},
             {"{}", "name", "missing"},
             {R"({"name":""})", "name", "1 to 256"},
             {R"({"name":1})", "name", "string"},
             {R"({"name":"a\u0000b"})", "name", "control"},
             {R"({"name":"a\nb"})", "name", "control"},
             {R"({"name":"a","source":""})", "source", "1 to 4096"},
             {R"({"name":"a","source":{}})", "source", "string"},
             {R"({"name":"a","device":[]})", "device", "list"},
             {R"({"name":"a","device":7})", "device", "list"},
             {R"({"name":"a","device":["cpu","cpu"]})", "device", "twice"},
             {R"({"name":"a","kv_tokens":0})", "kv_tokens", "[1, "},
             {R"({"name":"a","kv_tokens":-1})", "kv_tokens", "[1, "},
             {R"({"name":"a","kv_tokens":1.5})", "kv_tokens", "integer"},
             {R"({"name":"a","kv_tokens":9e18})", "kv_tokens", "kv_tokens"},
             {R"({"name":"a","wait":"no"})", "wait", "true"},
             {R"({"name":"a","name":"b"})", "name", "name"},
             {R"({"name":"a","nmae":1})", "nmae", "nmae"},
             {R"({"name":"a","evict":"all"})", "evict", "'none'"},
             {R"({"name":"a","evict":"idle"})", "evict", "not supported", errc::not_supported},
             {R"({"name":"a","evict":"drain"})", "evict", "not supported", errc::not_supported},
             {R"({"name":"a","split":[1]})", "split", "not supported", errc::not_supported},
             {R"({"name":"a","share":0})", "share", "[0.001, 1000]"},
             {R"({"name":"a","share":-1})", "share", "[0.001, 1000]"},
             {R"({"name":"a","share":1000.5})", "share", "[0.001, 1000]"},
             {R"({"name":"a","share":"2"})", "share", "number"},
             {R"({"name":"a","pinned":true})", "pinned", "not supported", errc::not_supported},
             {R"({"name":"a","limits":[]})", "limits", "object"},
             {R"({"name":"a","limits":{"rows":1}})", "limits", "'rows'"},
             {R"({"name":"a","limits":{"batch":0}})", "limits", "batch must be in [1, 8192]"},
             {R"({"name":"a","limits":{"queue":-1}})", "limits", "queue"},
             {R"({"name":"a","limits":{"queue":1.5}})", "limits", "integer"},
             {R"({"name":"a","draft":"d"})", "draft", "not supported", errc::not_supported}},
            orders::parse_load);
  const std::string longest(orders::longest_name, 'n');
  CHECK(orders::parse_load(R"({"name":")" + longest + "\"}").has_value());
  CHECK_FALSE(orders::parse_load(R"({"name":"n)" + longest + "\"}").has_value());
}

TEST_CASE("model orders: a change loads, unloads or sets the terms") {
  using kind = orders::change::kind;
  const auto load = orders::parse_change(R"({"action":"load","wait":false})");
  REQUIRE(load.has_value());
  CHECK(load->is == kind::load);
  CHECK_FALSE(load->wait);
  const auto away = orders::parse_change(R"({"action":"unload","drain_s":1.5})");
  REQUIRE(away.has_value());
  CHECK(away->is == kind::unload);
  CHECK(away->drain == std::chrono::milliseconds(1500));
  CHECK(orders::parse_change(R"({"action":"unload","drain_s":0})")->drain == std::chrono::nanoseconds(0));
  const auto share = orders::parse_change(R"({"share":2.5,"wait":false})");
  REQUIRE(share.has_value());
  CHECK(share->is == kind::terms);
  CHECK(share->share == 2.5);
  const auto both = orders::parse_change(R"({"action":"load","share":3,"limits":{"queue":0}})");
  REQUIRE(both.has_value());
  CHECK(both->is == kind::load);
  CHECK(both->share == 3.0);
  CHECK(both->limits.queue == 0u);
  const auto pinned = orders::parse_change(R"({"pinned":false,"share":2})");
  REQUIRE(pinned.has_value());
  CHECK(pinned->is == kind::terms);
  CHECK(pinned->pinned == false);
  CHECK(pinned->share == 2.0);
  CHECK(orders::parse_change(R"({"pinned":true})")->pinned == true);
  CHECK_FALSE(orders::parse_change(R"({"pinned":true})")->share.has_value());
  const auto nap = orders::parse_change(R"({"action":"sleep","level":"disk","drain_s":2})");
  REQUIRE(nap.has_value());
  CHECK(nap->is == kind::sleep);
  CHECK(nap->level == actors::sleep_level::disk);
  CHECK(nap->drain == std::chrono::seconds(2));
  CHECK(orders::parse_change(R"({"action":"sleep","level":"host"})")->level == actors::sleep_level::host);
  CHECK_FALSE(orders::parse_change(R"({"action":"sleep"})")->level.has_value());
  CHECK(orders::parse_change(R"({"action":"wake"})")->is == kind::wake);
  check_bad({{"{}", "action", "missing"},
             {R"({"action":"stop"})", "action", "'stop'"},
             {R"({"action":["load"]})", "action", "string"},
             {R"({"action":"sleep","level":"ram"})", "level", "'ram'"},
             {R"({"action":"sleep","level":1})", "level", "string"},
             {R"({"action":"sleep","share":1})", "share", "'sleep'"},
             {R"({"action":"wake","drain_s":1})", "drain_s", "alone"},
             {R"({"action":"wake","limits":{"batch":1}})", "limits", "'wake'"},
             {R"({"action":"unload","level":"disk"})", "level", "'sleep' alone"},
             {R"({"share":1,"level":"disk"})", "level", "'sleep' alone"},
             {R"({"action":"load","kv_tokens":9})", "kv_tokens", "not supported", errc::not_supported},
             {R"({"pinned":1})", "pinned", "true or false"},
             {R"({"pinned":null})", "action", "missing"},
             {R"({"action":"load","pinned":true})", "pinned", "'load'"},
             {R"({"action":"unload","pinned":true})", "pinned", "'unload'"},
             {R"({"share":0})", "share", "[0.001, 1000]"},
             {R"({"share":true})", "share", "number"},
             {R"({"action":"unload","share":1})", "share", "'unload'"},
             {R"({"action":"unload","limits":{"batch":1}})", "limits", "'unload'"},
             {R"({"limits":{"batch":1}})", "limits", "not supported", errc::not_supported},
             {R"({"share":1,"limits":{"batch":1}})", "limits", "not supported", errc::not_supported},
             {R"({"share":1,"drain_s":1})", "drain_s", "alone"},
             {R"({"action":"load","drain_s":1})", "drain_s", "alone"},
             {R"({"action":"unload","drain_s":-1})", "drain_s", "[0, 86400]"},
             {R"({"action":"unload","drain_s":86401})", "drain_s", "[0, 86400]"},
             {R"({"action":"unload","drain_s":"1"})", "drain_s", "number"},
             {R"({"action":"unload","model":"m"})", "model", "model"}},
            orders::parse_change);
}

TEST_CASE("model orders: a swap names what goes and what comes") {
  const auto s =
      orders::parse_swap(R"({"out":["a","b"],"in":{"name":"c","source":"d"},"drain_s":2,"wait":false})");
  REQUIRE(s.has_value());
  CHECK(s->out == std::vector<std::string>{"a", "b"});
  CHECK(s->in.name == "c");
  CHECK_FALSE(s->in.wait);
  CHECK(s->drain == std::chrono::seconds(2));
  check_bad(
      {{R"({"in":{"name":"c"}})", "out", "missing"},
       {R"({"out":[],"in":{"name":"c"}})", "out", "list"},
       {R"({"out":"a","in":{"name":"c"}})", "out", "list"},
       {R"({"out":[1],"in":{"name":"c"}})", "out", "string"},
       {R"({"out":["a","a"],"in":{"name":"c"}})", "out", "twice"},
       {R"({"out":["a"]})", "in", "missing"},
       {R"({"out":["a"],"in":"c"})", "in", "object"},
       {R"({"out":["a"],"in":{"source":"c"}})", "name", "missing"},
       {R"({"out":["a"],"in":{"name":"c","wait":true}})", "wait", "beside"},
       {R"({"out":["a"],"in":{"name":"c","draft":"d"}})", "draft", "not supported", errc::not_supported},
       {R"({"out":["a"],"in":{"name":"c"},"name":"x"})", "name", "name"}},
      orders::parse_swap);
}

TEST_CASE("model orders: llama.cpp's orders name a model") {
  CHECK(*orders::parse_named(R"({"model":"m"})") == "m");
  check_bad({{"{}", "model", "missing"},
             {R"({"model":""})", "model", "1 to"},
             {R"({"model":null})", "model", "missing"},
             {R"({"model":"m","extra_args":[]})", "extra_args", "extra_args"}},
            orders::parse_named);
}

}  // namespace weir::tests::model_orders_test
