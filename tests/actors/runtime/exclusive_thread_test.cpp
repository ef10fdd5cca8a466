// The thread that a device lives on.
#include <pthread.h>

#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

#include "actors/runtime/exclusive_thread.h"

namespace weir::tests::exclusive_thread_test {

using weir::exclusive_thread;

TEST_CASE("it carries its name, runs on_start first, and knows itself") {
  bool started = false;
  exclusive_thread t({.name = "a name longer than fifteen", .on_start = [&] { started = true; }});
  CHECK(started);
  CHECK_FALSE(t.here());
  boost::asio::post(t.get_executor(), boost::asio::use_future([&] {
                      CHECK(t.here());
                      char name[16];
                      pthread_getname_np(pthread_self(), name, sizeof name);
                      CHECK(std::string(name) == "a name longer t");
                    }))
      .get();
}

TEST_CASE("what on_start throws comes out of the constructor") {
  CHECK_THROWS_WITH(exclusive_thread({.on_start = [] { throw std::runtime_error("no device"); }}),
                    "no device");
}

TEST_CASE("it can be pinned to a core, and says so where that fails") {
  CHECK_NOTHROW(exclusive_thread({.cpu = 0}));
  CHECK_THROWS_AS(exclusive_thread({.cpu = -1}), std::system_error);
}

TEST_CASE("it outlives a stop of its loop by somebody else, and still joins") {
  exclusive_thread t({.name = "stopped"});
  t.get_executor().context().stop();
}

}  // namespace weir::tests::exclusive_thread_test
