#include <catch2/catch.hpp>

#include "core/text/tokenizer/tokenizer.h"

namespace weir::tests::numbered_test {

using namespace weir::core;
using ids = std::vector<token_id>;

TEST_CASE("the simulated model's prompt is its bytes, and its tokens read as their numbers") {
  const auto t = make_sim_tokenizer();
  CHECK(t->encode("a\n\xFF", {}) == ids{97, 10, 255});
  CHECK(t->vocab_size() == 1000);
  CHECK(t->token_bytes(7) == "w007 ");
  CHECK(t->decode(ids{7, 999}, {}) == "w007 w999 ");
  CHECK(t->token_bytes(1000) == "");
  CHECK_FALSE(t->bos());
}

TEST_CASE("bytes are their own ids, and characters come out whole") {
  const auto t = make_byte_tokenizer();
  const auto text = t->encode("a\u00e9\xFF", {});
  CHECK(text == ids{97, 0xC3, 0xA9, 0xFF});
  CHECK(t->decode(text, {}) == "a\u00e9\uFFFD");
  CHECK(t->token_bytes(0xC3) == "\xC3");
  CHECK(t->token_bytes(0).size() == 1);
  CHECK(t->token_bytes(257) == "");
  CHECK(t->is_special(256));
  CHECK(t->decode(ids{97, 256}, {.skip_special = true}) == "a");
  CHECK(t->piece(10) == "<0x0A>");
  for (token_id id = 0; id < 257; ++id) CHECK(t->id_of(t->piece(id)) == id);
  CHECK(t->encode(t->piece(256), {}).size() == t->piece(256).size());
}

TEST_CASE("numbered words are their ids, and other words always the same one") {
  const auto t = make_numbered_tokenizer(5000);
  CHECK(t->encode("w000017 w004999\n w000000", {}) == ids{17, 4999, 0});
  CHECK(t->decode(ids{17, 4999}, {}) == "w000017 w004999 ");
  const auto words = t->encode("hello w005000 hello w17", {});
  REQUIRE(words.size() == 4);
  CHECK(words[0] == words[2]);
  for (const auto id : words) CHECK((id >= 0 && id < 5000));
  CHECK(t->id_of("w000017") == 17);
  CHECK(t->id_of("w17") == std::nullopt);
  CHECK(t->id_of("") == std::nullopt);
  CHECK(t->id_of("w+00017") == std::nullopt);
}

}  // namespace weir::tests::numbered_test
