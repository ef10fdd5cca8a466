#include "core/model/load/experts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/model/load/expert_names.h"
#include "core/model/load/quantised_rows.h"
#include "core/model/load/turned_matrix.h"

namespace weir::core {
namespace {

using u64 = std::uint64_t;
using kernels::feed_forward;
using shape = std::vector<u64>;

constexpr u64 group = 32;  // inputs that share a scale of mxfp4

class arranger {
 public:
  arranger(checkpoint& all, const model_config& c) : all_(all), c_(c) {}

  result<void> arrange() {
    if (auto ok = all_.rename([&](std::string_view name) { return renamed(name); }); !ok) return ok;
    std::vector<std::string> merged;
    for (const auto& [name, tensor] : all_.tensors()) {
      const auto parsed = mixture_name(name);
      if (parsed && parse_merged(parsed->rest)) merged.push_back(name);
    }
    // Scales are taken with their blocks, whose names come before theirs.
    for (const std::string& name : merged)
      if (all_.find(name))
        if (auto ok = split(name); !ok) return ok;
    flatten();
    all_.call_also([used = used_, merged = merged_](std::string_view name) {
      return name_in_files(name, used, merged);
    });
    return {};
  }

 private:
  // The name of a tensor of a layer that is a mixture.
  std::optional<layer_name> mixture_name(std::string_view name) const {
    const auto parsed = parse_layer_name(name);
    const bool mixture =
        parsed && parsed->layer < c_.layers() && c_.shape.layers[parsed->layer].mlp.is_mixture();
    return mixture ? parsed : std::nullopt;
  }

  std::string renamed(std::string_view name) {
    const auto parsed = mixture_name(name);
    const expert_spelling* s = parsed ? spelling_in_files(parsed->rest) : nullptr;
    if (!s) return std::string(name);
    if (std::ranges::find(used_, s) == used_.end()) used_.push_back(s);
    return std::string(name.substr(0, name.size() - parsed->rest.size())) +
           respelled(parsed->rest, s->there, s->here);
  }

  // What a tensor of all experts is made of: its outputs an expert, its inputs, and whether gate and up
  // alternate among the outputs.
  struct sides {
    u64 outputs, inputs;
    bool paired;
  };
  sides sides_of(const feed_forward& mlp, std::string_view part) const {
    const u64 hidden = c_.shape.hidden, inter = mlp.inter;
    if (part == "down_proj") return {hidden, inter, false};
    if (part == "gate_up_proj") return {mlp.width(), hidden, c_.stored.inputs_first};
    return {inter, hidden, false};
  }

  result<void> split(const std::string& name) {
    const auto parsed = mixture_name(name);
    const auto what = *parse_merged(parsed->rest);
    const feed_forward& mlp = c_.shape.layers[parsed->layer].mlp;
    const sides s = sides_of(mlp, what.part);
    const std::string front = name.substr(0, name.size() - parsed->rest.size());
    switch (what.kind) {
      case merged_kind::bias:
        return split_rows(name, front, what.part, mlp.router.experts, {s.outputs}, s.paired);
      case merged_kind::weight:
        if (c_.stored.inputs_first) return split_turned(name, front, what.part, mlp.router.experts, s);
        return split_rows(name, front, what.part, mlp.router.experts, {s.outputs, s.inputs}, false);
      case merged_kind::blocks:
        return split_blocks(name, front, what.part, mlp.router.experts, s);
      case merged_kind::scales:
        break;
    }
    return make_error(errc::bad_file, "tensor '{}' has scales of blocks that are missing", in_files(name));
  }

  std::string in_files(std::string_view name) const {
    return all_.spelled(name_in_files(name, used_, merged_));
  }

  // The shape that a tensor of all experts must have. Its bytes are then those of the experts in order.
  result<void> expect(const std::string& name, const shape& wanted) const {
    const stored_tensor& t = *all_.find(name);
    if (t.shape == wanted) return {};
    return make_error(errc::bad_file, "tensor '{}' is {} in the file, but {} implies [{}]", in_files(name),
                      t.shape_text(), all_.described_by(), fmt::join(wanted, ", "));
  }

