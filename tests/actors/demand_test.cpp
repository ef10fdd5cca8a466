// Far more demand than there is memory leads to refusals that say when to try again, to waiting and to
// preemption, and to nothing else.
#include <map>

#include "core/cache/page_table.h"
#include "tests/actors/service_fixture.h"
#include "tests/support/budget.h"
#include "tests/support/toy_directory.h"
#include "tests/support/world.h"

namespace weir::tests::demand_test {

using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t pages = 16, batch = 8, queue = 12;

actors::service_options service_on(const std::string& device, const std::string& source,
                                   std::uint32_t kv_pages) {
  actors::service_options o;
  o.models.push_back({"m", source});
  o.owner.device = device;
  o.owner.threads = 1;
  o.owner.max_batch = batch;
  o.owner.queue = queue;
  o.owner.kv_tokens = std::uint64_t{kv_pages} * core::page_tokens;
  o.owner.audit = true;
  return o;
}

// Job `n` of the crowd: two to five pages. Some prompts begin alike.
actors::request member(std::uint64_t n) {
  std::string prompt(20 + n % 3 * 30, static_cast<char>('a' + n % 4));
  prompt += std::to_string(n * n);
  auto r = ask(std::move(prompt), 100 + static_cast<std::int64_t>(n * 37 % 100), n);
  r.ignore_eos = true;
  r.sampling.temperature = 1.0;
  return r;
}

std::vector<core::token_id> ids_of(const job_stream& s) {
  std::vector<core::token_id> ids;
  for (std::uint32_t i = 0; i < s.published(); ++i) ids.push_back(s.token_at(i));
  return ids;
}

// A client that submits its job again after each refusal, once the time that the refusal names is over.
struct client : std::enable_shared_from_this<client> {
  client(world& w, actors::service& s, std::uint64_t number) : here(w), service(s), n(number) {}

  void come() {
    stream = service.submit(member(n), here.get_executor(), [me = weak_from_this()] {
      if (auto self = me.lock()) self->news();
    });
  }
  void news() {
    if (stream->state() == phase::done) ++endings;
    if (stream->state() != phase::refused) return;
    REQUIRE(stream->refusal().code == core::errc::overloaded);
    REQUIRE(stream->refusal().retry_after_ms >= 1000);
    ++refusals;
    here.after(std::chrono::milliseconds(stream->refusal().retry_after_ms),
               [me = shared_from_this()] { me->come(); });
  }

  world& here;
  actors::service& service;
  const std::uint64_t n;
  std::shared_ptr<job_stream> stream;
  int endings = 0, refusals = 0;
};

// Runs `count` clients to their ends. Returns how often a job was preempted.
std::uint64_t crowd(const std::string& device, const std::string& source, std::uint64_t seed,
                    std::uint64_t count) {
  CAPTURE(device, seed);
  world here(seed);
  const auto service = here.make_service(service_on(device, source, pages));
  std::vector<std::shared_ptr<client>> all;
  std::uint64_t wanted = 0;  // pages
  for (std::uint64_t n = 0; n < count; ++n) {
    const auto r = member(n);
    wanted +=
        core::pages_for(std::get<std::string>(r.input).size() + static_cast<std::uint64_t>(*r.max_tokens));
    all.push_back(std::make_shared<client>(here, *service, n));
    all.back()->come();
  }
  REQUIRE(wanted > 10 * pages);
  REQUIRE(
      here.run([&] { return std::ranges::all_of(all, [](const auto& c) { return c->endings > 0; }); }, 10h));
  here.run([] { return false; }, 1s);

  int refusals = 0;
  for (const auto& c : all) {
    CAPTURE(c->n);
    REQUIRE(c->endings == 1);
    REQUIRE(c->stream->ended().reason == core::finish_reason::length);
    refusals += c->refusals;
  }
  CHECK(refusals > 0);
  const auto stats = service->stats();
  CHECK(stats.engine.pages_used == 0);
  CHECK(stats.engine.pages_free + stats.engine.pages_cached == pages);
  CHECK(service->ready().ready);

  const auto alone = here.make_service(service_on(device, source, 64));
  for (const auto& c : all) {
    CAPTURE(c->n);
    const auto solo = alone->submit(member(c->n), here.get_executor(), [] {});
    REQUIRE(here.run([&] { return solo->state() == phase::done; }));
    REQUIRE(ids_of(*c->stream) == ids_of(*solo));
  }
  CHECK(alone->stats().engine.preemptions == 0);
  return stats.engine.preemptions;
}

}  // namespace

TEST_CASE(
    "ten times more demand than the pool holds is waiting and 429s, and each job gets the tokens it gives "
    "alone") {
  for (std::uint64_t seed = 1; seed <= rounds(10); ++seed)
    CHECK(crowd("sim", "sim:rate=100,prefill=20000", seed, 80) > 5);
}

TEST_CASE("the same on a model that computes: news may overtake an admission on its way to the stream",
          "[long]") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path());
  std::uint64_t preemptions = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    preemptions += crowd("reference", dir.path().string(), seed, 60);
  CHECK(preemptions > 10);
}

}  // namespace weir::tests::demand_test
