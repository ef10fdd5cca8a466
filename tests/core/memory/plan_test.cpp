#include "core/memory/plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "core/cache/page.h"
#include "core/memory/plan_text.h"
#include "tests/support/seed.h"

namespace weir::tests::plan_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

constexpr std::uint64_t mb = 1u << 20, gb = 1u << 30;

__extension__ using wide = unsigned __int128;

model_needs model_of(std::string name, std::uint64_t weights, std::uint64_t page, std::uint32_t context,
                     std::uint32_t batch, std::uint64_t kv_tokens = 0) {
  model_needs m;
  m.name = std::move(name);
  m.lines.weights = weights;
  m.pool = {.groups = {{page, 0, 32}}, .context = context, .max_batch = batch, .kv_tokens = kv_tokens};
  return m;
}

plan_device device_of(std::uint64_t total, memory_kind kind = memory_kind::device) {
  plan_device d;
  d.name = kind == memory_kind::host ? "cpu" : "cuda:0";
  d.total = total;
  d.kind = kind;
  return d;
}

// The least pages of a model, written down once more.
std::uint64_t least_pages(const model_needs& m, std::size_t autos) {
  const auto pages = [](std::uint64_t tokens) { return (tokens + page_tokens - 1) / page_tokens; };
  if (m.pool.kv_tokens) return pages(m.pool.kv_tokens);
  const std::uint64_t most = pages(m.pool.context) * m.pool.max_batch;
  if (m.pool.kv_floor) return std::min(pages(m.pool.kv_floor), most);
  return autos == 1 ? 1 : pages(std::min(m.pool.context, 8192u));
}

model_needs random_model(std::mt19937_64& r, unsigned bits, std::size_t devices) {
  const auto n = [&] { return r() >> (64 - 1 - r() % bits); };
  auto m = model_of("m", n(), (r() % (1u << 23)) + 1, static_cast<std::uint32_t>(r() % 200'000 + 1),
                    static_cast<std::uint32_t>(r() % 64 + 1), r() % 3 ? 0 : r() % 1'000'000 + 1);
  m.lines.workspaces = n() / 16;
  m.lines.runtime = n() / 16;
  m.pool.kv_floor = r() % 4 ? 0 : r() % 100'000 + 1;
  m.device = r() % devices;
  return m;
}

}  // namespace

TEST_CASE("plan: models fit exactly where the sum fits, over 10,000 random devices and models") {
  std::mt19937_64 r(drawn_seed(72));
  std::uint64_t fitted = 0, refused = 0;
  for (int round = 0; round < 10'000; ++round) {
    const unsigned bits = round % 5 == 0 ? 63 : 36;  // some rounds have sums of more than 64 bits
    std::vector<plan_device> devices(r() % 3 + 1);
    for (auto& d : devices) {
      d.name = "cuda:" + std::to_string(&d - devices.data());
      d.total = (r() >> (63 - bits)) + 1;
      d.outside = r() % (d.total / 8 + 1);
      d.context = r() % (d.total / 16 + 1);
      d.reserve = r() % (d.total / 16 + 1);
      d.loaded = r() % 2 ? 0 : r() % (d.total / 4 + 1);
    }
    std::vector<model_needs> models(r() % 5);
    for (auto& m : models) m = random_model(r, bits, devices.size());
    const auto p = make_plan(devices, models).value();

    REQUIRE(p.models.size() == models.size());
    bool fits = true;
    wide first_missing = 0;
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const auto& at = devices[d];
      std::size_t autos = 0;
      for (const auto& m : models) autos += m.device == d && m.pool.kv_tokens == 0;
      wide least = wide{at.outside} + at.context + at.reserve + at.loaded, given = least;
      for (const auto& m : models)
        if (m.device == d)
          least += wide{m.lines.weights} + m.lines.workspaces + m.lines.runtime +
                   wide{least_pages(m, autos)} * page_bytes(m.pool);
      for (const auto& m : p.models)
        if (m.device == d)
          given += wide{m.lines.weights} + m.lines.workspaces + m.lines.runtime + m.lines.pages;
      if (least > at.total && fits) first_missing = least - at.total;
      fits &= least <= at.total;
      // Never above the total, and what is free is what is not taken.
      if (least <= at.total) REQUIRE(given + p.devices[d].free == at.total);
    }
    CAPTURE(round);
    REQUIRE(p.fits() == fits);
    ++(fits ? fitted : refused);
    if (!fits) {
      const std::uint64_t missing = first_missing > ~0ull ? ~0ull : static_cast<std::uint64_t>(first_missing);
      REQUIRE(p.lacks->bytes == missing);
    }
    for (const auto& m : p.models) {
      const auto& needs = models[m.needs];
      std::size_t autos = 0;
      for (const auto& other : models) autos += other.device == needs.device && other.pool.kv_tokens == 0;
      const std::uint64_t least = least_pages(needs, autos);
      REQUIRE(m.pages >= least);
      if (needs.pool.kv_tokens) REQUIRE(m.pages == least);
      if (!needs.pool.kv_tokens)
        REQUIRE(m.pages <= std::uint64_t{pages_for(needs.pool.context)} * needs.pool.max_batch);
      REQUIRE(m.lines.pages == m.pages * page_bytes(needs.pool));
      REQUIRE(m.context == std::min<std::uint64_t>(needs.pool.context, m.pages * page_tokens));
    }
    REQUIRE(std::ranges::is_sorted(p.models, {}, [](const planned_model& m) { return m.lines.weights; }));
  }
  CHECK(fitted > 1000);
  CHECK(refused > 1000);
}

