#include "actors/fleet/far_model.h"

#define XXH_INLINE_ALL
#define XXH_NO_INLINE_HINTS 1  // g++ cannot inline the streaming functions at -Og, where they insist
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "actors/open_model.h"

namespace weir::actors::fleet {

core::result<far_model> open_far_model(const model_spec& spec, const owner_options& o,
                                       std::shared_ptr<const core::clock> time,
                                       std::shared_ptr<core::grammar::constraint_cache> constraints) {
  auto m = open_texts(spec, o);
  if (!m) return m.error();
  if (!constraints) constraints = std::make_shared<core::grammar::constraint_cache>();
  (*m)->constraints = std::make_shared<constraint_store>(
      (*m)->tokenizer, (*m)->info.stop_ids, std::move(time), o.grammar_time, std::move(constraints));
  return far_model(std::move(*m));
}

far_model far_copy(const served_model& m) {
  auto out = std::make_shared<served_model>(m);
  out->places.clear();
  return out;
}

// The length of a token goes in too: "a", "bc" and "ab", "c" are different.
std::uint64_t digest_of(const served_model& m) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  const auto add = [&](std::string_view s) {
    const std::uint64_t size = s.size();
    XXH3_64bits_update(&state, &size, sizeof size);
    XXH3_64bits_update(&state, s.data(), s.size());
  };
  add(m.info.architecture);
  XXH3_64bits_update(&state, &m.info.vocab_size, sizeof m.info.vocab_size);
  for (const core::token_id id : m.info.stop_ids) XXH3_64bits_update(&state, &id, sizeof id);
  const auto tokens = std::min(m.info.vocab_size, m.tokenizer->vocab_size());
  for (std::uint32_t id = 0; id < tokens; ++id)
    add(m.tokenizer->token_bytes(static_cast<core::token_id>(id)));
  return XXH3_64bits_digest(&state);
}

}  // namespace weir::actors::fleet
