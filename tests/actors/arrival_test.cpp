// Several choices of one request on their way in: tokenised once, admitted or refused as one.
#include "actors/arrival.h"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "actors/make_job.h"
#include "core/sample/pipeline.h"
#include "tests/support/free_turn.h"
#include "tests/support/manual_clock.h"

namespace weir::tests::arrival_test {

using namespace weir::actors;
using phase = job_stream::phase;

namespace {

// The simulated tokenizer, and how often it was asked.
struct counting_tokenizer final : core::tokenizer {
  std::vector<core::token_id> encode(std::string_view utf8, core::encode_options how) const override {
    ++texts;
    return inner->encode(utf8, how);
  }
  std::string decode(std::span<const core::token_id> ids, decode_options how) const override {
    return inner->decode(ids, how);
  }
  std::string_view token_bytes(core::token_id id) const override { return inner->token_bytes(id); }
  bool is_special(core::token_id id) const override { return inner->is_special(id); }
  std::string piece(core::token_id id) const override { return inner->piece(id); }
  std::uint32_t vocab_size() const override { return inner->vocab_size(); }
  std::optional<core::token_id> bos() const override { return inner->bos(); }
  std::optional<core::token_id> id_of(std::string_view p) const override { return inner->id_of(p); }
  bool clean_up_spaces() const override { return false; }
  bool adds_bos() const override { return false; }

  std::shared_ptr<const core::tokenizer> inner = core::make_sim_tokenizer();
  mutable int texts = 0;
};

// Takes jobs and does nothing.
struct idle_port final : engine_port {
  bool submit(core::job j, job_stream::owner_end) override {
    if (no_memory_from == entered.size()) throw std::bad_alloc();
    if (full_from == entered.size()) return false;
    entered.push_back(std::move(j));
    return true;
  }
  void cancel(const core::job_id&, core::finish_reason) override {}
  void pause(job_stream::owner_end) override {}

  std::vector<core::job> entered;
  std::size_t no_memory_from = 100, full_from = 100;
};

struct idle_place {
  std::shared_ptr<model_place> place = std::make_shared<model_place>();
  std::shared_ptr<idle_port> port = std::make_shared<idle_port>();
};

idle_place place_of(std::uint64_t engine, std::uint32_t batch, const core::queue_settings& room) {
  idle_place p;
  p.place->engine = engine_id{engine};
  p.place->admission = std::make_unique<admission_control>(batch, room);
  p.place->port = p.port;
  return p;
}

// A model with a place that takes jobs and does nothing, and a request for `choices` choices.
struct arrival_rig {
  explicit arrival_rig(std::uint32_t choices, std::uint32_t batch = 4,
                       const core::queue_settings& room = {.queue = 4, .queue_tokens = 1000})
      : own(place_of(0, batch, room)) {
    model->name = "m";
    model->info.vocab_size = 1000;
    model->context = 4096;
    model->tokenizer = text;
    model->places.push_back(place);
    a.asked.input = std::string(100, 'x');
    a.asked.sampling.seed = 7;
    a.model = model;
    for (std::uint64_t i = 0; i < choices; ++i)
      a.choices.push_back(std::make_shared<job_stream::state_block>(core::job_id{i, i}, io.get_executor(),
                                                                    clock, end_hook()));
  }
  void run() {
    io.restart();
    io.poll();
  }
  // How many more jobs the admission lets in.
  std::uint32_t free_places() {
    std::uint32_t n = 0;
    while (place->admission->admit("m", 1)) ++n;
    return n;
  }