  static stored_tensor of_expert(const stored_tensor& whole, u64 expert, u64 experts, shape own) {
    stored_tensor t = whole;
    const u64 bytes = whole.bytes.size() / experts;
    t.bytes = whole.bytes.subspan(expert * bytes, bytes);
    t.shape = std::move(own);
    return t;
  }

  result<void> put(const std::string& front, u64 expert, std::string_view part, const char* ending,
                   stored_tensor t) {
    const std::string name = fmt::format("{}mlp.experts.{}.{}.{}", front, expert, part, ending);
    return all_.replace({}, name, std::move(t));
  }

  // Remembers the tensor of all experts for messages, and takes it out.
  stored_tensor take(const std::string& name, const std::string& front, std::string_view part,
                     const char* ending) {
    const std::pair<std::string, std::string> spelling{name.substr(front.size()),
                                                       fmt::format("mlp.experts.#.{}.{}", part, ending)};
    if (std::ranges::find(merged_, spelling) == merged_.end()) merged_.push_back(spelling);
    stored_tensor t = *all_.find(name);
    all_.remove({&name, 1});
    return t;
  }

  result<void> split_rows(const std::string& name, const std::string& front, std::string_view part,
                          u64 experts, const shape& own, bool paired) {
    shape wanted = own;
    wanted.insert(wanted.begin(), experts);
    if (auto ok = expect(name, wanted); !ok) return ok;
    const char* ending = own.size() == 1 ? "bias" : "weight";
    const stored_tensor whole = take(name, front, part, ending);
    for (u64 e = 0; e < experts; ++e) {
      stored_tensor t = of_expert(whole, e, experts, own);
      t.paired_heads = paired ? 1 : 0;
      if (auto ok = put(front, e, part, ending, std::move(t)); !ok) return ok;
    }
    return {};
  }

  // [experts, inputs, outputs] of a plain type.
  result<void> split_turned(const std::string& name, const std::string& front, std::string_view part,
                            u64 experts, const sides& s) {
    if (auto ok = expect(name, {experts, s.inputs, s.outputs}); !ok) return ok;
    if (!is_plain_type(all_.find(name)->dtype))
      return make_error(errc::not_supported, "tensor '{}': dtype {} with inputs first is not supported yet",
                        in_files(name), all_.find(name)->dtype);
    const stored_tensor whole = take(name, front, part, "weight");
    for (u64 e = 0; e < experts; ++e) {
      stored_tensor t{whole.dtype, {s.outputs, s.inputs}, {}};
      t.made_by = make_turned(of_expert(whole, e, experts, {s.inputs, s.outputs}), s.paired);
      if (auto ok = put(front, e, part, "weight", std::move(t)); !ok) return ok;
    }
    return {};
  }

  // Blocks [experts, outputs, inputs / 32, 16] and their scales [experts, outputs, inputs / 32].
  result<void> split_blocks(const std::string& name, const std::string& front, std::string_view part,
                            u64 experts, const sides& s) {
    const std::string scales = name.substr(0, name.size() - std::string_view("blocks").size()) + "scales";
    if (s.inputs % group != 0)
      return make_error(errc::not_supported,
                        "tensor '{}': {} inputs, which are no multiple of {}, are not supported yet",
                        in_files(name), s.inputs, group);
    const u64 groups = s.inputs / group;
    if (!all_.find(scales))
      return make_error(errc::bad_file, "tensor '{}' is missing, which '{}' needs", in_files(scales),
                        in_files(name));
    if (auto ok = expect(name, {experts, s.outputs, groups, group / 2}); !ok) return ok;
    if (auto ok = expect(scales, {experts, s.outputs, groups}); !ok) return ok;
    for (const std::string* each : {&name, &scales})
      if (all_.find(*each)->dtype != "U8")
        return make_error(errc::bad_file, "tensor '{}' is {}, not U8", in_files(*each),
                          all_.find(*each)->dtype);
    const std::string called = in_files(name);
    const stored_tensor whole = take(name, front, part, "weight"), factors = *all_.find(scales);
    all_.remove({&scales, 1});
    for (u64 e = 0; e < experts; ++e) {
      stored_tensor codes = of_expert(whole, e, experts, {s.outputs, s.inputs / 2}),
                    own = of_expert(factors, e, experts, {s.outputs, groups});
      codes.paired_heads = own.paired_heads = s.paired ? 1 : 0;
      if (auto ok = put(front, e, part, "weight", joined(std::move(codes), std::move(own), s, called)); !ok)
        return ok;
    }
    return {};
  }

