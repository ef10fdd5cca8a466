// Any bytes as the text of a browser token, as its secret, as its claims, and as the body of a request for
// one.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "net/access/browser_token.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::net;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (open_token(text, "a secret", 0)) std::abort();  // nobody guesses a signature
  (void)open_token("weir_token_" + std::string(text), text, 0);
  token_claims c;
  c.expires_ms = 1;
  c.sub = text.substr(0, longest_claim);
  c.model = text.substr(0, size / 2).substr(0, longest_claim);
  const auto opened = open_token(seal_token(c, text), text, 0);
  if (!opened || *opened != c) std::abort();
  (void)parse_token_request(text);
  return 0;
}