  boost::asio::io_context io;
  std::shared_ptr<tests::manual_clock> clock = std::make_shared<tests::manual_clock>();
  std::shared_ptr<counting_tokenizer> text = std::make_shared<counting_tokenizer>();
  std::shared_ptr<served_model> model = std::make_shared<served_model>();
  idle_place own;
  std::shared_ptr<model_place>& place = own.place;
  std::shared_ptr<idle_port>& port = own.port;
  std::vector<core::job>& entered = port->entered;
  arrival a;
  free_turn at;
};

}  // namespace

TEST_CASE(
    "arrival: choices are tokenised once and enter together, each with its number, and their prompt counts "
    "once") {
  arrival_rig r(3, 4, {.queue = 4, .queue_tokens = 101});
  r.a.bring_in(r.at);
  r.run();
  CHECK(r.text->texts == 1);
  REQUIRE(r.entered.size() == 3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    CHECK(r.entered[i].id == core::job_id{i, i});
    CHECK(r.entered[i].sampling.choice == i);
    CHECK(r.entered[i].sampling.seed == 7);
    CHECK(r.entered[i].prompt.size() == 100);
    CHECK(r.a.choices[i]->now == phase::running);
  }
  // The prompt counts 100 tokens once, so one more token fills the 101. Three prompts would be over them.
  CHECK(r.free_places() == 1);
}

TEST_CASE("arrival: without a seed each choice draws with its own") {
  arrival_rig r(2);
  r.a.asked.sampling.seed.reset();
  r.a.bring_in(r.at);
  REQUIRE(r.entered.size() == 2);
  CHECK(r.entered[0].sampling.seed != r.entered[1].sampling.seed);
}

TEST_CASE("arrival: where there is no room for all choices none enters, and the admission is as it was") {
  arrival_rig r(3, 2, {.queue = 2});
  REQUIRE(r.place->admission->admit("m", 1, 2).has_value());
  r.a.bring_in(r.at);
  r.run();
  CHECK(r.entered.empty());
  for (const auto& s : r.a.choices) {
    REQUIRE(s->now == phase::refused);
    CHECK(s->why_refused.code == core::errc::overloaded);
    CHECK(s->why_refused.message == "m has 2 jobs running or waiting, and no room for 3 more");
  }
  CHECK(r.free_places() == 2);
}

TEST_CASE("arrival: more choices than there is room for at any time are refused by name") {
  arrival_rig r(5, 2, {.queue = 2});
  r.a.bring_in(r.at);
  r.run();
  REQUIRE(r.a.choices[0]->now == phase::refused);
  CHECK(r.a.choices[0]->why_refused.code == core::errc::invalid_param);
  CHECK(r.a.choices[0]->why_refused.param == "n");
}

TEST_CASE("arrival: a choice that is cancelled on its way in does not take the others along") {
  arrival_rig r(3, 2, {.queue = 0});
  r.a.choices[1]->cancel(core::finish_reason::cancel);
  r.run();
  r.a.bring_in(r.at);
  r.run();
  REQUIRE(r.entered.size() == 2);  // the cancelled choice needs no place
  CHECK(r.entered[0].sampling.choice == 0);
  CHECK(r.entered[1].sampling.choice == 2);
  CHECK(r.a.choices[1]->now == phase::done);
  CHECK(r.a.choices[1]->result.reason == core::finish_reason::cancel);
  CHECK(r.a.choices[2]->now == phase::running);
}

TEST_CASE("arrival: a job that was cancelled ends as cancelled, though a refusal overtakes the cancel") {
  arrival_rig r(1);
  r.a.choices[0]->cancel(core::finish_reason::cancel);
  r.a.choices[0]->refused(unwanted());
  r.run();
  REQUIRE(r.a.choices[0]->now == phase::done);
  CHECK(r.a.choices[0]->result.reason == core::finish_reason::cancel);
}

TEST_CASE("arrival: choices that are all cancelled are not tokenised") {
  arrival_rig r(2);
  for (const auto& s : r.a.choices) s->cancel(core::finish_reason::cancel);
  r.run();
  r.a.bring_in(r.at);
  CHECK(r.text->texts == 0);
  CHECK(r.entered.empty());
}

TEST_CASE(
    "arrival: several prompts enter together, each tokenised once, with its choices as if it were alone") {
  arrival_rig r(4, 4, {.queue = 4, .queue_tokens = 104});
  r.a.asked.more_inputs.emplace_back(prompt_ids{7, 8, 9});
  r.a.bring_in(r.at);
  r.run();
  CHECK(r.text->texts == 1);
  REQUIRE(r.entered.size() == 4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(r.entered[i].id == core::job_id{i, i});
    CHECK(r.entered[i].sampling.choice == i % 2);
    CHECK(r.entered[i].prompt.size() == (i < 2 ? 100 : 3));
    CHECK(r.a.choices[i]->prompt_text == nullptr);
  }
  // 103 tokens wait: one more fills the 104
  CHECK(r.free_places() == 1);
  r.a.choices[0]->prompt->computed();
  CHECK(r.free_places() == 3);  // the four places that are left, less the one that was taken above
}

TEST_CASE("arrival: of several prompts the one that is wrong is named, and none enters") {
  arrival_rig r(3);
  r.a.asked.input_param = "prompt";
  r.a.asked.more_inputs.emplace_back(std::string("fine"));
  r.a.asked.more_inputs.emplace_back(prompt_ids{1, 1000});
  r.a.bring_in(r.at);
  r.run();
  CHECK(r.entered.empty());
  for (const auto& s : r.a.choices) {
    REQUIRE(s->now == phase::refused);
    CHECK(s->why_refused.code == core::errc::invalid_param);
    CHECK(s->why_refused.param == "prompt[2]");
  }
  CHECK(r.free_places() == 8);
}

TEST_CASE("arrival: of several prompts those that are cancelled are not tokenised") {
  arrival_rig r(4);
  r.a.asked.more_inputs.emplace_back(std::string("second"));
  r.a.choices[0]->cancel(core::finish_reason::cancel);
  r.a.choices[1]->cancel(core::finish_reason::cancel);
  r.run();
  r.a.bring_in(r.at);
  CHECK(r.text->texts == 1);
  REQUIRE(r.entered.size() == 2);
  CHECK(r.entered[0].prompt.size() == 6);
  CHECK(r.entered[0].id == core::job_id{2, 2});
}

TEST_CASE("arrival: with echo each choice has its prompt's text, as it was written or as its ids spell it") {
  arrival_rig r(4);
  r.a.asked.echo = true;
  r.a.asked.input = std::string("as written");
  r.a.asked.more_inputs.emplace_back(prompt_ids{104, 105, 500});
  r.a.bring_in(r.at);
  r.run();
  REQUIRE(r.entered.size() == 4);
  for (int i = 0; i < 2; ++i) {
    CHECK(*r.a.choices[i]->prompt_text == "as written");
    CHECK(*r.a.choices[2 + i]->prompt_text == "w104 w105 w500 ");
  }
}

namespace {

// A request for three choices of each of two prompts, with every list that a request can have.
struct listed_request : arrival_rig {
  listed_request() : arrival_rig(6, 6) {
    a.memory = core::memory_hold(account);
    a.asked.more_inputs.emplace_back(std::string(50, 'y'));
    a.asked.stop_token_ids.assign(250'000, 7);
    a.asked.stop = {std::string(1000, 's'), "end"};
    a.asked.sampling.logit_bias = {{5, 1.0}, {6, -1.0}};
    a.asked.sampling.repetition_penalty = 1.2;
    a.asked.max_tokens = 10;
  }
  std::shared_ptr<core::memory_account> account = std::make_shared<core::memory_account>();
};

}  // namespace

TEST_CASE("arrival: the jobs of a request share its lists, and those of a prompt its tokens") {
  listed_request r;
  r.a.bring_in(r.at);
  r.run();
  REQUIRE(r.entered.size() == 6);
  const core::job& first = r.entered[0];
  CHECK(first.stop_token_ids == core::token_set{7});
  for (std::size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    const core::job &j = r.entered[i], &of_prompt = r.entered[i / 3 * 3];
    CHECK(j.stop_token_ids.ids().data() == first.stop_token_ids.ids().data());
    CHECK(j.sampling.logit_bias.data() == first.sampling.logit_bias.data());
    CHECK(j.prompt.data() == of_prompt.prompt.data());
    CHECK(j.prompt_ids.ids().data() == of_prompt.prompt_ids.ids().data());
    CHECK(j.prompt.size() == (i < 3 ? 100 : 50));
    CHECK(j.prompt_ids.size() == 1);
  }
}

TEST_CASE("arrival: what jobs share is counted once, until the last of them has ended") {
  listed_request r;
  r.a.bring_in(r.at);
  r.run();
  const core::job& j = r.entered.at(0);
  const auto lists = j.stop_token_ids.bytes() + j.stop.bytes() + j.sampling.logit_bias.bytes();
  const auto prompts = (100 + 50 + 1 + 1) * sizeof(core::token_id);
  const auto own = job_bytes + core::sampler::bytes_for(j.sampling, 1000, 100, 10);
  CHECK(own > job_bytes);
  const auto logs = 6 * r.a.choices[0]->log_bytes;  // these stay with their streams
  CHECK(r.account->used() == 6 * own + lists + prompts + logs);
  for (std::size_t i = 0; i < 6; ++i) {
    r.a.choices[i]->end({});
    CHECK(r.account->used() == (5 - i) * own + (i < 5 ? lists + prompts : 0) + logs);
  }
}

TEST_CASE("arrival: what the engine keeps of each token is counted as tokens come, until the job ends") {
  const bool banned = GENERATE(false, true);
  arrival_rig r(1);
  const auto account = std::make_shared<core::memory_account>();
  r.a.memory = core::memory_hold(account);
  if (banned) r.a.asked.banned_strings = {"never"};
  r.a.bring_in(r.at);
  r.run();
  auto& s = *r.a.choices.at(0);
  const auto before = account->used() - s.log_bytes;
  core::delays released;
  actors::outbox out(released);
  s.out = &out;
  const std::vector<core::token> tokens(65, core::token{5, {}});
  REQUIRE(s.write(tokens) == 65);
  out.flush();
  r.run();
  CHECK(account->used() - s.log_bytes == before + 128 * (sizeof(core::token) + (banned ? 4 : 0)));
  s.end({});
  CHECK(account->used() == s.log_bytes);
}

TEST_CASE("arrival: the lists of a request that waits are counted, too") {
  const listed_request r;
  CHECK(list_bytes(r.a.asked) >= 250'000 * sizeof(std::int64_t) + 1000);
}

TEST_CASE("arrival: what throws in the middle gives back the places of those that have not entered") {
  arrival_rig r(3, 4, {.queue = 0});
  r.port->no_memory_from = 1;
  CHECK_THROWS_AS(r.a.bring_in(r.at), std::bad_alloc);
  r.a.refuse(core::make_error(core::errc::overloaded, "out of memory"));
  r.run();
  CHECK(r.a.choices[0]->now == phase::running);
  CHECK(r.a.choices[1]->now == phase::refused);
  CHECK(r.a.choices[2]->now == phase::refused);
  CHECK(r.free_places() == 3);
}

TEST_CASE("arrival: where the mailbox is full, jobs are refused, and their places are given back") {
  arrival_rig r(3, 4, {.queue = 0});
  r.port->full_from = 1;
  r.a.bring_in(r.at);
  r.run();
  CHECK(r.a.choices[0]->now == phase::running);
  for (const std::size_t i : {1, 2}) {
    REQUIRE(r.a.choices[i]->now == phase::refused);
    CHECK(r.a.choices[i]->why_refused.code == core::errc::overloaded);
  }
  CHECK(r.free_places() == 3);
}

TEST_CASE("arrival: a place that is down gets no job, and where all are down the reason is said") {
  arrival_rig r(1, 4, {.queue = 4});
  const auto second = place_of(1, 4, {.queue = 4});
  const auto& other = second.port;
  r.model->places.push_back(second.place);
  const auto enter = [&] {
    arrival_rig next(1);
    next.a.model = r.model;
    next.a.bring_in(next.at);
    next.run();
    return next.a.choices[0];
  };
  r.place->admission->close(admission_control::door::device,
                            core::make_error(core::errc::unavailable, "no light"));
  for (int i = 0; i < 8; ++i) CHECK(enter()->now == phase::running);
  CHECK(other->entered.size() == 8);
  second.place->admission->close(admission_control::door::device,
                                 core::make_error(core::errc::unavailable, "no light"));
  const auto refused = enter();
  REQUIRE(refused->now == phase::refused);
  CHECK(refused->why_refused.code == core::errc::unavailable);
  CHECK(refused->why_refused.message == "no light");
  r.place->admission->reopen(admission_control::door::device);
  CHECK(enter()->now == phase::running);
  CHECK(r.entered.size() == 1);
}

TEST_CASE("arrival: a model's second place takes what the first has no room for, and then nobody does") {
  arrival_rig first(1, 1, {.queue = 0});
  const auto second = place_of(1, 1, {.queue = 0});
  const auto& other = second.port;
  for (int job = 0; job < 3; ++job) {
    arrival_rig r(1);
    first.model->places = {first.place, second.place};
    r.a.model = first.model;
    r.a.bring_in(r.at);
    r.run();
    CHECK(first.entered.size() + other->entered.size() ==
          std::min<std::size_t>(2, static_cast<std::size_t>(job) + 1));
    CHECK(r.a.choices[0]->now == (job < 2 ? phase::running : phase::refused));
  }
  CHECK(first.entered.size() == 1);
}

TEST_CASE("arrival: a key's prefixes are its own, whatever salt another chooses") {
  const std::uint64_t mine = 0x0102030405060708;
  const std::string name(reinterpret_cast<const char*>(&mine), sizeof mine);
  CHECK(prefix_salt(mine, "s") == prefix_salt(mine, "s"));
  CHECK(prefix_salt(mine, "s") != prefix_salt(mine, "t"));
  CHECK(prefix_salt(mine, "") != prefix_salt(mine + 1, ""));
  CHECK(prefix_salt(mine, "") != prefix_salt(0, name));
  arrival_rig r(1);
  r.a.prefix_owner = mine;
  r.a.asked.cache_salt = "s";
  r.a.bring_in(r.at);
  REQUIRE(r.entered.size() == 1);
  CHECK(r.entered[0].cache_salt == prefix_salt(mine, "s"));
}

}  // namespace weir::tests::arrival_test
