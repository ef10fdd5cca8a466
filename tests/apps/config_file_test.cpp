#include "apps/config_file.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "apps/options.h"

namespace weir::apps {
namespace {

// The options of `weir serve`, parsed.
struct parsed {
  CLI::App app;
  core::engine_settings engine;
  core::server_settings server;

  explicit parsed(const std::string& arguments) {
    add_settings(app, engine);
    add_settings(app, server);
    add_common(app);
    app.parse(arguments);
    apply_config(app);
  }
  std::string file() const { return config_file_of(app); }
};

// A file that is removed at the end.
class temporary {
 public:
  explicit temporary(const std::string& text) {
    std::string name = (std::filesystem::temp_directory_path() / "weir-config-XXXXXX").string();
    ::close(::mkstemp(name.data()));
    path_ = name;
    std::ofstream(path_) << text;
  }
  ~temporary() { std::filesystem::remove(path_); }
  std::string option() const { return "--config " + path_.string(); }

 private:
  std::filesystem::path path_;
};

bool has_line(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != text.npos;
}

// The values of all settings, as text.
std::vector<std::string> values_of(parsed& p) {
  std::vector<std::string> out;
  const auto add = [&out](const core::setting& s, const auto& field) {
    using type = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<type, std::string>) {
      out.push_back(field);
    } else if constexpr (std::is_same_v<type, std::vector<std::string>>) {
      out.insert(out.end(), field.begin(), field.end());
    } else {
      out.push_back(std::to_string(core::number_of(s, field)));
    }
  };
  core::visit_settings(p.engine, add);
  core::visit_settings(p.server, add);
  return out;
}

}  // namespace

TEST_CASE("an example file without values has every setting once, with unit, range and default") {
  const parsed p("");
  const auto text = p.file();
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
  for (const auto* o : p.app.get_options()) {
    if (!o->get_configurable()) continue;
    CAPTURE(o->get_name());
    const std::regex line("\n#?" + o->get_lnames().front() + " = ");
    CHECK(std::distance(std::sregex_iterator(text.begin(), text.end(), line), std::sregex_iterator()) == 1);
  }
}

TEST_CASE("an example file, read back, changes no setting") {
  parsed plain("");
  const temporary file(plain.file());
  parsed back(file.option());
  CHECK(values_of(back) == values_of(plain));
  CHECK(back.file() == plain.file());
}

TEST_CASE("values that are given are in an example file, and come back from it") {
  const std::string given =
      "--model a=/x --model '/a folder, with \"quotes\"' --max-memory 3G --listen [::1]:0 --chatml "
      "--device sim:rate=1,prefill=2 --trusted-proxy 10.0.0.1 --max-frame 0x800 --queue-wait-s 7 "
      "--slo ttft=1s,tpot=50";
  parsed first(given);
  const temporary file(first.file());
  parsed back(file.option() + " --queue 5");
  const auto text = back.file();
  for (const char* line :
       {"model = [\"a=/x\", '/a folder, with \"quotes\"']", "max-memory = \"3G\"", "listen = \"[::1]:0\"",
        "chatml = true", "device = \"sim:rate=1,prefill=2\"", "trusted-proxy = [\"10.0.0.1\"]",
        "max-frame = \"0x800\"", "queue-wait-s = 7", "queue = 5", "slo = \"ttft=1s,tpot=50\""}) {
    CAPTURE(line);
    CHECK(has_line(text, line));
  }
  CHECK(back.server.clients.trusted == first.server.clients.trusted);
  CHECK(back.server.clients.frame_bytes == 2048);
}

TEST_CASE("a configuration file cannot name another one") {
  const temporary file("config = \"other.toml\"\n");
  CHECK_THROWS_AS(parsed(file.option()), CLI::ConfigError);
}

}  // namespace weir::apps
