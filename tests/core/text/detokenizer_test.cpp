#include "core/text/detokenizer.h"

#include <random>

#include "core/text/tokenizer/unicode.h"
#include "tests/core/text/text_fixtures.h"
#include "tests/support/seed.h"

namespace weir::tests::detokenizer_test {

using namespace weir::core;

namespace {

std::string streamed(const std::shared_ptr<const tokenizer>& t, const std::vector<token_id>& ids,
                     bool skip = true) {
  std::string out;
  detokenizer d(t, skip);
  for (const token_id id : ids) {
    d.push(id, out);
    REQUIRE(is_valid_utf8(out));
  }
  d.flush(out);
  return out;
}

token_id byte_piece(int b) { return 3 + b; }

}  // namespace

TEST_CASE("a character spread over tokens appears when it is whole") {
  const auto t = parsed(byte_level_file());
  std::string out;
  detokenizer d(t);
  CHECK_FALSE(d.push(0xF0, out));
  CHECK_FALSE(d.push(0x9F, out));
  CHECK_FALSE(d.push(0x8D, out));
  CHECK(out.empty());
  CHECK(d.push(0x93, out));
  CHECK(out == "🍓");
  CHECK(d.bytes() == 4);
}

TEST_CASE("broken bytes become U+FFFD where what follows shows it, or at the end") {
  const auto t = parsed(byte_level_file());
  CHECK(streamed(t, {0xE6, 0xBC, 'a', 0xFF, 'b', 0xE6}) == "\uFFFDa\uFFFDb\uFFFD");
}

TEST_CASE("byte pieces give a replacement character for each broken byte") {
  const auto t = parsed(byte_fallback_file());
  const token_id a = *t->id_of("a");
  CHECK(streamed(t, {byte_piece(0xE6), byte_piece(0xBC), a}) == "\uFFFD\uFFFDa");
  CHECK(streamed(t, {byte_piece(0xE6), byte_piece(0xBC), byte_piece(0xA2), byte_piece(0xE6)}) == "漢\uFFFD");
  CHECK(t->decode(std::vector<token_id>{byte_piece(0xE6), byte_piece(0xBC)}, {}) == "\uFFFD\uFFFD");
}

TEST_CASE("special tokens give no text and no bytes unless they are asked for") {
  const auto t = parsed(byte_level_file());
  CHECK(streamed(t, {'a', im_end, 'b'}) == "ab");
  CHECK(streamed(t, {'a', im_end, 'b'}, false) == "a<|im_end|>b");
  std::string out;
  detokenizer d(t, false);
  d.push(im_end, out);
  CHECK(d.bytes() == 0);
}

TEST_CASE("a special token inside a character does not break it") {
  const auto t = parsed(byte_level_file());
  CHECK(streamed(t, {0xC3, im_end, 0xA9}) == "é");
}

TEST_CASE("the stream's text is the decoder's, whatever the tokens, but for the stripped start") {
  std::mt19937 random(drawn_seed(11));
  for (const auto& t : {parsed(byte_level_file()), parsed(byte_fallback_file())}) {
    for (int round = 0; round < 500; ++round) {
      std::vector<token_id> ids;
      for (int i = 0; i < 30; ++i) ids.push_back(static_cast<token_id>(random() % t->vocab_size()));
      std::string stream = streamed(t, ids);
      const std::string whole = t->decode(ids, {.skip_special = true});
      if (stream.size() == whole.size() + 1 && stream[0] == ' ') stream.erase(0, 1);
      REQUIRE(stream == whole);
    }
  }
}

TEST_CASE("the stream keeps the space that the decoder strips") {
  const auto t = parsed(byte_fallback_file());
  const std::vector<token_id> ids = {*t->id_of("▁ab"), *t->id_of("▁a")};
  CHECK(streamed(t, ids) == " ab a");
  CHECK(t->decode(ids, {}) == "ab a");
}

TEST_CASE("a limit cuts inside a token and drops what comes after") {
  const auto t = parsed(byte_level_file());
  const token_id hello = *t->id_of("hello");
  std::string out;
  detokenizer d(t);
  d.push('a', out);
  d.limit(4);
  d.push(hello, out);
  d.push('z', out);
  d.flush(out);
  CHECK(out == "ahel");
  CHECK(d.bytes() == 7);
}

TEST_CASE("ids outside the vocabulary give nothing") {
  const auto t = parsed(byte_level_file());
  CHECK(streamed(t, {'a', 100000, -1, 'b'}) == "ab");
}

}  // namespace weir::tests::detokenizer_test
