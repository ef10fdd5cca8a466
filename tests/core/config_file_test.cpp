#include "core/config_file.h"

#include <catch2/catch.hpp>
#include <iterator>
#include <map>
#include <regex>

#include "core/join_config.h"

namespace weir::tests::config_file_test {

using namespace weir::core;

namespace {

using values = std::map<std::string, std::vector<std::string>>;  // [name of a setting] what it was given

std::string file_with(const values& v) {
  return config_file_of([&v](const setting& s) {
    const auto at = v.find(s.name);
    return at == v.end() ? std::vector<std::string>() : at->second;
  });
}

bool has_line(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != text.npos;
}

std::vector<std::string> all_names() {
  std::vector<std::string> out;
  const auto add = [&out](const setting& s, const auto&) { out.emplace_back(s.name); };
  engine_settings engine;
  server_settings server;
  member_settings fleet;
  log_settings log;
  visit_settings(engine, add);
  visit_settings(server, add);
  visit_settings(fleet, add);
  visit_settings(log, add);
  return out;
}

}  // namespace

TEST_CASE("config file: without values it has every setting once, with unit, range and default") {
  const auto text = file_with({});
  for (const char* lines :
       {"# largest WebSocket frame that is taken, its JSON Schema not counted\n"
        "# bytes, 1024 to 1073741824, default 262144\nmax-frame = 262144",
        "# tokens, default auto\nkv-tokens = \"auto\"", "# bytes, default 512M\nreserve-vram = \"512M\"",
        "# true or false, default false\nchatml = false", "# FILE\n#api-key-file = \"FILE\"",
        "# list of [NAME=]PATH\n#model = [\"[NAME=]PATH\"]", "# LEVEL, default info\nlog-level = \"info\"",
        "# ttft=TIME,tpot=TIME\n#slo = \"ttft=TIME,tpot=TIME\"", "# ---- Limits on clients\n"}) {
    CAPTURE(lines);
    CHECK(has_line(text, lines));
  }
  for (const auto& name : all_names()) {
    CAPTURE(name);
    const std::regex line("\n#?" + name + " = ");
    CHECK(std::distance(std::sregex_iterator(text.begin(), text.end(), line), std::sregex_iterator()) == 1);
  }
}

TEST_CASE("config file: values that are given stand in it as TOML has them") {
  const auto text = file_with({{"model", {"a=/x", "/a folder, with \"quotes\""}},
                               {"max-memory", {"3G"}},
                               {"listen", {"[::1]:0"}},
                               {"chatml", {"true"}},
                               {"device", {"sim:rate=1,prefill=2"}},
                               {"trusted-proxy", {"10.0.0.1"}},
                               {"max-frame", {"0x800"}},
                               {"queue-wait-s", {"7"}},
                               {"queue", {"6", "5"}},
                               {"slo", {"ttft=1s,tpot=50"}}});
  for (const char* line :
       {"model = [\"a=/x\", '/a folder, with \"quotes\"']", "max-memory = \"3G\"", "listen = \"[::1]:0\"",
        "chatml = true", "device = \"sim:rate=1,prefill=2\"", "trusted-proxy = [\"10.0.0.1\"]",
        "max-frame = \"0x800\"", "queue-wait-s = 7", "queue = 5", "slo = \"ttft=1s,tpot=50\""}) {
    CAPTURE(line);
    CHECK(has_line(text, line));
  }
}

}  // namespace weir::tests::config_file_test
