#include "net/ws/ws_frame_watch.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "tests/support/seed.h"

namespace weir::tests::ws_frame_watch_test {

using verdict = net::ws_frame_watch::verdict;

namespace {

constexpr net::rate_meter::time_point now{};

net::rate_meter burst_of(double frames) { return net::rate_meter(1, frames, 0, now); }

// A masked frame's header, the length in as few bytes as it takes.
std::string header(unsigned char first, std::uint64_t size) {
  std::string out(1, static_cast<char>(first));
  const std::size_t extended = size < 126 ? 0 : size < 65536 ? 2 : 8;
  out += static_cast<char>(0x80 | (extended == 0 ? size : extended == 2 ? 126 : 127));
  for (std::size_t i = extended; i-- > 0;) out += static_cast<char>(size >> 8 * i);
  return out + "mask";
}

std::string frame(unsigned char first, std::size_t size) {
  return header(first, size) + std::string(size, 'x');
}

std::size_t admit(net::ws_frame_watch& watch, std::string_view bytes) {
  return watch.admit({reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()}, now);
}

}  // namespace

TEST_CASE("ws frame watch: messages up to the limit pass, however they are cut") {
  const std::string good = frame(0x81, 1000) + frame(0x01, 400) + frame(0x89, 125) + frame(0x00, 0) +
                           frame(0x80, 600) + frame(0x82, 1000) + frame(0x81, 0) + frame(0x8a, 3);
  std::mt19937 random(drawn_seed(7));
  for (int round = 0; round < 200; ++round) {
    net::ws_frame_watch watch(1000, burst_of(100));
    for (std::size_t at = 0; at < good.size();) {
      const std::size_t n = std::min<std::size_t>(good.size() - at, 1 + random() % (round < 100 ? 4 : 500));
      REQUIRE(admit(watch, std::string_view(good).substr(at, n)) == n);
      at += n;
    }
    CHECK(watch.found() == verdict::fine);
  }
}

TEST_CASE("ws frame watch: a message over the limit is refused at the header that says so") {
  const struct {
    const char* what;
    std::string before, refused;
  } rows[] = {
      {"one frame", frame(0x81, 10), header(0x81, 1001)},
      {"binary", "", header(0x82, 1001)},
      {"2^35", "", header(0x81, std::uint64_t{1} << 35)},
      {"2^62", "", header(0x01, std::uint64_t{1} << 62)},
      {"2^63", "", header(0x81, std::uint64_t{1} << 63)},
      {"2^64-1", "", header(0x81, ~std::uint64_t{0})},
      {"the last of several fragments", frame(0x01, 600) + frame(0x00, 400), header(0x80, 1)},
      {"a sum that would overflow", frame(0x01, 600), header(0x80, ~std::uint64_t{0} - 100)},
  };
  for (const auto& row : rows) {
    CAPTURE(row.what);
    net::ws_frame_watch watch(1000, burst_of(100));
    const std::string all = row.before + row.refused + "what follows";
    CHECK(admit(watch, all) == row.before.size() + row.refused.size() - 1);
    CHECK(watch.found() == verdict::too_big);
  }
}

TEST_CASE("ws frame watch: an overlong control frame is left to Beast, and is no part of a message") {
  net::ws_frame_watch watch(1000, burst_of(100));
  CHECK(admit(watch, header(0x89, 5000)) == header(0x89, 5000).size());
  CHECK(watch.found() == verdict::fine);
}

TEST_CASE("ws frame watch: frames of every kind count against the rate, empty fragments too") {
  for (const unsigned char first : {0x00, 0x89, 0x8a, 0x81}) {
    CAPTURE(int{first});
    net::ws_frame_watch watch(1000, burst_of(50));
    std::string flood;
    for (int i = 0; i < 51; ++i) flood += frame(first, 0);
    CHECK(admit(watch, flood) == flood.size() - 1);
    CHECK(watch.found() == verdict::too_many);
  }
}

TEST_CASE("ws frame watch: the limit can be raised between messages") {
  net::ws_frame_watch watch(10, burst_of(100));
  CHECK(admit(watch, frame(0x81, 10)) == frame(0x81, 10).size());
  watch.set_most_bytes(1000);
  CHECK(admit(watch, frame(0x81, 1000)) == frame(0x81, 1000).size());
}

}  // namespace weir::tests::ws_frame_watch_test