TEST_CASE("plan: pools of two models get their floors first, then equal bytes of the rest") {
  std::mt19937_64 r(drawn_seed(73));
  std::uint64_t equal = 0, short_of_floor = 0, bounded = 0;
  for (int round = 0; round < 10'000; ++round) {
    std::vector<model_needs> models{random_model(r, 33, 1), random_model(r, 33, 1)};
    for (auto& m : models) m.pool.kv_tokens = 0;
    const auto p = make_plan({device_of((r() >> (63 - 40)) + 1)}, models).value();
    if (!p.fits()) continue;
    const auto& a = p.models[0];
    const auto& b = p.models[1];
    const auto floor = [&](const planned_model& m) {
      const auto& pool = models[m.needs].pool;
      const std::uint64_t whole = pages_for(pool.context);
      return std::min(whole * pool.max_batch,
                      pool.kv_floor ? pages_for(pool.kv_floor) : whole + pool.max_batch);
    };
    const auto most = [&](const planned_model& m) {
      const auto& pool = models[m.needs].pool;
      return std::uint64_t{pages_for(pool.context)} * pool.max_batch;
    };
    const auto one = [&](const planned_model& m) { return page_bytes(models[m.needs].pool); };
    CAPTURE(round, a.pages, b.pages, floor(a), floor(b), most(a), most(b));
    // Nobody has more than a floor while another lacks it.
    if (a.pages < floor(a) || b.pages < floor(b)) {
      ++short_of_floor;
      REQUIRE(a.pages <= floor(a));
      REQUIRE(b.pages <= floor(b));
      REQUIRE(p.devices[0].free < one(a) + one(b));
      continue;
    }
    // What is left over is less than each could use, but for the end of a division.
    if (a.pages < most(a) && b.pages < most(b)) {
      ++equal;
      REQUIRE(p.devices[0].free < one(a) + one(b));
      const auto above_floor = [&](const planned_model& m) { return (m.pages - floor(m)) * one(m); };
      const std::uint64_t x = above_floor(a), y = above_floor(b);
      REQUIRE((x > y ? x - y : y - x) <= one(a) + one(b));
    } else {
      ++bounded;
      if (a.pages < most(a)) REQUIRE(p.devices[0].free < one(a));
      if (b.pages < most(b)) REQUIRE(p.devices[0].free < one(b));
    }
  }
  CHECK(equal > 100);
  CHECK(short_of_floor > 10);
  CHECK(bounded > 100);
}

