#include "actors/arithmetic.h"

#include <algorithm>

#include "actors/gpu_owner.h"
#include "actors/open_model.h"
#include "core/fingerprint.h"
#include "core/model/load/opened_file.h"
#include "core/model/load/weights_digest.h"

namespace weir::actors {
namespace {

// A sim's tokens depend on its script alone: its times change nothing.
core::result<std::uint64_t> digest_of_sim(const model_spec& spec, const owner_options& o) {
  const auto sim = sim_shape(spec, o);
  if (!sim) return sim.error();
  core::fingerprint all;
  all.add(std::string_view("sim"));
  if (sim->script.empty()) return all.value();
  const auto script = core::read_text_file(sim->script, core::sim_script_bytes);
  if (!script) return script.error();
  all.add(*script);
  return all.value();
}

std::uint64_t digest_of_random(const model_spec& spec) {
  core::fingerprint all;
  all.add(spec.source);
  return all.value();
}

}  // namespace

core::result<core::fleet::arithmetic_facts> arithmetic_of(const model_spec& spec, const owner_options& o,
                                                          const kernels::backend* on,
                                                          const core::model_info& info) {
  const auto weights = o.device == "sim" ? digest_of_sim(spec, o)
                       : is_random(spec) ? core::result<std::uint64_t>(digest_of_random(spec))
                                         : core::weights_digest(spec.source, asked_context(spec, o));
  if (!weights) return weights.error();
  core::fleet::arithmetic_facts f;
  f.weights = std::max<std::uint64_t>(*weights, 1);
  f.backend = on ? core::fleet::backend_without_number(on->name) : o.device;
  f.kv_type = info.kv_type;
  f.activations = o.activations == kernels::activation_type::int8 ? "int8" : "f32";
  f.deterministic = o.deterministic;
  return f;
}

}  // namespace weir::actors
