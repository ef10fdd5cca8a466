// Any bytes as a file of tiktoken, alone and behind the lines of all bytes: it is refused, or its tokenizer
// gives back the text that it encoded.
#include <cstdint>
#include <cstdlib>

#include "core/text/tokenizer/tiktoken_tokenizer.h"
#include "tests/support/base64_text.h"

using namespace weir::core;

namespace {

std::string lines_of_bytes() {
  std::string out;
  for (int b = 0; b < 256; ++b)
    out += fmt::format("{} {}\n", weir::tests::to_base64(std::string(1, static_cast<char>(b))), b);
  return out;
}

void try_file(const std::string& file, const char* name) {
  tokenizer_settings settings;
  settings.class_name = name;
  try {
    const auto t = tiktoken_tokenizer(file, "fuzz", settings);
    for (const std::string_view text : {"I'm HERE 12345  na\u00EFve 漢字かな 🍓 ab\r\n\n", "  \u0000 x", ""}) {
      const auto ids = t->encode(text, {});
      for (const token_id id : ids)
        if (id < 0 || static_cast<std::uint32_t>(id) >= t->vocab_size()) std::abort();
      if (t->decode(ids, {}) != text) std::abort();
    }
  } catch (const refusal& r) {
    if (r.why.message.empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string bytes = lines_of_bytes();
  const std::string input(reinterpret_cast<const char*>(data), size);
  (void)looks_like_tiktoken(input);
  try_file(input, "QWenTokenizer");
  try_file(bytes + input, size % 2 ? "QWenTokenizer" : "TikTokenTokenizer");
  return 0;
}
