#include "net/bus/nkey.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <random>

#include "tests/support/budget.h"
#include "tests/support/nats_server.h"
#include "tests/support/seed.h"

namespace weir::tests::nkey_test {

// The example pair of NATS' documentation of nkeys.
const std::string seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
const std::string name = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

TEST_CASE("nkeys: a seed gives the public half that NATS' tools give") {
  const auto key = net::nkey::parse(seed);
  REQUIRE(key.has_value());
  CHECK(key->seed_text() == seed);
  CHECK(key->public_text().value() == name);
}

TEST_CASE("nkeys: decorations around a seed are no matter, a second seed is") {
  CHECK(net::nkey::parse("-----BEGIN USER NKEY SEED-----\n" + seed + "\n------END USER NKEY SEED------\n")
            .has_value());
  CHECK(net::nkey::parse("  " + seed + "\r\n# of the worker\n").has_value());
  CHECK(!net::nkey::parse(seed + "\n" + seed));
}

TEST_CASE("nkeys: a seed with any character changed is none, and no message repeats it") {
  CHECK(!net::nkey::parse(""));
  CHECK(!net::nkey::parse(name));
  for (std::size_t i = 0; i < seed.size(); ++i) {
    CAPTURE(i);
    for (const char c : {'A', 'Q', '7', '1', 'a', ' '}) {
      auto other = seed;
      other[i] = c;
      if (other == seed) continue;
      const auto key = net::nkey::parse(other);
      REQUIRE(!key);
      CHECK(key.error().message.find(other.substr(0, 10)) == std::string::npos);
    }
    CHECK(!net::nkey::parse(seed.substr(0, i)));
  }
}

TEST_CASE("nkeys: any 32 bytes are a key, whose texts are read back and whose signatures are 64 bytes") {
  std::mt19937_64 random(drawn_seed(1));
  for (unsigned i = 0; i < rounds(50); ++i) {
    net::nkey::seed_bytes bytes;
    for (auto& b : bytes) b = static_cast<unsigned char>(random());
    const net::nkey key(bytes);
    const auto again = net::nkey::parse(key.seed_text());
    REQUIRE(again.has_value());
    CHECK(again->public_text().value() == key.public_text().value());
    CHECK(key.public_text()->size() == 56);
    CHECK(key.sign("nonce").value() == again->sign("nonce").value());
    CHECK(key.sign("nonce").value() != key.sign("other").value());
  }
}

TEST_CASE("nkeys: a file is named with its option where it is wrong") {
  scratch_directory scratch;
  const auto file = (scratch.path() / "seed").string();
  CHECK(net::nkey::read("join-nkey", file).error().message ==
        "--join-nkey " + file + ": cannot be read, or is too long");
  std::ofstream{file};
  CHECK(net::nkey::read("join-nkey", file).error().message == "--join-nkey " + file + ": is empty");
  std::ofstream(file) << std::string(5000, 'x');
  CHECK(net::nkey::read("join-nkey", file).error().param == "join-nkey");
  std::ofstream(file) << seed << '\n';
  CHECK(net::nkey::read("join-nkey", file).has_value());
}

}  // namespace weir::tests::nkey_test