  // The same form as a linear of mxfp4-pack-quantized.
  static stored_tensor joined(stored_tensor codes, stored_tensor scales, const sides& s,
                              const std::string& called) {
    quantised_linear l;
    l.config.form = quant_form::mxfp4;
    l.type = kernels::dtype::mxfp4;
    l.outputs = static_cast<std::uint32_t>(s.outputs);
    l.inputs = static_cast<std::uint32_t>(s.inputs);
    l.group = group;
    l.groups = static_cast<std::uint32_t>(s.inputs / group);
    l.codes = std::move(codes);
    l.scales = std::move(scales);
    l.codes_name = called;
    stored_tensor t{kernels::name(l.type), {s.outputs, s.inputs}, {}};
    t.made_by = make_converted(std::move(l));
    return t;
  }

  // Vectors that some files have as a matrix of one row, and the other way round.
  void flatten() {
    for (std::uint32_t i = 0; i < c_.layers(); ++i) {
      const feed_forward& mlp = c_.shape.layers[i].mlp;
      if (!mlp.is_mixture()) continue;
      const std::string at = fmt::format("model.layers.{}.mlp.", i);
      reshape(at + "gate.e_score_correction_bias", {1, mlp.router.experts}, {mlp.router.experts});
      reshape(at + "shared_expert_gate.weight", {c_.shape.hidden}, {1, c_.shape.hidden});
    }
  }

  void reshape(const std::string& name, const shape& from, const shape& to) {
    const stored_tensor* t = all_.find(name);
    if (!t || t->shape != from || t->made_by) return;
    stored_tensor copy = *t;
    copy.shape = to;
    static_cast<void>(all_.replace({&name, 1}, name, std::move(copy)));  // the name is free then
  }

  checkpoint& all_;
  const model_config& c_;
  std::vector<const expert_spelling*> used_;
  std::vector<std::pair<std::string, std::string>> merged_;
};

}  // namespace

std::vector<std::string> drop_draft_layers(checkpoint& all, const model_config& c) {
  std::vector<std::string> names;
  const std::uint64_t end = std::uint64_t{c.layers()} + c.stored.draft_layers;
  for (const auto& [name, tensor] : all.tensors()) {
    auto parsed = parse_layer_name(name);
    if (!parsed) parsed = parse_layer_name(name, "blk.");  // a name that only GGUF files have
    const bool behind = parsed && parsed->layer >= c.layers() && parsed->layer < end;
    const bool beside = c.stored.draft_layers > 0 && std::ranges::any_of(draft_prefixes(), [&](auto prefix) {
                          return name.starts_with(prefix);
                        });
    if (behind || beside) names.push_back(name);
  }
  if (names.empty()) return {};
  all.remove(names);
  return {fmt::format("{} tensors of draft layers, such as '{}', are passed over", names.size(),
                      all.spelled(names.front()))};
}

result<void> arrange_experts(checkpoint& all, const model_config& c) {
  const bool any =
      std::ranges::any_of(c.shape.layers, [](const kernels::layer_shape& l) { return l.mlp.is_mixture(); });
  return any ? arranger(all, c).arrange() : result<void>();
}

}  // namespace weir::core
