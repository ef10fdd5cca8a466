// How jobs end by themselves: stop ids, stop strings, limits, deadlines.
#include "core/engine.h"
#include "tests/support/engine_rig.h"

namespace weir::tests::engine_endings_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

const std::vector<std::string> pieces = {"a",     "b",   "ab", "STOP", "ST",   "OP",   "xSTOPy",
                                         "<eos>", "end", "S",  "T",    "\xC3", "\xA9", "<sp>"};

// An engine whose model says the given pieces, in order.
struct scripted : engine_rig {
  explicit scripted(std::vector<std::string> says)
      : engine_rig(small_config(), std::make_shared<toy_tokenizer>(pieces)) {
    const toy_tokenizer t(pieces);
    for (const auto& p : says) ids.push_back(t.id_of(p).value());
    toy->script = [this](std::uint64_t, std::uint32_t i) { return i < ids.size() ? ids[i] : token_id{0}; };
    toy->change_info().stop_ids = {7};
  }

  weir::core::job ask(std::uint32_t max_tokens, std::vector<std::string> stop = {}) {
    weir::core::job j = job(1, max_tokens);
    j.prompt = {0, 1, 2};
    j.stop = std::move(stop);
    return j;
  }

  // What a client would read: the bytes of the delivered tokens, as far as they may be shown.
  static std::string shown(const recording_sink& s) {
    const toy_tokenizer t(pieces);
    auto text = t.decode(s.ids(), {});
    if (s.end->shown_bytes < text.size()) text.resize(s.end->shown_bytes);
    return text;
  }

  std::vector<token_id> ids;
};

}  // namespace

TEST_CASE("the model's stop id ends a job: counted, not delivered") {
  scripted rig({"a", "b", "<eos>"});
  auto sink = rig.submit(rig.ask(10));
  rig.run();
  CHECK(sink->ids() == std::vector<token_id>{0, 1});
  CHECK(sink->end->reason == finish_reason::stop);
  CHECK(sink->end->output_tokens == 3);
  CHECK(sink->end->last_token > sink->tokens.back().at);
}

TEST_CASE("ignore_eos lets the model's stop id pass, and the job's own still stop it") {
  scripted rig({"a", "<eos>", "b", "end", "a"});
  auto j = rig.ask(10);
  j.ignore_eos = true;
  j.stop_token_ids = {8};
  auto sink = rig.submit(j);
  rig.run();
  CHECK(sink->ids() == std::vector<token_id>{0, 7, 1});
  CHECK(sink->end->reason == finish_reason::stop);
  CHECK(sink->end->output_tokens == 4);
}

TEST_CASE("min_tokens masks stop ids until then") {
  engine_rig rig;
  rig.toy->change_info().stop_ids = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  for (std::uint64_t n = 0; n < 20; ++n) {
    auto j = rig.job(n, 40);
    j.min_tokens = 30;
    auto sink = rig.submit(j);
    rig.run();
    CHECK(sink->end->output_tokens >= 30);
    CHECK(sink->tokens.size() >= 30);
    for (const auto& t : sink->tokens) CHECK(t.id >= 20);
  }
}

TEST_CASE("min_tokens lets stop strings pass that begin before then") {
  scripted rig({"STOP", "ST", "OP", "a", "STOP", "b"});
  auto j = rig.ask(10, {"STOP"});
  j.min_tokens = 2;
  auto sink = rig.submit(j);
  rig.step();
  CHECK(sink->tokens.size() == 1);  // not even withheld
  rig.run();
  CHECK(scripted::shown(*sink) == "STOPSTOPa");
  CHECK(sink->end->reason == finish_reason::stop);
  CHECK(sink->end->output_tokens == 5);
}

TEST_CASE("a stop string inside a token cuts it, and tokens wholly inside it are not delivered") {
  SECTION("inside one token") {
    scripted rig({"a", "xSTOPy", "b"});
    auto sink = rig.submit(rig.ask(10, {"STOP"}));
    rig.run();
    CHECK(sink->ids() == std::vector<token_id>{0, 6});
    CHECK(sink->end->shown_bytes == 2);
    CHECK(sink->end->output_tokens == 2);
  }
  SECTION("a token of its own") {
    scripted rig({"a", "STOP", "b"});
    auto sink = rig.submit(rig.ask(10, {"STOP"}));
    rig.run();
    CHECK(sink->ids() == std::vector<token_id>{0});
    CHECK(scripted::shown(*sink) == "a");
    CHECK(sink->end->reason == finish_reason::stop);
    CHECK(sink->end->output_tokens == 2);
  }
  SECTION("over several tokens, from inside one into another") {
    scripted rig({"b", "ab", "ST", "OP", "a"});
    auto sink = rig.submit(rig.ask(10, {"bSTO"}));
    rig.run();
    CHECK(sink->ids() == std::vector<token_id>{1, 2});
    CHECK(scripted::shown(*sink) == "ba");
    CHECK(sink->end->output_tokens == 4);
  }
  SECTION("from the first byte") {
    scripted rig({"STOP"});
    auto sink = rig.submit(rig.ask(10, {"STOP"}));
    rig.run();
    CHECK(sink->tokens.empty());
    CHECK(sink->end->reason == finish_reason::stop);
  }
  SECTION("inside a character") {
    scripted rig({"a", "\xC3", "\xA9", "b"});
    auto sink = rig.submit(rig.ask(10, {"\xC3\xA9"}));
    rig.run();
    CHECK(scripted::shown(*sink) == "a");
  }
}

