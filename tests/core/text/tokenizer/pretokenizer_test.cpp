#include "core/text/tokenizer/pretokenizer.h"

#include <catch2/catch.hpp>

namespace weir::tests::pretokenizer_test {

using namespace weir::core;

namespace {

using list = std::vector<std::string>;

list words(const std::string& field, std::string_view text, bool opens = true) {
  const auto value = boost::json::parse(field);
  word_list cut;
  pretokenizer(json_field(value, "pre_tokenizer")).cut(text, opens, cut);
  list out;
  for (const auto& w : cut.words) out.emplace_back(w.of(cut.text));
  return out;
}

list split(const char* behavior, std::string_view text, bool invert = false) {
  return words(fmt::format(R"({{"type":"Split","pattern":{{"Regex":"-"}},"behavior":"{}","invert":{}}})",
                           behavior, invert),
               text);
}

}  // namespace

TEST_CASE("each behaviour of a split does its own thing with what it finds") {
  CHECK(split("Isolated", "the-final--countdown") == list{"the", "-", "final", "-", "-", "countdown"});
  CHECK(split("Removed", "the-final--countdown") == list{"the", "final", "countdown"});
  CHECK(split("MergedWithPrevious", "the-final--countdown") == list{"the-", "final-", "-", "countdown"});
  CHECK(split("MergedWithNext", "the-final--countdown") == list{"the", "-final", "-", "-countdown"});
  CHECK(split("Contiguous", "the-final--countdown") == list{"the", "-", "final", "--", "countdown"});
  CHECK(split("Removed", "a-b", true) == list{"-"});
}

TEST_CASE("byte-level words are cut as GPT-2 cuts them and spelled in its alphabet") {
  const char* plain = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})";
  CHECK(words(plain, "I'll  go é\n") == list{"I", "'ll", "Ġ", "Ġgo", "ĠÃ©", "Ċ"});
  CHECK(words(R"({"type":"ByteLevel"})", "Hi") == list{"ĠHi"});
  CHECK(words(R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})", "a b") == list{"aĠb"});
}

TEST_CASE("digits are cut out together or one by one, and are all of Unicode's numbers") {
  CHECK(words(R"({"type":"Digits","individual_digits":false})", "a12½b3") == list{"a", "12½", "b", "3"});
  CHECK(words(R"({"type":"Digits","individual_digits":true})", "a12b") == list{"a", "1", "2", "b"});
}

TEST_CASE("punctuation is Unicode's and all of ASCII's") {
  CHECK(words(R"({"type":"Punctuation"})", "a$。b") == list{"a", "$", "。", "b"});
  CHECK(words(R"({"type":"Punctuation","behavior":"Contiguous"})", "a,.b") == list{"a", ",.", "b"});
}

TEST_CASE("white space divides words and is dropped") {
  CHECK(words(R"({"type":"WhitespaceSplit"})", " a, b\u3000c ") == list{"a,", "b", "c"});
  CHECK(words(R"({"type":"Whitespace"})", "a, b!?") == list{"a", ",", "b", "!?"});
}

TEST_CASE("metaspace spells spaces and cuts before them") {
  const char* always = R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})";
  const char* first = R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":false})";
  CHECK(words(always, "a b") == list{"▁a", "▁b"});
  CHECK(words(always, " a") == list{"▁a"});
  CHECK(words(first, "a b", true) == list{"▁a▁b"});
  CHECK(words(first, "a b", false) == list{"a▁b"});
  CHECK(words(R"({"type":"Metaspace","replacement":"▁","add_prefix_space":false})", "a b") ==
        list{"a", "▁b"});
}

TEST_CASE("steps of a sequence cut what the steps before them left") {
  const char* falcon = R"({"type":"Sequence","pretokenizers":[{"type":"Punctuation","behavior":"Contiguous"},
      {"type":"ByteLevel","add_prefix_space":false},{"type":"Digits","individual_digits":false},
      {"type":"Split","pattern":{"Regex":"[0-9][0-9][0-9]"},"behavior":"Isolated","invert":false}]})";
  CHECK(words(falcon, "on 12345!?") == list{"on", "Ġ", "123", "45", "!?"});
}

TEST_CASE("a text without a pre-tokenizer is one word, and an empty one is none") {
  word_list cut;
  pretokenizer(std::nullopt).cut("a b", true, cut);
  CHECK(cut.words.size() == 1);
  pretokenizer(std::nullopt).cut("", true, cut);
  CHECK(cut.words.empty());
}

TEST_CASE("a pre-tokenizer that is not known is refused by name") {
  CHECK_THROWS_AS(words(R"({"type":"BertPreTokenizer"})", "a"), refusal);
  CHECK_THROWS_AS(words(R"({"type":"Split","pattern":{"String":"a"},"behavior":"Sideways"})", "a"), refusal);
}

TEST_CASE("pre-tokenizers that make a text much longer, and thousands of them, are refused by name") {
  const auto complaint = [](const std::string& step, int times) {
    std::string all = R"({"type":"Sequence","pretokenizers":[)";
    for (int i = 0; i < times; ++i) all += (i > 0 ? "," : "") + step;
    try {
      words(all + "]}", "a");
    } catch (const refusal& r) {
      return r.why.message;
    }
    return std::string();
  };
  const char* bytes = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})";
  CHECK(complaint(bytes, 5).empty());
  CHECK(complaint(bytes, 40).find("pre-tokenizer 'ByteLevel' makes a text more than 32 times") !=
        std::string::npos);
  CHECK(complaint(R"({"type":"ByteLevel"})", 3).find("'ByteLevel'") != std::string::npos);
  CHECK(complaint(R"({"type":"Metaspace","replacement":"▁"})", 3).find("'Metaspace'") != std::string::npos);
  CHECK(complaint(R"({"type":"Split","pattern":{"String":"a"},"behavior":"Isolated"})", 20'000) ==
        "pre_tokenizer.pretokenizers[64]: pre-tokenizer 'Split' is one of more than 64 rules");
}

}  // namespace weir::tests::pretokenizer_test
