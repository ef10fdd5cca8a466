#include "core/text/tokenizer/decoder.h"

#include <catch2/catch.hpp>

#include "tests/core/text/text_fixtures.h"

namespace weir::tests::decoder_test {

using namespace weir::core;

namespace {

decoder parse(const char* field) {
  const auto value = json(field);
  return decoder(json_field(value, "decoder"));
}

std::string joined(const decoder& d, const std::vector<std::string>& pieces) {
  std::string text;
  for (const auto& p : pieces) text += d.read(p).bytes;
  d.finish(text, pieces.empty() ? "" : pieces[0]);
  return text;
}

}  // namespace

TEST_CASE("a strip over fused text takes spaces off its start alone") {
  const auto d =
      parse(R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},
      {"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})");
  CHECK(joined(d, {"▁a", "▁b"}) == "a b");
  CHECK(joined(d, {"▁▁a"}) == " a");
  CHECK(joined(d, {"a"}) == "a");
  CHECK(d.read("<0xE2>").byte_piece);
  CHECK(d.read("<0xE2>").bytes == "\xE2");
  CHECK_FALSE(d.read("<0xG2>").byte_piece);
}

TEST_CASE("a strip before the text is fused is every piece's own") {
  const auto d = parse(R"({"type":"Strip","content":"_","start":2,"stop":1})");
  CHECK(joined(d, {"___a__", "_b_"}) == "_a_b");
}

TEST_CASE("metaspace drops the spaces of the first piece and reads them in the others") {
  const auto d = parse(R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})");
  CHECK(joined(d, {"▁a", "▁b"}) == "a b");
  CHECK(joined(parse(R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"never"})"), {"▁a", "▁b"}) ==
        " a b");
}

TEST_CASE("byte-level pieces are bytes, and other pieces themselves") {
  const auto d = parse(R"({"type":"ByteLevel"})");
  CHECK(d.read("ĠÃ").bytes == " \xC3");
  CHECK(d.read("two words").bytes == "two words");
}

TEST_CASE("pieces without a decoder are joined with spaces") {
  CHECK(joined(decoder(std::nullopt), {"a", "b"}) == "a b");
  CHECK(joined(decoder(std::nullopt), {}) == "");
}

TEST_CASE("decoders that would see across tokens, or are not known, are refused by name") {
  CHECK_THROWS_AS(parse(R"({"type":"WordPiece","prefix":"##"})"), refusal);
  CHECK_THROWS_AS(parse(R"({"type":"Sequence","decoders":[{"type":"Fuse"},
      {"type":"Replace","pattern":{"String":"a"},"content":"b"}]})"),
                  refusal);
  CHECK_THROWS_AS(parse(R"({"type":"Sequence","decoders":[{"type":"Fuse"},
      {"type":"Strip","content":" ","start":0,"stop":1}]})"),
                  refusal);
}

TEST_CASE("cleaning up takes the space before English punctuation and contractions") {
  CHECK(clean_up_spaces("Is n't it , you 'll say ' maybe ' ? I 'm , he 's .") ==
        "Isn't it, you 'll say'maybe '? I'm, he's.");
}

TEST_CASE("decoders that make a piece much longer, and thousands of them, are refused by name") {
  const auto complaint = [](const std::string& step, int times) {
    std::string all = R"({"type":"Sequence","decoders":[)";
    for (int i = 0; i < times; ++i) all += (i > 0 ? "," : "") + step;
    try {
      parse((all + "]}").c_str());
    } catch (const refusal& r) {
      return r.why.message;
    }
    return std::string();
  };
  CHECK(complaint(R"({"type":"Replace","pattern":{"String":"a"},"content":"aaa"})", 6)
            .find("decoder 'Replace' makes a text more than 32 times") != std::string::npos);
  CHECK(
      complaint(R"({"type":"ByteFallback"})", 2'000).find("decoder 'ByteFallback' is one of more than 64") !=
      std::string::npos);
}

}  // namespace weir::tests::decoder_test
