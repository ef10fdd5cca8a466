// Any bytes as a GGUF file; a file that is accepted must keep its promises, and so must what is made of its
// keys.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <boost/json/serialize.hpp>

#include "core/model/config.h"
#include "core/model/load/gguf.h"
#include "core/model/load/gguf_config.h"
#include "core/text/tokenizer/gguf_tokenizer.h"
#include "core/text/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::core;
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  const auto parsed = parse_gguf(file, "fuzz");
  if (!parsed) return 0;
  std::size_t covered = 0;
  for (const auto& [name, t] : parsed->tensors) {
    if (t.bytes.empty() || t.bytes.data() < file.data() || &t.bytes.back() > &file.back()) std::abort();
    if (t.shape.empty() || t.shape.size() > 4) std::abort();
    covered += t.bytes.size();
  }
  if (covered > size) std::abort();

  gguf_reader keys(parsed->keys, "fuzz");
  const auto read = [](const stored_tensor& t, std::span<std::byte> to) -> result<void> {
    std::memcpy(to.data(), t.bytes.data(), to.size());
    return {};
  };
  boost::json::object config;
  const gguf_architecture* architecture = gguf_architecture_of(keys);
  if (architecture) config = gguf_config(keys, *architecture, parsed->tensors, read);
  const auto stops = gguf_stop_ids(keys);
  if (!keys.failure()) (void)parse_config(boost::json::serialize(config), "fuzz");
  gguf_reader text(parsed->keys, "fuzz");
  auto parts = gguf_tokenizer(text);
  (void)gguf_special_tokens(text);
  (void)gguf_chat_templates(text);
  if (text.failure() || !parts) return 0;
  try {
    const hf_tokenizer made(std::move(*parts), {}, "fuzz");
    for (const token_id id : made.encode("I'm <s> 12 na\u00EFve  \u6F22 ab", {}))
      if (id < 0 || static_cast<std::uint32_t>(id) >= made.vocab_size()) std::abort();
  } catch (const refusal&) {  // an id outside the vocabulary
  }
  return 0;
}
