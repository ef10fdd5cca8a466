#include "core/model/weights.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "core/model/layer_placer.h"
#include "core/model/load/fill.h"
#include "kernels/blocks.h"
#include "kernels/random_weights.h"

namespace weir::core {
namespace {

using kernels::dtype;
using u64 = std::uint64_t;

model_weights lay_out(const model_config& c, placer& place) {
  const kernels::model_shape& s = c.shape;
  model_weights w;
  w.embedding = place.table({"model.embed_tokens.weight", s.vocab}, s.hidden);
  if (s.embed_norm) w.embed_norm = place.ones(s.hidden);
  w.read_by_steps = c.stored.tied ? 0 : place.bytes();
  for (std::uint32_t i = 0; i < c.layers() && !place.failure(); ++i)
    w.layers.push_back(layer_placer(c, i, place).lay_out());
  const float more = c.stored.plus_one && !c.stored.final_plain ? 1.0f : 0.0f;
  w.norm.weight = place.norm("model.norm.weight", 1, s.hidden, more);
  if (c.stored.norm_bias) w.norm.bias = place.vector({{"model.norm.bias", s.hidden}});
  w.head = c.stored.tied ? w.embedding : place.matrix({"lm_head.weight", s.vocab}, s.hidden);
  place.check_nothing_left();
  return w;
}

bool has_experts(const model_config& c) {
  return std::ranges::any_of(c.shape.layers,
                             [](const kernels::layer_shape& l) { return l.mlp.is_mixture(); });
}

result<weight_plan> plan(const model_config& config, const checkpoint* from, dtype type,
                         const kernels::backend& on) {
  placer measure(from, type, has_experts(config), on, nullptr);
  weight_plan out;
  out.weights = lay_out(config, measure);
  if (measure.failure()) return *measure.failure();
  out.bytes = measure.bytes();
  return out;
}

struct planned {
  model_weights weights;
  std::vector<placed> all;
  std::vector<placed_order> orders;
};

// An area ends where the next one begins.
std::vector<weight_area> areas_of(const planned& p, const kernels::buffer& memory) {
  std::vector<weight_area> out;
  const auto begin = [&](const std::byte* at, std::size_t tensors) {
    out.push_back({static_cast<u64>(at - memory.data()), 0, static_cast<std::uint32_t>(tensors)});
  };
  for (const placed& each : p.all) begin(each.to, each.pieces.size());
  for (const placed_order& o : p.orders) begin(o.to, 1);
  std::ranges::sort(out, {}, &weight_area::first);
  u64 end = memory.size();
  for (auto a = out.rbegin(); a != out.rend(); end = a++->first) a->bytes = end - a->first;
  return out;
}

result<planned> allocate(const model_config& config, const checkpoint* from, dtype type,
                         const backend_ptr& to) {
  placer measure(from, type, has_experts(config), *to, nullptr);
  lay_out(config, measure);
  if (measure.failure()) return *measure.failure();
  kernels::buffer memory(to, measure.bytes());
  if (!memory.data())
    return make_error(errc::does_not_fit, "no memory for weights: {} bytes, {} are free", measure.bytes(),
                      to->free_bytes(to->self));
  placer bind(from, type, has_experts(config), *to, memory.data());
  planned p{lay_out(config, bind), std::move(bind.all()), std::move(bind.orders())};
  p.weights.areas = areas_of(p, memory);
  p.weights.memory = std::move(memory);
  return p;
}

}  // namespace

result<weight_plan> plan_weights(const model_config& config, const checkpoint& from,
                                 const kernels::backend& on) {
  return plan(config, &from, dtype::f32, on);
}

result<weight_plan> plan_random_weights(const model_config& config, dtype type, const kernels::backend& on) {
  return plan(config, nullptr, type, on);
}

result<model_weights> load_weights(const model_config& config, const checkpoint& from, const backend_ptr& to,
                                   const load_progress& progress) {
  auto p = allocate(config, &from, dtype::f32, to);
  if (!p) return p.error();
  for (const placed_order& o : p->orders)
    to->do_upload(to->self, o.to, o.inputs->data(), o.inputs->size() * sizeof(std::uint32_t));
  u64 total = 0, done = 0;
  for (const placed& each : p->all) total += each.rows.bytes();
  const moved_bytes moved = [&](u64 bytes) {
    done += bytes;
    if (progress) progress(done, total);
  };
  const auto filled =
      to->do_begin_upload
          ? upload_slices(p->all, from, to, moved)
          : fill_one_by_one(p->all, *to, [&](const piece& q, std::byte* at, const placed& whole) {
              return read_piece(from, q, whole.rows.type, at, moved);
            });
  if (!filled) return filled.error();
  return std::move(p->weights);
}

result<model_weights> random_weights(const model_config& config, dtype type, u64 seed,
                                     const backend_ptr& to) {
  auto p = allocate(config, nullptr, type, to);
  if (!p) return p.error();
  u64 index = 0;
  const auto next_seed = [&] { return kernels::mix_bits(seed + ++index); };
  if (to->do_fill_random) {
    for (const placed& whole : p->all) {
      kernels::matrix to_fill = whole.rows;
      to_fill.data = whole.to;
      if (!whole.weight) std::swap(to_fill.rows, to_fill.cols);  // the pieces of a vector are no whole rows
      if (whole.pieces.front().constant) {
        const std::vector<float> ones(whole.rows.cols, whole.pieces.front().plus);
        to->do_upload(to->self, whole.to, ones.data(), ones.size() * sizeof(float));
        continue;
      }
      std::uint32_t first = 0;
      for (const piece& q : whole.pieces) {
        const auto rows = static_cast<std::uint32_t>(q.elements / to_fill.cols);
        to->do_fill_random(to->self, to_fill, first, rows, whole.norm, next_seed());
        first += rows;
      }
    }
    return std::move(p->weights);
  }
  const auto filled =
      fill_one_by_one(p->all, *to, [&](const piece& q, std::byte* at, const placed& whole) -> result<void> {
        if (q.constant)
          fill_constant(q, at);
        else if (kernels::is_plain(whole.rows.type))
          kernels::fill_random_weights(at, whole.rows.type, q.elements, whole.norm, next_seed());
        else
          kernels::fill_random_blocks(at, whole.rows.type, q.elements, next_seed());
        return {};
      });
  if (!filled) return filled.error();
  return std::move(p->weights);
}

}  // namespace weir::core
