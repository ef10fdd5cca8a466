#include "net/memory_returner.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "net/metrics/resident.h"

namespace weir::tests::memory_returner_test {

using namespace weir::net;
namespace {

using block = std::unique_ptr<char[]>;

block touched(std::size_t bytes) {
  block b(new char[bytes]);
  std::memset(b.get(), 1, bytes);
  return b;
}

// Fills the arena of the calling thread up to `bytes`, and empties it.
void fill_and_empty(std::size_t bytes) {
  constexpr std::size_t piece = 64 << 10;
  std::vector<block> held;
  for (std::size_t n = 0; n < bytes; n += piece) held.push_back(touched(piece));
}

}  // namespace

TEST_CASE("what a thread has freed goes back to the system, however large the blocks of others were") {
  memory_returner returner;
  touched(30 << 20);  // glibc's own threshold would be twice this size from here on
  returner.tick();
  const auto before = net::resident_bytes();

  std::promise<void> emptied, seen;
  std::thread other([&] {  // has an arena of its own, which lives as long as the thread
    fill_and_empty(48 << 20);
    emptied.set_value();
    seen.get_future().wait();
  });
  emptied.get_future().wait();
  returner.tick();
  const auto after = net::resident_bytes();
  seen.set_value();
  other.join();
  CHECK(after < before + (8 << 20));
}

}  // namespace weir::tests::memory_returner_test
