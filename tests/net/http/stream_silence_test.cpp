#include "net/http/stream_silence.h"

#include <catch2/catch.hpp>

namespace weir::tests::stream_silence_test {

using namespace weir::net;
using namespace std::chrono_literals;

TEST_CASE("silence: a stream that sends nothing has to, once each time, counted from the first tick after") {
  stream_silence s(1s);
  const stream_silence::time_point t{100s};
  CHECK_FALSE(s.tick(t));
  CHECK_FALSE(s.tick(t + 999ms));
  CHECK_FALSE(s.take());
  CHECK(s.tick(t + 1000ms));
  CHECK(s.take());
  CHECK_FALSE(s.take());
  CHECK_FALSE(s.tick(t + 1999ms));
  CHECK(s.tick(t + 2000ms));
}

TEST_CASE("silence: what is sent ends it") {
  stream_silence s(1s);
  const stream_silence::time_point t{100s};
  s.tick(t);
  s.sent();
  CHECK_FALSE(s.tick(t + 1500ms));
  CHECK_FALSE(s.tick(t + 2400ms));
  CHECK(s.tick(t + 2500ms));
  s.sent();  // before anybody took it
  CHECK_FALSE(s.take());
}

TEST_CASE("silence: where none is too long, nothing has to be sent") {
  stream_silence s(0s);
  const stream_silence::time_point t{100s};
  CHECK_FALSE(s.tick(t));
  CHECK_FALSE(s.tick(t + 24h));
  CHECK_FALSE(s.take());
}

}  // namespace weir::tests::stream_silence_test