TEST_CASE("plan: one model's pool is that of a load that measures what is free") {
  std::mt19937_64 r(drawn_seed(74));
  for (const auto kind : {memory_kind::device, memory_kind::host, memory_kind::unknown}) {
    std::uint64_t opened = 0;
    for (int round = 0; round < 3'000; ++round) {
      auto m = random_model(r, 33, 1);
      m.pool.kv_tokens = r() % 2 ? 0 : m.pool.kv_tokens;
      m.pool.context_asked = r() % 2;
      if (r() % 10 == 0) m.pool.context = 1u << 24;
      if (kind == memory_kind::host) m.lines.workspaces = 0;  // which a load takes after its pages
      if (kind == memory_kind::host) m.lines.runtime = 0;
      auto d = device_of(kind == memory_kind::unknown ? 0 : (r() >> (63 - 38)) + 1, kind);
      d.reserve = kind == memory_kind::device ? r() % (d.total / 8 + 1) : 0;
      const auto p = make_plan({d}, {m});
      const std::uint64_t before = bytes_of(m.lines);
      const std::uint64_t free = d.total - std::min(d.total, before);
      const auto now = pages_in(m.pool, kind, free, d.reserve);
      CAPTURE(round, static_cast<int>(kind), free, m.pool.kv_tokens, m.pool.kv_floor);
      if (kind == memory_kind::unknown || before + d.reserve <= d.total) {
        REQUIRE(p->fits() == now.has_value());
      } else {
        REQUIRE_FALSE(p->fits());
      }
      if (!p->fits()) continue;
      ++opened;
      REQUIRE(p->models[0].pages == *now);
    }
    CHECK(opened > 500);
  }
}

TEST_CASE("plan: an auto pool is one that can change where that takes few pages of it, and a number stays") {
  constexpr kernels::pool_steps steps{128, 16};
  for (std::uint64_t total = 3 * gb; total < 9 * gb; total += 100 * mb + 1) {
    auto a = model_of("a", gb, 8 * mb, 8192, 64), b = model_of("b", gb, 4 * mb, 8192, 64, 1030 * 64);
    a.pool.steps = b.pool.steps = steps;
    auto plain = a;
    plain.pool.steps = {};
    const auto alone = make_plan({device_of(total)}, {a}).value();
    const auto unrounded = make_plan({device_of(total)}, {plain}).value();
    const std::uint64_t pages = alone.models[0].pages, all = unrounded.models[0].pages;
    REQUIRE((pages <= all && all - pages < steps.even));
    REQUIRE((pages == all || pages % steps.even == 0));
    REQUIRE((all < 960 || pages % steps.even == 0));
    REQUIRE(alone.models[0].lines.pages == pages * 8 * mb);
    REQUIRE(alone.devices[0].free == unrounded.devices[0].free + (all - pages) * 8 * mb);
    REQUIRE(pages_in(a.pool, memory_kind::device, total - gb, 0).value() == pages);
    const auto fixed = make_plan({device_of(2 * total)}, {b}).value();
    REQUIRE(fixed.models[0].pages == 1030);
  }
}

