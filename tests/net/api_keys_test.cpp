#include "net/api_keys.h"

#include <catch2/catch.hpp>

using namespace weir;
using namespace weir::net;

TEST_CASE("api_keys: a file's lines without blanks, comments and empty lines are its keys") {
  const auto keys = parse_api_keys("# ours\n\n alpha \r\n\tbeta\n   # not a key\ngam ma\n \t\n", "F");
  REQUIRE(keys.has_value());
  CHECK(*keys == std::vector<std::string>{"alpha", "beta", "gam ma"});
  CHECK(*parse_api_keys("last", "F") == std::vector<std::string>{"last"});
}

TEST_CASE("api_keys: a key that is there twice is refused with both lines, a file without one by its name") {
  const auto twice = parse_api_keys("# a\nalpha\nbeta\n\n  alpha \n", "F");
  REQUIRE(twice.has_error());
  CHECK(twice.error().code == core::errc::invalid_param);
  CHECK(twice.error().message == "--api-key-file F: lines 2 and 5 are the same key");
  for (const char* none : {"", "\n\n", "# alpha", " \t\r\n"}) {
    CAPTURE(none);
    const auto keys = parse_api_keys(none, "F");
    REQUIRE(keys.has_error());
    CHECK(keys.error().message == "--api-key-file F: there is no key in it");
  }
}

TEST_CASE("api_keys: who somebody is hangs on the key alone, not on its place") {
  const std::vector<std::string> keys{"alpha", "beta"}, changed{"beta", "gamma", "alpha"};
  const key_ring ring(keys), other(changed);
  CHECK(ring.identity_of("alpha") ==
        0x9e955b68adf6d38e);  // of sha256sum's first eight bytes, the first the lowest
  CHECK(ring.identity_of("alpha") == other.identity_of("alpha"));
  CHECK(ring.identity_of("beta") == other.identity_of("beta"));
  CHECK(ring.identity_of("alpha") != ring.identity_of("beta"));
  CHECK(ring.identities() == std::vector{ring.identity_of("alpha"), ring.identity_of("beta")});
  for (const char* no : {"", "bet", "betaa", "Alpha", "gamma"}) CHECK(ring.identity_of(no) == 0);
}

TEST_CASE("api_keys: an empty key lets nobody in, and is not the same as no keys") {
  const key_ring nobody(std::vector<std::string>{""}), everybody(std::vector<std::string>{});
  CHECK_FALSE(nobody.empty());
  CHECK(nobody.identity_of("") == 0);
  CHECK(everybody.empty());
}
