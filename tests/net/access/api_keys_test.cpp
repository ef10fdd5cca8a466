#include "net/access/api_keys.h"

#include <catch2/catch.hpp>

namespace weir::tests::api_keys_test {

using namespace weir::net;

namespace {

std::string fault_of(std::string_view text) {
  const auto keys = parse_api_keys(text, "F");
  if (keys) return "taken";
  const core::error e = keys.error();
  CHECK(e.code == core::errc::invalid_param);
  CHECK(e.param == "api-key-file");
  const std::string before = "--api-key-file F: ";
  REQUIRE(e.message.starts_with(before));
  return e.message.substr(before.size());
}

}  // namespace

TEST_CASE("api_keys: a file's lines without blanks, comments and empty lines are its keys") {
  const auto keys = parse_api_keys("# ours\n\n alpha \r\n\tbeta\n   # not a key\n \t\n#\n", "F");
  REQUIRE(keys.has_value());
  REQUIRE(keys->size() == 2);
  CHECK((*keys)[0].hash == hash_of_key("alpha"));
  CHECK((*keys)[1].hash == hash_of_key("beta"));
  for (const auto& k : *keys) CHECK(k.rights == key_rights{});
  CHECK(parse_api_keys("last", "F")->front().hash == hash_of_key("last"));
}

TEST_CASE("api_keys: fields say what a key may do, in any order") {
  const auto keys = parse_api_keys(
      "sk-1 name=web priority=-3 jobs=8 tokens_per_min=60000 models=rill,llama-3 admin\n"
      "sk-2\tadmin   tokens_per_min=1000000000 priority=1000000\n"
      "name=odd name=a@b.c-d_e jobs=65536\r\n",  // a key may look like a field
      "F");
  REQUIRE(keys.has_value());
  REQUIRE(keys->size() == 3);
  key_rights all;
  all.name = "web";
  all.priority = -3;
  all.jobs = 8;
  all.tokens_per_min = 60000;
  all.models = {"rill", "llama-3"};
  all.admin = true;
  CHECK((*keys)[0].rights == all);
  key_rights some;
  some.admin = true;
  some.tokens_per_min = 1'000'000'000;
  some.priority = 1'000'000;
  CHECK((*keys)[1].rights == some);
  CHECK((*keys)[1].hash == hash_of_key("sk-2"));
  CHECK((*keys)[2].hash == hash_of_key("name=odd"));
  CHECK((*keys)[2].rights.name == "a@b.c-d_e");
}

TEST_CASE("api_keys: a fault is told with its line and its field") {
  const struct {
    const char *line, *says;
  } rows[] = {
      {"k jobs=0", "jobs has to be a number from 1 to 65536"},
      {"k jobs=65537", "jobs has to be a number from 1 to 65536"},
      {"k jobs=", "jobs has to be a number from 1 to 65536"},
      {"k jobs=3x", "jobs has to be a number from 1 to 65536"},
      {"k jobs=+3", "jobs has to be a number from 1 to 65536"},
      {"k jobs", "jobs needs a value: jobs=…"},
      {"k jobs=1 name=a jobs=1", "jobs is there twice"},
      {"k priority=1.5", "priority has to be a number from -1000000 to 1000000"},
      {"k priority=99999999999999999999", "priority has to be a number from -1000000 to 1000000"},
      {"k tokens_per_min=0", "tokens_per_min has to be a number from 1 to 1000000000"},
      {"k tokens_per_min=1000000001", "tokens_per_min has to be a number from 1 to 1000000000"},
      {"k name=", "name has to be 1 to 64 of A-Z a-z 0-9 _ . - @"},
      {"k name=(unnamed)", "name has to be 1 to 64 of A-Z a-z 0-9 _ . - @"},
      {"k models=", "models has to be names of 1 to 256 bytes with commas between them"},
      {"k models=a,", "models has to be names of 1 to 256 bytes with commas between them"},
      {"k models=a,,b", "models has to be names of 1 to 256 bytes with commas between them"},
      {"k models=a,b,a", "models has a name twice"},
      {"k admin=yes", "admin has no value"},
      {"k admin admin", "admin is there twice"},
      {"k job=3",
       "'job' is no field; after the key come name= priority= jobs= tokens_per_min= models= or admin"},
      {"k name=a horse",
       "word 3 is no field; after the key come name= priority= jobs= tokens_per_min= models= or admin"},
      {"k Jobs=3",
       "word 2 is no field; after the key come name= priority= jobs= tokens_per_min= models= or admin"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.line);
    CHECK(fault_of(std::string("# ours\nfirst\n") + r.line + "\nlast\n") == std::string("line 3: ") + r.says);
  }
  CHECK(fault_of("k name=" + std::string(64, 'n')) == "taken");
  CHECK(fault_of("k name=" + std::string(65, 'n')) ==
        "line 1: name has to be 1 to 64 of A-Z a-z 0-9 _ . - @");
  std::string many = "k models=m0";
  for (int i = 1; i < 64; ++i) many += ",m" + std::to_string(i);
  CHECK(fault_of(many) == "taken");
  CHECK(fault_of(many + ",m64") == "line 1: models has over 64 names");
  CHECK(fault_of(std::string(17 * 1024, 'k')) == "line 1: it has over 16384 bytes");
}

TEST_CASE("api_keys: no message shows a word that may be a part of a key") {
  for (const char* line : {"correct horse battery", "secret abcDEF==", "secret jobs=horse",
                           "secret name=ho/rse", "secret thisisaverylongsecretword=1"}) {
    CAPTURE(line);
    const auto says = fault_of(line);
    for (const char* part : {"correct", "horse", "battery", "secret", "abc", "ho/rse"})
      CHECK(says.find(part) == says.npos);
  }
}

TEST_CASE("api_keys: a key that is there twice is refused with both lines, a file without one by its name") {
  CHECK(fault_of("# a\nalpha\nbeta\n\n  alpha admin\n") == "lines 2 and 5 are the same key");
  for (const char* none : {"", "\n\n", "# alpha", " \t\r\n"}) {
    CAPTURE(none);
    CHECK(fault_of(none) == "there is no key in it");
  }
  std::string many;
  for (std::size_t i = 0; i < most_keys; ++i) many += "k" + std::to_string(i) + "\n";
  CHECK(fault_of(many) == "taken");
  CHECK(fault_of(many + "one more") ==
        "line 4097: word 2 is no field; after the key come name= priority= "
        "jobs= tokens_per_min= models= or admin");
  CHECK(fault_of(many + "more") == "it has over 4096 keys");
}

TEST_CASE("api_keys: who somebody is hangs on the key alone") {
  CHECK(identity_of(hash_of_key("alpha")) ==
        0x9e955b68adf6d38e);  // of sha256sum's first eight bytes, the first the lowest
  CHECK(same_key(hash_of_key("alpha"), hash_of_key("alpha")));
  for (const char* other : {"", "alph", "alphaa", "Alpha"})
    CHECK_FALSE(same_key(hash_of_key("alpha"), hash_of_key(other)));
  CHECK(identity_of(key_hash{}) == 1);
}

}  // namespace weir::tests::api_keys_test
