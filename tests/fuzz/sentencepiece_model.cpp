// Any bytes as a file of SentencePiece: it is refused, or its tokenizer gives ids of its vocabulary and valid
// text.
#include <cstdint>
#include <cstdlib>

#include "core/text/tokenizer/sentencepiece_tokenizer.h"
#include "core/text/tokenizer/unicode.h"

using namespace weir::core;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    const auto t = sentencepiece_tokenizer(input, {});
    for (const std::string_view text : {"I'm <s> 12  nai\u0308ve 漢字 🍓\xFF ab\n", "  a\u2581\u2581b the", ""}) {
      for (const bool special : {true, false}) {
        const auto ids = t->encode(text, {.add_special = special, .parse_special = special});
        for (const token_id id : ids)
          if (id < 0 || static_cast<std::uint32_t>(id) >= t->vocab_size()) std::abort();
        if (!is_valid_utf8(t->decode(ids, {.skip_special = special}))) std::abort();
      }
    }
  } catch (const refusal& r) {
    if (r.why.message.empty()) std::abort();
  }
  return 0;
}
