#include "core/text/base64.h"

#include <catch2/catch.hpp>

#include "tests/support/base64_text.h"

namespace weir::tests::base64_test {

using weir::core::from_base64;

TEST_CASE("base64 gives back every byte") {
  std::string bytes;
  for (int b = 0; b < 256; ++b) {
    CHECK(from_base64(to_base64(bytes)) == bytes);
    bytes.push_back(static_cast<char>(255 - b));
  }
}

TEST_CASE("what is not base64 is nothing") {
  CHECK(from_base64("") == "");
  for (const char* wrong : {"A", "AA", "AAA", "AA=", "A===", "AAAA=", "AA=A", "AB==", "AAB=", "AA A", "AA-_", "===="})
    CHECK_FALSE(from_base64(wrong));
}

}  // namespace weir::tests::base64_test
