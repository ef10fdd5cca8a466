// Whatever a tokenizer_config.json holds, it is refused or read.
#include <cstdint>

#include "core/text/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view file = R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})";
  (void)weir::core::parse_tokenizer(file, std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
