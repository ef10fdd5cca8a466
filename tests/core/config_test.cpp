#include "core/config.h"

#include <catch2/catch.hpp>
#include <set>

#include "core/join_config.h"

namespace weir::tests::config_test {

using namespace weir::core;

TEST_CASE("settings: every name is given once, has a group, and every default is in its range") {
  std::set<std::string> names, groups;
  const auto look = [&](const setting& s, const auto& field) {
    INFO(s.name);
    CHECK(names.insert(s.name).second);
    CHECK(*s.group);
    groups.insert(s.group);
    using type = std::decay_t<decltype(field)>;
    if constexpr (!std::is_same_v<type, std::string> && !std::is_same_v<type, std::vector<std::string>>) {
      if (s.has_range()) CHECK((number_of(s, field) >= s.low && number_of(s, field) <= s.high));
    }
  };
  engine_settings engine;
  server_settings server;
  member_settings fleet;
  log_settings log;
  visit_settings(engine, look);
  visit_settings(server, look);
  visit_settings(fleet, look);
  visit_settings(log, look);
  CHECK(names.contains("queue-wait-s"));
  CHECK(groups == std::set<std::string>{"Fleet", "Keys", "Limits on clients", "Logging", "Lost connections",
                                        "Memory and batching", "Models", "Network", "Queue", "Responses"});
}

TEST_CASE("settings: a time is a number of its setting's unit") {
  duration time{};
  const setting s{"wait-s", "", "s"}, ms{"wait-ms", "", "ms"};
  set_number(s, time, 3);
  CHECK(time == std::chrono::seconds(3));
  CHECK(number_of(s, time) == 3);
  CHECK(number_of(ms, time) == 3000);
}

TEST_CASE("settings: numbers are read and written with their words and powers") {
  const setting count{"count", "", "tokens", 0, 0, "auto"}, bytes{"bytes", "", "bytes", 0, 0, "", true};
  CHECK(parse_number(count, "auto").value() == 0);
  CHECK(parse_number(count, "99999999999999").value() == 99999999999999);
  CHECK(parse_number(bytes, "3K").value() == 3072);
  CHECK(parse_number(bytes, "0").value() == 0);
  CHECK(text_of(count, 0) == "auto");
  CHECK(text_of(bytes, 0) == "0");
  CHECK(text_of(bytes, 512 << 20) == "512M");
  CHECK(text_of(bytes, 1023) == "1023");
  for (const char* bad : {"", "0", "-1", "1K", "many"}) {
    CAPTURE(bad);
    CHECK(parse_number(count, bad).error().param == "count");
  }
  for (const char* bad : {"", "auto", "1k", "1KB", "2000000G"}) {
    CAPTURE(bad);
    CHECK(parse_number(bytes, bad).error().param == "bytes");
  }
}

}  // namespace weir::tests::config_test
