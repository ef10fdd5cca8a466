#include "core/text/tokenizer/normalizer.h"

#include <catch2/catch.hpp>

#include "core/text/tokenizer/unicode.h"

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
  CHECK(complaint(R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Precompiled"}]})") ==
        "normalizer.normalizers[1]: normalizer 'Precompiled' is not supported yet");
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
