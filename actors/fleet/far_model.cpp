#include "actors/fleet/far_model.h"

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

}  // namespace weir::actors::fleet
