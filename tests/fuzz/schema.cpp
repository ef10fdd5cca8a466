// A JSON Schema, then "\n---\n" and a text that is followed through it.
#include "tests/fuzz/followed_grammar.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weir::tests::follow_grammar({reinterpret_cast<const char*>(data), size}, "schema");
  return 0;
}
