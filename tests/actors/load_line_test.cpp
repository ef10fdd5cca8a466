#include "actors/load_line.h"

#include <catch2/catch.hpp>
#include <vector>

namespace weir::tests::load_line_test {

using namespace std::chrono_literals;
using namespace weir::actors;

namespace {

const core::time_point start{1h};

struct client {
  bool gone = false;
  std::uint32_t ahead = 99;
  int answers = 0;
  std::optional<core::result<model_way>> said;

  model_wish wish(std::string model, std::uint64_t key = 0, core::duration until = 120s) {
    model_wish w;
    w.model = std::move(model);
    w.key = key;
    w.since = start;
    w.until = start + until;
    w.gone = [this] { return gone; };
    w.begins = [this](std::uint32_t n) { ahead = n; };
    w.done = [this](core::result<model_way> r) {
      ++answers;
      said = std::move(r);
    };
    return w;
  }
};

const auto late = [](const model_wish& w) {
  return core::make_error(core::errc::unavailable, "{}", w.model);
};

}  // namespace

TEST_CASE("load line: requests wait in the order in which they came, and leave by what becomes of them") {
  load_line line;
  client a, b, c;
  REQUIRE(line.enter(a.wish("x")).has_value());
  REQUIRE(line.enter(b.wish("y", 0, 10s)).has_value());
  REQUIRE(line.enter(c.wish("x")).has_value());
  CHECK(a.ahead == 0);
  CHECK(c.ahead == 2);
  CHECK(line.oldest({})->model == "x");
  CHECK(line.oldest({"x"})->model == "y");
  CHECK(line.oldest({"x", "y"}) == nullptr);
  line.tidy(start + 9s, late);
  CHECK(line.size() == 3);
  line.tidy(start + 10s, late);
  CHECK(b.said->error().message == "y");
  a.gone = true;
  line.tidy(start + 11s, late);
  CHECK(a.answers == 0);
  CHECK(line.size() == 1);
  line.refuse("z", core::error());
  CHECK(line.wants("x"));
  line.refuse("x", core::make_error(core::errc::internal, "no"));
  CHECK(c.said->error().message == "no");
  CHECK(c.answers == 1);
  CHECK(line.empty());
}

TEST_CASE("load line: a way that is closed keeps those behind it") {
  load_line line;
  std::vector<client> all(4);
  for (auto& c : all) REQUIRE(line.enter(c.wish("x")).has_value());
  const auto use = std::make_shared<model_use>();
  std::vector<model_use::way> ways;
  line.let_in("x", [&](const model_wish&) -> std::optional<model_way> {
    if (ways.size() == 2) use->close();
    auto way = use->enter(start);
    if (!way) return std::nullopt;
    ways.push_back(way);
    return model_way{nullptr, way};
  });
  CHECK(use->coming() == 2);
  CHECK(all[1].answers == 1);
  CHECK(all[2].answers == 0);
  CHECK(line.size() == 2);
  ways.clear();
  CHECK(use->coming() == 2);  // the clients have theirs
  all[0].said.reset();
  all[1].said.reset();
  CHECK(use->coming() == 0);
}

TEST_CASE("load line: a key waits for one model at a time, and the line is bounded") {
  load_line line;
  std::vector<client> of_key(load_line::most_of_key + 1), others(load_line::most);
  for (std::size_t i = 0; i < load_line::most_of_key; ++i)
    REQUIRE(line.enter(of_key[i].wish("x", 7)).has_value());
  client other;
  CHECK(line.enter(other.wish("y", 7)).error().code == core::errc::busy);
  CHECK(line.enter(of_key.back().wish("x", 7)).error().code == core::errc::overloaded);
  REQUIRE(line.enter(other.wish("y", 8)).has_value());
  std::size_t in = 0;
  for (auto& c : others) in += line.enter(c.wish("z")).has_value();  // no key: no bound of its own
  CHECK(in == load_line::most - load_line::most_of_key - 1);
  line.refuse_all(core::make_error(core::errc::unavailable, "over"));
  CHECK(line.empty());
  CHECK(other.said->error().message == "over");
  CHECK(line.enter(of_key.back().wish("y", 7)).has_value());
}

TEST_CASE("model use: requests of ten minutes count, and a wish to stay is never shortened") {
  const auto use = std::make_shared<model_use>();
  use->enter(start, 60s);
  use->enter(start + 5min, 10s);
  CHECK(use->stay() == 10s);  // the first wish was over after a minute
  use->enter(start + 5min + 5s, 30s);
  use->enter(start + 5min + 6s);
  CHECK(use->stay() == 30s);
  CHECK(use->asked_lately(start + 6min) == 4);
  CHECK(use->asked_lately(start + 12min) == 3);
  CHECK(use->asked_lately(start + 16min) == 0);
  CHECK(use->coming() == 0);
}

}  // namespace weir::tests::load_line_test