TEST_CASE("plan: a file that declares millions of tokens takes no more than a usual pool on the host") {
  auto m = model_of("m", 0, 1024, 16'777'216, 2);
  auto d = device_of(std::uint64_t{1} << 50, memory_kind::host);
  CHECK(make_plan({d}, {m})->models[0].kv_tokens == 262'144);
  m.pool.context_asked = true;
  CHECK(make_plan({d}, {m})->models[0].kv_tokens == 2 * 16'777'216);
  m.pool.context = 1000;
  CHECK(make_plan({d}, {m})->models[0].kv_tokens == 2 * 1024);  // whole pages
}

TEST_CASE("plan: pools on the host take a quarter of what weights leave, all together") {
  const auto a = model_of("a", gb, mb, 100'000, 64), b = model_of("b", 3 * gb, mb, 100'000, 64);
  const auto p = make_plan({device_of(20 * gb, memory_kind::host)}, {a, b}).value();
  REQUIRE(p.fits());
  CHECK(p.models[0].pages + p.models[1].pages == 4 * gb / mb);
  CHECK(p.devices[0].free == 12 * gb);
  const auto alone = make_plan({device_of(21 * gb, memory_kind::host)}, {a}).value();
  CHECK(alone.models[0].pages == 5 * gb / mb);
  auto floored = a;
  floored.pool.kv_floor = 64 * (5 * 1024 + 1);
  const auto no = make_plan({device_of(21 * gb, memory_kind::host)}, {floored}).value();
  REQUIRE_FALSE(no.fits());
  CHECK(no.lacks->bytes == mb);
  CHECK(no.lacks->of == "the pages of a");
}

TEST_CASE("plan: a --kv-tokens of more pages than have numbers is refused with the number") {
  for (const std::uint64_t tokens : {std::uint64_t{64} << 31, ~std::uint64_t{0}}) {
    const auto p = make_plan({device_of(0)}, {model_of("m", 0, 1, 100, 1, tokens)});
    REQUIRE(p.has_error());
    CHECK(p.error().code == errc::does_not_fit);
    CHECK_THAT(p.error().message, Contains("--kv-tokens " + std::to_string(tokens) + " takes"));
  }
}

TEST_CASE("plan: pages that take no memory have a bound of their own, since each has bookkeeping") {
  for (const std::uint64_t pages : {1u << 24, (1u << 24) + 1}) {
    auto m = model_of("m", 0, 0, 100, 1, 64 * pages);
    m.pool.groups.clear();
    CHECK(make_plan({device_of(0, memory_kind::unknown)}, {m}).has_error() == (pages > 1u << 24));
  }
}

TEST_CASE("plan: a pool in several groups of layers counts all of them") {
  auto m = model_of("m", 0, 0, 6400, 1);
  m.pool.groups = {{3000, 0, 12}, {1000, 12, 4}};
  const auto p = make_plan({device_of(gb)}, {m}).value();
  CHECK(p.models[0].lines.pages == 100 * 4000);
  REQUIRE(p.models[0].pools.size() == 2);
  CHECK(p.models[0].pools[1].count == 100);
  CHECK(p.models[0].pools[1].first_layer == 12);
}

TEST_CASE("plan: its lines and its JSON say what goes where, and what is missing") {
  auto d = device_of(150'800'000'000);
  d.outside = 500'000'000;
  d.context = 600'000'000;
  d.reserve = 500'000'000;
  auto chat = model_of("chat", 16'100'000'000, 8'388'608, 131'072, 64),
       draft = model_of("draft", 2'500'000'000, 2'097'152, 131'072, 64, 131'072);
  chat.lines.workspaces = 900'000'000;
  chat.lines.runtime = draft.lines.runtime = 100'000'000;
  draft.lines.workspaces = 400'000'000;
  const auto p = make_plan({d}, {chat, draft}).value();
  const auto lines = plan_lines(p);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "device cuda:0  150.8G total    0.5G outside    0.6G context    0.5G reserve");
  CHECK(lines[1] ==
        "  draft          2.5G weights    0.4G workspaces    0.1G runtime    4.3G pages    131072 tokens");
  CHECK(lines[2] ==
        "  chat          16.1G weights    0.9G workspaces    0.1G runtime  124.8G pages    952128 tokens");
  CHECK(lines[3] == "fits; 0.0G free beside the reserve; the load order is draft, chat");

  CHECK(plan_json(p) ==
        R"({"weir_plan":1,"fits":true,"devices":[{"device":"cuda:0","total":150800000000,)"
        R"("outside":500000000,"context":600000000,"reserve":500000000,"free":)" +
            std::to_string(p.devices[0].free) +
            R"(}],"models":[{"name":"draft","order":0,"device":["cuda:0"],"layers":[32],)"
            R"("weights":2500000000,"workspaces":400000000,"runtime":100000000,"pages":4294967296,)"
            R"("kv_tokens":131072,"context":131072},{"name":"chat","order":1,"device":["cuda:0"],)"
            R"("layers":[32],"weights":16100000000,"workspaces":900000000,"runtime":100000000,"pages":)" +
            std::to_string(p.models[1].lines.pages) + R"(,"kv_tokens":952128,"context":131072}]})");

  d.total = 20'000'000'000;
  d.loaded = 1'000'000'000;
  auto no = make_plan({d}, {chat, draft}).value();
  no.assumed = {"a context"};
  no.notes = {"no sleep"};
  REQUIRE_FALSE(no.fits());
  const std::uint64_t missing = 2'500'000'000 + 400'000'000 + 100'000'000 + 4'294'967'296 + 16'100'000'000 +
                                900'000'000 + 100'000'000 + 8'388'608 - 17'400'000'000;
  CHECK(shortage_text(no) == "does not fit: cuda:0 lacks " + std::to_string(missing) +
                                 " bytes (7.0G), first for the weights of chat");
  CHECK_THAT(plan_lines(no)[0], Contains("1.0G loaded"));
  CHECK(plan_lines(no)[3] == shortage_text(no));
  CHECK(plan_lines(no)[4] == "assumed: a context");
  CHECK(plan_lines(no)[5] == "note: no sleep");
  CHECK_THAT(plan_json(no),
             Contains(R"("short":{"device":"cuda:0","bytes":)" + std::to_string(missing) +
                      R"(,"for":"the weights of chat"},"assumed":["a context"],"notes":["no sleep"]})") &&
                 Contains(R"("loaded":1000000000)") && Contains(R"("fits":false)"));
}

}  // namespace weir::tests::plan_test
