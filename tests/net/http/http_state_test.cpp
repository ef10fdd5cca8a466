#include "net/http/http_state.h"

#include <catch2/catch.hpp>

namespace weir::tests::http_state_test {

using net::http_state;
using phase = http_state::phase;
using watch_read = http_state::watch_read;
using std::chrono::milliseconds;

namespace {

constexpr http_state::time_point start{};

// A connection that has read the header of a request which asks to be kept alive.
http_state in_request() {
  http_state s;
  s.await_request();
  s.header_read();
  s.keep_alive(true);
  return s;
}

http_state watching() {
  http_state s = in_request();
  s.watch();
  return s;
}

}  // namespace

TEST_CASE("http state: the first header comes once, and a later one is awaited between requests") {
  http_state s;
  CHECK(s.at() == phase::first_header);
  s.await_request();
  CHECK(s.at() == phase::first_header);
  s.header_read();
  CHECK(s.at() == phase::request);
  s.await_request();
  CHECK(s.at() == phase::next_header);
  s.header_read();
  CHECK(s.at() == phase::request);
}

TEST_CASE("http state: a connection goes on only where the header of this request asked for it") {
  http_state s;
  CHECK_FALSE(s.goes_on());
  s.await_request();
  s.header_read();
  CHECK_FALSE(s.goes_on());  // the header could not be read
  s.keep_alive(true);
  CHECK(s.goes_on());
  s.await_request();
  CHECK_FALSE(s.goes_on());
  s.header_read();
  s.keep_alive(true);
  s.end_after_answer();
  CHECK_FALSE(s.goes_on());
}

TEST_CASE("http state: a read is overdue from its deadline on, at each tick until it ends") {
  http_state s;
  CHECK_FALSE(s.overdue(start));
  s.read_begins(start + milliseconds(100));
  CHECK_FALSE(s.overdue(start + milliseconds(99)));
  CHECK_FALSE(s.late());
  CHECK(s.overdue(start + milliseconds(100)));
  CHECK(s.late());
  CHECK(s.overdue(start + milliseconds(350)));
  s.read_ends();
  CHECK_FALSE(s.overdue(start + milliseconds(600)));
  CHECK(s.late());  // so that its end can be judged
}

TEST_CASE("http state: a read that begins is not late, whatever the one before was") {
  http_state s;
  s.read_begins(start);
  CHECK(s.overdue(start));
  s.read_ends();
  s.read_begins(start + milliseconds(500));
  CHECK_FALSE(s.late());
  CHECK_FALSE(s.overdue(start + milliseconds(499)));
  s.read_begins(start + milliseconds(900));
  CHECK_FALSE(s.overdue(start + milliseconds(899)));
  CHECK(s.overdue(start + milliseconds(900)));
}

TEST_CASE("http state: what a client sends ahead does not end the watch") {
  http_state s = watching();
  CHECK(s.at() == phase::watch);
  for (int i = 0; i < 3; ++i) {
    CHECK(s.watch_read_ended(watch_read::bytes_came));
    s.watch();
    CHECK(s.at() == phase::watch);
  }
  CHECK(s.goes_on());
}

TEST_CASE("http state: a client that has said all is watched on, until it leaves") {
  http_state s = watching();
  CHECK(s.watch_read_ended(watch_read::said_all));
  s.watch();
  CHECK(s.at() == phase::watch);
  CHECK_FALSE(s.watch_read_ended(watch_read::failed));
  CHECK(s.at() == phase::client_gone);
}

TEST_CASE("http state: a watch ends when its last read does") {
  for (const auto how : {watch_read::bytes_came, watch_read::said_all, watch_read::cancelled}) {
    http_state s = watching();
    CHECK(s.end_watch());
    CHECK(s.at() == phase::last_watch);
    CHECK_FALSE(s.watch_read_ended(how));
    CHECK(s.at() == phase::request);
    CHECK(s.goes_on());
    s.await_request();
    CHECK(s.at() == phase::next_header);
  }
}

TEST_CASE("http state: a client that leaves is gone, also while the last read is being cancelled") {
  const bool answer_is_ready = GENERATE(false, true);
  http_state s = watching();
  if (answer_is_ready) CHECK(s.end_watch());
  CHECK_FALSE(s.watch_read_ended(watch_read::failed));
  CHECK(s.at() == phase::client_gone);
  CHECK_FALSE(s.goes_on());
}

TEST_CASE("http state: a read of the watch that the server cancelled otherwise ends the completion") {
  http_state s = watching();
  CHECK_FALSE(s.watch_read_ended(watch_read::cancelled));
  CHECK(s.at() == phase::client_gone);
}

TEST_CASE("http state: a client that cannot be watched any longer is gone, and no read is waited for") {
  for (http_state s : {in_request(), watching()}) {
    s.client_left();
    CHECK(s.at() == phase::client_gone);
    CHECK_FALSE(s.end_watch());
    CHECK(s.at() == phase::client_gone);
    s.keep_alive(true);
    CHECK_FALSE(s.goes_on());
    s.await_request();
    CHECK(s.at() == phase::client_gone);
  }
}

TEST_CASE("http state: without a watch there is none to end") {
  http_state s = in_request();
  CHECK_FALSE(s.end_watch());
  CHECK(s.at() == phase::request);
}

}  // namespace weir::tests::http_state_test
