#include "net/metrics/shard_counts.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <thread>
#include <vector>

#include "net/ws/ws_closing.h"

namespace weir::tests::shard_counts_test {

using namespace weir::net;

namespace {

std::map<std::string, std::uint64_t> counted(const reason_counts& r) {
  std::map<std::string, std::uint64_t> all;
  r.each([&](std::string_view reason, std::uint64_t n) { CHECK(all.emplace(reason, n).second); });
  return all;
}

}  // namespace

TEST_CASE("shard counts: each reason has its count, and beyond 63 of them the rest have one together") {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back(fmt::format("reason_{}", i));
  reason_counts r;
  CHECK(counted(r).empty());
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 63; ++i) r.add(names[static_cast<std::size_t>(i)]);
  CHECK(counted(r).size() == 63);
  for (int i = 60; i < 100; ++i) r.add(names[static_cast<std::size_t>(i)]);
  const auto all = counted(r);
  CHECK(all.size() == 64);
  CHECK(all.at("reason_0") == 3);
  CHECK(all.at("reason_62") == 4);
  CHECK(all.at("other") == 37);
}

TEST_CASE("shard counts: every close code of the server has a line, and any other code has none") {
  close_counts c;
  for (const auto code :
       {close_code::going_away, close_code::protocol_fault, close_code::no_status, close_code::abnormal,
        close_code::bad_payload, close_code::too_big, close_code::our_fault, close_code::overloaded,
        close_code::bad_key, close_code::forbidden, close_code::not_authenticated,
        close_code::too_many_messages, close_code::slow_consumer, close_code::too_old}) {
    CAPTURE(static_cast<int>(code));
    c.add(static_cast<std::uint16_t>(code));
    std::uint64_t n = 0;
    c.each([&](std::uint16_t seen, std::uint64_t count) {
      if (seen == static_cast<std::uint16_t>(code)) n = count;
    });
    CHECK(n == 1);
  }
  for (const int code : {0, 999, 1004, 3000, 4000, 4999, 65535}) c.add(static_cast<std::uint16_t>(code));
  std::uint64_t others = 0;
  c.each([&](std::uint16_t seen, std::uint64_t count) {
    if (seen == close_counts::other) others = count;
  });
  CHECK(others == 7);
}

TEST_CASE("shard counts: a thread may read while the shard counts") {
  static const char* const reasons[] = {"a", "b", "c", "d"};
  shard_counts counts;
  std::thread shard([&] {
    for (int i = 0; i < 40000; ++i) {
      counts.rejected.add(reasons[i % 4]);
      counts.closed.add(1000);
      counts.resumed.add();
      counts.sampled_to_sent.add(std::chrono::microseconds(i));
    }
  });
  std::uint64_t before = 0;
  for (int i = 0; i < 200; ++i) {
    std::uint64_t all = 0;
    counts.rejected.each([&](std::string_view, std::uint64_t n) { all += n; });
    CHECK(all >= before);
    before = all;
    weir::core::delays sum;
    sum.add(counts.sampled_to_sent);
  }
  shard.join();
  for (const auto& [reason, n] : counted(counts.rejected)) CHECK(n == 10000);
  CHECK(counts.resumed.value() == 40000);
  CHECK(counts.sampled_to_sent.count() == 40000);
}

}  // namespace weir::tests::shard_counts_test
