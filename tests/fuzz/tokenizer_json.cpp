// Whatever a tokenizer.json holds, it is refused or it works: loading, encoding and decoding never crash, and
// what comes out is valid UTF-8. The input is the file, or after a NUL byte the text for a small fixed one.
#include <cstdint>
#include <cstdlib>

#include "core/text/detokenizer.h"
#include "core/text/tokenizer/unicode.h"

using namespace weir::core;

namespace {

constexpr std::string_view small_file = R"({
  "added_tokens": [{"id": 1, "content": "<s>", "special": true, "normalized": false, "rstrip": true},
                   {"id": 2, "content": "ab c", "special": false, "normalized": true, "lstrip": true}],
  "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"},
                 {"type": "Replace", "pattern": {"Regex": "z+"}, "content": "é"}]},
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": "(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|\\s+(?!\\S)|\\s+"},
     "behavior": "MergedWithNext"},
    {"type": "Metaspace", "replacement": "▁"}, {"type": "Digits", "individual_digits": true}]},
  "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
  "model": {"type": "BPE", "unk_token": "<u>", "byte_fallback": true, "vocab": {"<u>": 0, "a": 3, "b": 4, "▁": 5,
            "ab": 6, "▁ab": 7, "<0xC3>": 8, "<0xA9>": 9}, "merges": ["a b", "▁ ab"]}})";

void require(bool holds) {
  if (!holds) std::abort();
}

void try_text(const std::shared_ptr<const tokenizer>& t, std::string_view text) {
  for (const bool special : {true, false}) {
    const auto ids = t->encode(text, {.add_special = special, .parse_special = special});
    for (const token_id id : ids) require(id >= 0 && static_cast<std::uint32_t>(id) < t->vocab_size());
    require(is_valid_utf8(t->decode(ids, {.clean_up_spaces = special})));
    detokenizer stream(t, special);
    for (const token_id id : ids) {
      std::string out;
      stream.push(id, out);
      require(is_valid_utf8(out));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with('\0')) {
    static const auto small = *parse_tokenizer(small_file, "");
    try_text(small, input.substr(1));
  } else if (const auto t = parse_tokenizer(input, "")) {
    try_text(*t, "I'm <s> 12 naïve\u0301 漢字 🍓\xFF ab");
  }
  return 0;
}
