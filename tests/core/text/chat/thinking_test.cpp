#include "core/text/chat/thinking.h"

#include <catch2/catch.hpp>
#include <random>

namespace weir::tests::thinking_test {

using namespace weir::core;

namespace {

// Splits a text that arrives in pieces, which end at `cuts`. Returns the text with thoughts in parentheses.
std::string parts_of(std::string_view text, std::vector<std::size_t> cuts) {
  thinking_splitter s;
  std::string thoughts, said, out;
  bool last = false;
  const auto show = [&](std::string_view piece, bool thought) {
    CHECK_FALSE(piece.empty());
    if (thought != last) out += thought ? "(" : ")";
    last = thought;
    out += piece;
  };
  std::size_t at = 0;
  cuts.push_back(text.size());
  for (const std::size_t cut : cuts) {
    s.take(text.substr(at, cut - at), show);
    at = cut;
  }
  s.end(show);
  return out + (last ? ")" : "");
}

}  // namespace

TEST_CASE("thinking: thoughts and answers are parted, however the text is cut") {
  const struct {
    const char *text, *parts;
  } rows[] = {
      {"<think>\nhm\n</think>\n\nYes.", "(hm\n)Yes."},
      {"[THINK]a[/THINK]b", "(a)b"},
      {"a <b> [c] </thin> <think", "a <b> [c] </thin> <think"},
      {"<think></think>x", "x"},
      {"<<think>a</think><think>b</think>c", "<(ab)c"},
      {"plain", "plain"},
      {"only</think>an end", "onlyan end"},
  };
  std::mt19937 random(1);
  for (const auto& r : rows) {
    CAPTURE(r.text);
    const std::string_view text = r.text;
    CHECK(parts_of(text, {}) == r.parts);
    for (int i = 0; i < 200; ++i) {
      std::vector<std::size_t> cuts;
      for (std::size_t at = 1; at < text.size(); ++at)
        if (random() % 3 == 0) cuts.push_back(at);
      CHECK(parts_of(text, cuts) == r.parts);
    }
  }
}

}  // namespace weir::tests::thinking_test
