#include "core/text/tokenizer/normalizer.h"

#include <catch2/catch.hpp>

#include "core/text/tokenizer/unicode.h"
#include "tests/support/base64_text.h"
#include "tests/support/charsmap_bytes.h"

namespace weir::tests::normalizer_test {

using namespace weir::core;

namespace {

std::string normalized(const char* field, std::string text) {
  const auto value = boost::json::parse(field);
  normalizer(json_field(value, "tokenizer.json.normalizer")).apply(text);
  return text;
}

std::string form(const char* name, std::string text) {
  return normalized(fmt::format(R"({{"type":"{}"}})", name).c_str(), std::move(text));
}

std::string complaint(const char* field) {
  const auto value = boost::json::parse(field);
  try {
    normalizer(json_field(value, "normalizer"));
  } catch (const refusal& r) {
    return r.why.message;
  }
  return "";
}

}  // namespace

TEST_CASE("the four Unicode forms compose, decompose and fold as they say") {
  CHECK(form("NFC", "e\u0301 \uFB01 한") == "é \uFB01 한");
  CHECK(form("NFD", "é \uFB01") == "e\u0301 \uFB01");
  CHECK(form("NFD", "한") == "\u1112\u1161\u11AB");
  CHECK(form("NFC", "\u1112\u1161\u11AB") == "한");
  CHECK(form("NFKC", "\uFB01 ² Å\u0301") == "fi 2 Ǻ");
  CHECK(form("NFKD", "Ｆé") == "Fe\u0301");
}

TEST_CASE("marks are put in canonical order, however many there are") {
  CHECK(form("NFD", "a\u0301\u0323") == "a\u0323\u0301");
  CHECK(form("NFC", "a\u0301\u0323") == "ạ\u0301");
  std::string text = "a", above, below;
  for (int i = 0; i < 100000; ++i) {
    text += "\u0301\u0323";
    above += "\u0301";
    below += "\u0323";
  }
  CHECK(form("NFD", text) == "a" + below + above);
}

TEST_CASE("text is stripped of Unicode white space at the ends asked for") {
  CHECK(normalized(R"({"type":"Strip","strip_left":true,"strip_right":true})", "\u3000 a b \n") == "a b");
  CHECK(normalized(R"({"type":"Strip","strip_left":true,"strip_right":false})", " a ") == "a ");
  CHECK(normalized(R"({"type":"Strip","strip_left":false,"strip_right":true})", " a ") == " a");
  CHECK(normalized(R"({"type":"Strip","strip_left":true,"strip_right":true})", " \n") == "");
}

TEST_CASE("lower case and accents go character by character") {
  CHECK(normalized(R"({"type":"Lowercase"})", "ÀÉ ΑΣ İ") == "àé ασ i\u0307");
  CHECK(normalized(R"({"type":"StripAccents"})", "e\u0301a") == "ea");
}

TEST_CASE("a sequence runs in order, and nothing is put before an empty text") {
  const char* llama = R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},
      {"type":"Replace","pattern":{"String":" "},"content":"▁"}]})";
  CHECK(normalized(llama, "a b") == "▁a▁b");
  CHECK(normalized(llama, " a") == "▁▁a");
  CHECK(normalized(llama, "") == "");
  CHECK(normalized(R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "})", "a   b c") == "a b c");
}

TEST_CASE("a normalizer that is not known is refused by name and place") {
  CHECK(complaint(R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"BertNormalizer"}]})") ==
        "normalizer.normalizers[1]: normalizer 'BertNormalizer' is not supported yet");
}

TEST_CASE("Nmt drops control characters and makes spaces of what looks like one") {
  CHECK(normalized(R"({"type":"Nmt"})", "\x01" "a\tb\u200Bc\u2581\x7F\uFEFF") == "a b c  ");
}

namespace {

std::string precompiled(const charsmap_writer& rules) {
  const std::string table = rules.table();
  return R"({"type":"Precompiled","precompiled_charsmap":")" + to_base64(table) + "\"}";
}

}  // namespace