TEST_CASE("of several stop strings the first to end wins, and of those that end together the longest") {
  scripted rig({"a", "b", "ab", "b"});
  SECTION("first") {
    auto sink = rig.submit(rig.ask(10, {"abab", "ba"}));
    rig.run();
    CHECK(scripted::shown(*sink) == "a");
    CHECK(sink->end->stop_string == 1u);
  }
  SECTION("longest") {
    auto sink = rig.submit(rig.ask(10, {"b", "ab"}));
    rig.run();
    CHECK(scripted::shown(*sink).empty());
    CHECK(sink->end->stop_string == 1u);
  }
}

TEST_CASE("tokens that may begin a stop string are withheld, and delivered with their own times") {
  scripted rig({"a", "S", "T", "a", "b"});
  auto sink = rig.submit(rig.ask(5, {"STOP"}));
  rig.step();
  CHECK(sink->tokens.size() == 1);
  const auto first = rig.clock.now();
  rig.step();
  const auto second = rig.clock.now();
  rig.step();
  CHECK(sink->tokens.size() == 1);
  rig.step();
  REQUIRE(sink->tokens.size() == 4);
  CHECK(sink->tokens[1].at == first);
  CHECK(sink->tokens[2].at == second);
  rig.run();
  CHECK(scripted::shown(*sink) == "aSTab");
}

TEST_CASE("an unfinished stop string is text when the job ends otherwise") {
  scripted rig({"a", "S", "T", "<eos>"});
  SECTION("length") {
    auto sink = rig.submit(rig.ask(3, {"STOP"}));
    rig.run();
    CHECK(scripted::shown(*sink) == "aST");
    CHECK(sink->end->reason == finish_reason::length);
  }
  SECTION("stop id") {
    auto sink = rig.submit(rig.ask(10, {"STOP"}));
    rig.run();
    CHECK(scripted::shown(*sink) == "aST");
    CHECK(sink->end->reason == finish_reason::stop);
    CHECK_FALSE(sink->end->stop_string);
  }
  SECTION("cancel") {
    auto sink = rig.submit(rig.ask(10, {"STOP"}));
    for (int i = 0; i < 3; ++i) rig.step();
    CHECK(sink->tokens.size() == 1);
    CHECK(rig.engine->cancel(rig.id(1)));
    CHECK(scripted::shown(*sink) == "aST");
    CHECK(sink->end->reason == finish_reason::cancel);
  }
  SECTION("deadline") {
    auto j = rig.ask(10, {"STOP"});
    j.deadline = rig.clock.now() + 10ms;
    auto sink = rig.submit(j);
    for (int i = 0; i < 3; ++i) rig.step();
    rig.clock.advance(10ms);
    rig.step();
    CHECK(scripted::shown(*sink) == "aST");
    CHECK(sink->end->reason == finish_reason::timeout);
    CHECK(sink->end->output_tokens == 3);
  }
}

TEST_CASE("special tokens have no bytes for a stop string to be found in") {
  scripted rig({"a", "<sp>", "ST", "<sp>", "OP", "a"});
  SECTION("they do not come between") {
    auto sink = rig.submit(rig.ask(10, {"STOP"}));
    rig.run();
    CHECK(scripted::shown(*sink) == "a");
    CHECK(sink->end->output_tokens == 5);
  }
  SECTION("and are not text") {
    auto sink = rig.submit(rig.ask(6, {"<sp>", "sp"}));
    rig.run();
    CHECK(sink->tokens.size() == 6);
    CHECK(sink->end->reason == finish_reason::length);
  }
}

TEST_CASE("a cancel and a deadline say when the pages were free, and no other ending does") {
  engine_rig rig;
  auto late = rig.job(1, 1000);
  late.deadline = rig.clock.now() + 10ms;
  auto a = rig.submit(late), b = rig.submit(rig.job(2, 1000)), c = rig.submit(rig.job(3, 4));
  for (int i = 0; i < 6; ++i) rig.step();
  REQUIRE(c->end);
  CHECK_FALSE(c->end->released);
  rig.clock.set(*late.deadline + 7ms);  // the step before took so long
  const auto at = rig.clock.now();
  rig.step();
  REQUIRE(a->end);
  CHECK(a->end->released == at);
  rig.clock.advance(3ms);
  rig.engine->cancel(rig.id(2));
  REQUIRE(b->end);
  CHECK(b->end->released == rig.clock.now());
  CHECK(rig.engine->counts().pages_used == 0);
}

TEST_CASE("a deadline ends a job wherever it is, and the engine says when it must look") {
  auto c = small_config();
  c.max_batch = 1;
  engine_rig rig(sim_spec{}, c);
  auto j = rig.job(1, 1000);
  j.deadline = rig.clock.now() + 105ms;
  auto running = rig.submit(j);
  j.id = rig.id(2);
  j.deadline = rig.clock.now() + 55ms;
  auto queued = rig.submit(j);
  std::vector<time_point> looked;
  while (!rig.engine->idle()) {
    const auto report = rig.step();
    if (report.wait_until > rig.clock.now()) looked.push_back(report.wait_until);
    if (report.wait_until > rig.clock.now()) rig.clock.set(report.wait_until);
  }
  CHECK(queued->end->reason == finish_reason::timeout);
  CHECK(queued->tokens.empty());
  CHECK(running->end->reason == finish_reason::timeout);
  CHECK(running->tokens.size() == 5);
  CHECK(std::count(looked.begin(), looked.end(), *j.deadline) == 1);
}

}  // namespace weir::tests::engine_endings_test
