// Any bytes as a file of keys: what is taken stays within its limits, what is refused shows no key.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>

#include "actors/token_allowance.h"
#include "net/access/api_keys.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::net;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto insist = [](bool holds) {
    if (!holds) std::abort();
  };
  const auto keys = parse_api_keys(text, "F");
  if (!keys) {
    insist(keys.error().param == "api-key-file" && keys.error().message.starts_with("--api-key-file F: "));
    insist(keys.error().message.size() < 200);
    return 0;
  }
  insist(!keys->empty() && keys->size() <= most_keys);
  std::set<key_hash> different;
  for (const auto& k : *keys) {
    insist(different.insert(k.hash).second && k.hash != hash_of_key(""));
    insist(k.rights.name.size() <= 64 && k.rights.jobs <= 1 << 16 && k.rights.models.size() <= 64);
    insist(k.rights.tokens_per_min <= weir::actors::token_allowance::most_per_min);
    for (const auto& model : k.rights.models) insist(!model.empty());
  }
  const auto again = parse_api_keys(std::string(text) + "\n# a comment", "F");
  insist(again && again->size() == keys->size());
  return 0;
}