TEST_CASE("a table replaces small clusters whole, by their shortest string, and else single characters") {
  const std::string step = precompiled({{"A", "a"}, {"e\u0301", "é"}, {"\r", " "}, {"\n", " "}, {"ｶ", "カ"}});
  CHECK(normalized(step.c_str(), "xAe\u0301A") == "xaéa");
  CHECK(normalized(step.c_str(), "A\u0301b") == "ab");         // the cluster begins with A, and has 3 bytes
  CHECK(normalized(step.c_str(), "A\u0301\u0301\u0301b") == "a\u0301\u0301\u0301b");  // 7 bytes
  CHECK(normalized(step.c_str(), "e\u0301\u0301") == "é");
  CHECK(normalized(step.c_str(), "\r\n") == " ");
  CHECK(normalized(step.c_str(), "ｶﾞ") == "カﾞ");
  CHECK(normalized(step.c_str(), "") == "");
}

TEST_CASE("a table that is not one, or makes a text much longer, is refused by name") {
  CHECK(complaint(R"({"type":"Precompiled","precompiled_charsmap":"a!=="})") ==
        "normalizer.precompiled_charsmap: is not base64");
  CHECK(complaint(R"({"type":"Precompiled"})") == "normalizer: 'precompiled_charsmap' is missing");
  CHECK(complaint(R"({"type":"Precompiled","precompiled_charsmap":"AAAA"})")
            .find("normalizer.precompiled_charsmap: its first four bytes") == 0);
  CHECK(complaint(precompiled({{"a", std::string(33, 'x')}}).c_str()).find("'Precompiled' makes a text more") !=
        std::string::npos);
}

TEST_CASE("a Replace of at least two spaces by three bytes counts as that") {
  // With the table's 20 it is 30; were one space enough, it would be 60.
  const std::string table = precompiled({{"a", std::string(20, 'x')}});
  const auto with = [&](const char* pattern) {
    return complaint(fmt::format(R"({{"type":"Sequence","normalizers":[{},
        {{"type":"Replace","pattern":{{"Regex":"{}"}},"content":"▁"}}]}})", table, pattern).c_str());
  };
  CHECK(with(" {2,}").empty());
  for (const char* shorter : {" +", " (?= )", "  \\\\K ", "(  )"})
    CHECK(with(shorter).find("makes a text") != std::string::npos);
}

namespace {

std::string sequence_of(const std::string& step, int times) {
  std::string out = R"({"type":"Sequence","normalizers":[)";
  for (int i = 0; i < times; ++i) out += (i > 0 ? "," : "") + step;
  return out + "]}";
}

}  // namespace

TEST_CASE("rules that make a text much longer, and thousands of rules, are refused by name") {
  const std::string long_text(31, 'b');
  const std::string grows = R"({"type":"Replace","pattern":{"String":"b"},"content":")" + long_text + "\"}";
  CHECK(complaint(sequence_of(grows, 1).c_str()).empty());
  CHECK(complaint(sequence_of(grows, 6).c_str()) ==
        "normalizer.normalizers[1]: normalizer 'Replace' makes a text more than 32 times as long, together "
        "with "
        "the rules before it");
  for (const char* empty : {"b*", "(?=b)", "x?|"}) {  // a match of no bytes, between any two characters
    CAPTURE(empty);
    const auto between = fmt::format(R"({{"type":"Replace","pattern":{{"Regex":"{}"}},"content":"{}"}})",
                                     empty, long_text + "b");
    CHECK(complaint(between.c_str()).find("'Replace' makes a text") != std::string::npos);
  }
  CHECK(complaint(sequence_of(R"({"type":"Prepend","prepend":"b"})", 6).c_str()).find("'Prepend'") !=
        std::string::npos);
  CHECK(complaint(sequence_of(R"({"type":"Lowercase"})", 2'000).c_str()) ==
        "normalizer.normalizers[64]: normalizer 'Lowercase' is one of more than 64 rules");
}

}  // namespace weir::tests::normalizer_test
