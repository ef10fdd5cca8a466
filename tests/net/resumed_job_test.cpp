// What a job's frame has for the protocols of another gateway comes out as it went in.
#include <catch2/catch.hpp>

#include "core/fleet/job_frame.h"
#include "net/http/answer_encoders.h"
#include "net/kept_jobs.h"
#include "net/resumed_job.h"

namespace weir::tests::resumed_job_test {
namespace {

using namespace weir::net;

const std::vector<core::job_id> ids{{1, 2}, {3, 4}};
const actors::principal owner{7, 5};

std::vector<kept_answer> answers() {
  openai_encoder o;
  o.dialect = openai::dialect::chat;
  o.reasoning = *openai::reasoning_fields("reasoning,reasoning_content");
  o.with_ids = o.include_usage = true;
  o.scores = 3;
  o.n = 2;
  o.created_s = 1'700'000'000;
  o.model = "chat";
  o.ignored = {{"top", "is not known"}};
  anthropic_encoder a;
  a.asked = {40, {"stop", ""}};
  a.model = "chat";
  a.request_id = "req_1";
  auto t = std::make_shared<response_terms>();
  t->created_s = 5;
  t->model = "chat";
  t->echo = R"({"temperature":1})";
  t->names = {{"a__b", "a", "b"}};
  t->stored = true;
  t->items = "[]";
  t->previous = "resp_1";
  responses_encoder r;
  r.terms = t;
  return {{o, ids}, {a, ids}, {r, ids}};
}

}  // namespace

TEST_CASE("an answer that goes on at another gateway is encoded as it was, and no beginning of it is one") {
  const auto account = std::make_shared<core::memory_account>();
  for (const auto& a : answers()) {
    const auto bytes = bytes_of(a);
    REQUIRE(bytes);
    const auto read = read_answer(*bytes, ids, owner, account);
    REQUIRE(read);
    CHECK(read->encoder.index() == a.encoder.index());
    CHECK(*bytes_of(*read) == *bytes);
    CHECK(std::ranges::equal(jobs_of(*read), ids));
    if (const auto terms = terms_of(*read)) {
      CHECK(terms->owner == owner);
      CHECK(terms->items == "[]");
      CHECK(account->used() > 0);
    }
    for (std::size_t n = 0; n < bytes->size(); ++n)
      CHECK_FALSE(read_answer(std::string_view(*bytes).substr(0, n), ids, owner, account));
    CHECK_FALSE(read_answer(*bytes, {}, owner, account));
  }
  CHECK(account->used() == 0);
}

TEST_CASE("a kept job tells how its client follows it, and a response that is too long tells nothing") {
  kept_job job;
  job.as_created = {.timing = true, .pad = true, .window = 40};
  job.metadata = R"({"a":1})";
  job.pause_on_lag = true;
  const auto lane = bytes_of(job);
  REQUIRE(lane);
  CHECK(lane->find(job.metadata) != std::string::npos);
  job.answer = std::make_shared<const kept_answer>(answers().front());
  const auto answer = bytes_of(job);
  REQUIRE(answer);
  CHECK(answer->size() > lane->size());
  auto terms = std::make_shared<response_terms>();
  terms->items = std::string(core::fleet::longest_resume + 1, 'x');
  responses_encoder r;
  r.terms = terms;
  job.answer = std::make_shared<const kept_answer>(kept_answer{r, {}});
  CHECK_FALSE(bytes_of(job));
}

}  // namespace weir::tests::resumed_job_test
