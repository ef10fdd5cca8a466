#include "kernels/cuda/decoder_room.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace weir::kernels::cuda {
namespace {

// Whether a matrix has shapes that the kernels can read. Rows are read 16 bytes at a time.
bool readable(const matrix& m) { return m.cols % 8 == 0 && m.rows % 8 == 0; }

constexpr std::uint64_t usual_draw_words = 1u << 20;  // room for lists that is reserved from the start

}  // namespace

dtype rows_type(const decoder_shape& s) {
  std::uint64_t f16 = 0, bf16 = 0;  // weights in the layers
  bool elements = true;
  for_products(s, [&](const matrix& first, std::span<const matrix> rest) {
    const auto count = [&](const matrix& m) {
      const dtype type = multiplied_type(m);
      elements &= is_element(type);
      if (&first != &s.head) (type == dtype::f16 ? f16 : bf16) += std::uint64_t{m.rows} * m.cols;
    };
    count(first);
    std::ranges::for_each(rest, count);
  });
  for (const decoder_layer& l : s.layers)
    for (const expert_matrices* e : {&l.experts.gate_up, &l.experts.down}) {
      if (e->count == 0) continue;
      const dtype type = multiplied_type(e->first);
      elements &= is_element(type);
      (type == dtype::f16 ? f16 : bf16) += std::uint64_t{e->count} * e->first.rows * e->first.cols;
    }
  return !elements ? dtype::f32 : f16 > bf16 ? dtype::f16 : dtype::bf16;
}

std::optional<page_type> pages_of(const decoder_shape& s) {
  const page_type elements = elements_of(rows_type(s));
  if (!s.kv || (*s.kv == kv_type::bf16 && elements == page_type::bf16)) return elements;
  if (*s.kv == kv_type::fp8) return page_type::fp8;
  return *s.kv == kv_type::q8 ? std::optional(page_type::q8) : std::nullopt;
}

head_shape heads_of(const decoder_shape& s) {
  const attention_mixer& a = mixer_of(s.model);
  return {a.heads, a.kv_heads, a.head_dim, pages_of(s).value_or(page_type::bf16), a.gated ? a.q_width() : 0};
}

feed_forward dense_part(const feed_forward& f) {
  if (!f.is_mixture()) return f;
  return {.inter = f.shared, .kind = f.kind, .gated = f.gated, .limit = f.limit};
}

widest_mlp widest_mlp_of(const model_shape& m) {
  widest_mlp out;
  for (const layer_shape& l : m.layers) {
    const feed_forward dense = dense_part(l.mlp);
    const std::uint32_t slots = l.mlp.is_mixture() ? l.mlp.slots() * l.mlp.inter : 0;
    out = {std::max(out.width, dense.width()), std::max({out.inter, dense.inter, slots})};
  }
  return out;
}

stream_units units_of(const model_shape& m) {
  const float factor = m.layers.front().branch_factor;
  const auto fits = [&](const layer_shape& l) { return !l.norm_behind() && l.branch_factor == factor; };
  if (!(factor > 0) || !std::ranges::all_of(m.layers, fits)) return {1, m.norm_eps};
  return {factor, m.norm_eps / (factor * factor)};
}

bool has_branch(const model_shape& m, const layer_shape& l) {
  return l.norm_behind() || l.branch_factor != units_of(m).unit;
}

namespace {

bool turns(const layer_shape& l) { return l.mixer.rotary >= 0; }

}  // namespace

std::uint32_t angle_tables_of(const model_shape& m) {
  return static_cast<std::uint32_t>(m.tables.size()) + !std::ranges::all_of(m.layers, turns);
}

std::uint32_t angle_table(const model_shape& m, const attention_mixer& a) {
  return a.rotary >= 0 ? static_cast<std::uint32_t>(a.rotary) : static_cast<std::uint32_t>(m.tables.size());
}

std::uint32_t rest_of(const model_shape& m, const attention_mixer& a) {
  if (a.rotary < 0) return 0;
  const auto& table = m.tables[static_cast<std::size_t>(a.rotary)];
  return a.head_dim / 2 - static_cast<std::uint32_t>(table.frequencies.size());
}

std::string_view why_not(const model_shape& m) {
  if (m.layers.empty()) return "it has no layers";
  if (m.groups.size() != 1) return "its layers have pages of different sizes";
  const attention_mixer& a = mixer_of(m);
  if (!attention_supports({a.heads, a.kv_heads, a.head_dim})) return "no kernel has heads of its sizes";
  if (m.hidden % 8 != 0 || m.hidden * sizeof(float) > 48u << 10) return "no kernel has rows of its width";
  for (const layer_shape& l : m.layers) {
    const attention_mixer& b = l.mixer;
    if (b.heads != a.heads || b.kv_heads != a.kv_heads || b.head_dim != a.head_dim)
      return "its layers have heads of different sizes";
    if (b.gated != a.gated) return "some of its layers have gates on attention and others have none";
    if (l.mlp.inter % 8 != 0 || l.mlp.shared % 8 != 0)
      return "the width of a feed-forward is no multiple of 8";
    if (l.mlp.router.experts > most_experts) return "a mixture has too many experts";
    if (b.norms == head_norms::row && m.centred_norms) return "its norms of whole rows of heads are centred";
  }
  return {};
}

std::string_view why_not(const decoder_shape& s) {
  if (const std::string_view why = why_not(s.model); !why.empty()) return why;
  if (s.page_tokens != page_tokens) return "its pages have another number of tokens";
  if (!is_element(rows_type(s))) return "it has matrices in f32";
  const std::optional<page_type> pages = pages_of(s);
  if (!pages) return "keys and values are of another 16-bit type than its rows";
  if (!has_pages(*pages, mixer_of(s.model).head_dim)) return "no kernel has keys and values of its sizes";
  for (const decoder_layer& l : s.layers) {
    bool all = std::ranges::all_of(l.qkv_rest, readable) && std::ranges::all_of(l.gate_up_rest, readable);
    for (const matrix* m : {&l.qkv, &l.out, &l.gate_up, &l.down}) all &= readable(*m);
    for (const expert_matrices* e : {&l.experts.gate_up, &l.experts.down}) all &= readable(e->first);
    if (!all) return "the sizes of its matrices are no multiples of 8";
    if (l.experts.gate_up.count == 0) continue;
    for (const expert_matrices* e : {&l.experts.gate_up, &l.experts.down})
      if (multiplied_type(e->first) != rows_type(s)) return "its experts multiply another type than its rows";
    if (l.gate_up.rows != 0 && l.down_bias) return "its shared expert has a bias behind its last product";
  }
  return {};
}

std::uint64_t page_bytes_of(const decoder_shape& s) {
  const head_shape h = heads_of(s);
  return s.model.layers.size() * 2 * std::uint64_t{h.kv_heads} * h.page_bytes();
}

std::uint32_t class_of_rows(std::uint32_t rows) {
  return *std::lower_bound(std::begin(batch_classes), std::end(batch_classes) - 1, rows);
}

product_room product_room_of(const decoder_shape& s) {
  product_room out;
  const dtype type = rows_type(s);
  for_products(s, [&](const matrix& first, std::span<const matrix> rest) {
    std::uint64_t rows = 0, widest = 0;
    bool rounded = false;
    const auto add = [&](const matrix& m) {
      rows += m.rows;
      widest = std::max(widest, std::uint64_t{m.cols});
      rounded |= !is_plain(m.type);
      // The norm in front of the head writes the type that the head multiplies (run_head).
      const bool converted = &first != &s.head && multiplied_type(m) != type;
      if (m.input_count || converted) out.ordered_width = std::max(out.ordered_width, m.cols);
    };
    add(first);
    std::ranges::for_each(rest, add);
    const std::uint64_t row = widest * 2;
    if (rounded)
      out.rounded = std::max({out.rounded, std::min(rows * row, most_rounded),
                              std::min(rows, std::uint64_t{rounded_rows}) * row});
  });
  return out;
}

std::uint64_t draw_words(std::uint32_t draws, std::uint32_t vocab) {
  return std::max(usual_draw_words, 5 * std::uint64_t{vocab}) +
         std::uint64_t{draws} * ((std::uint64_t{vocab} + 31) / 32);
}

decoder_room decoder_room_of(const cuda_facts& d, const decoder_shape& s, std::uint32_t rows,
                             std::uint32_t logits) {
  constexpr std::uint64_t element = 2;  // bytes
  const std::uint64_t r = rows, l = logits;
  const model_shape& m = s.model;
  const head_shape heads = heads_of(s);
  const widest_mlp mlp = widest_mlp_of(m);
  const split_room split = split_room_of(d, heads);
  const product_room products = product_room_of(s);
  decoder_room out{};
  const auto branched = [&](const layer_shape& layer) { return has_branch(m, layer); };
  const std::uint64_t angles = std::uint64_t{angle_tables_of(m)} * (heads.head_dim / 2);
  out.frequencies = 2 * angles * sizeof(float);
  out.norm = m.logit_factor == 1 ? 0 : 2 * std::uint64_t{m.hidden} * sizeof(float);
  out.x = r * m.hidden * sizeof(float);
  out.branch = std::ranges::any_of(m.layers, branched) ? out.x : 0;
  out.scratch = r * std::max(m.hidden, heads.width()) * sizeof(float);
  out.normed = r * m.hidden * element;
  out.qkv = r * heads.width() * element;
  out.attended = r * heads.heads * heads.head_dim * element;
  out.gate_up = r * mlp.width * element;
  out.inner = r * mlp.inter * element;
  out.cos = out.sin = r * angles * sizeof(float);
  out.logits = l * m.vocab * sizeof(float);
  out.parts = split.floats * sizeof(float);
  out.arrived = split.counters * sizeof(unsigned);
  out.rounded = products.rounded;
  out.ordered = r * products.ordered_width * element;
  const expert_room experts = expert_room_of(m, rows);
  out.lists = experts.lists.bytes;
  out.made = experts.made * sizeof(float);
  out.shared = experts.shared * sizeof(float);
  out.draw_lists = out.saved_logits = draw_words(logits, m.vocab) * 4;
  out.drawn_ids = l * sizeof(std::int32_t);
  out.rare_rows = least_rare_rows * rare_room(m.vocab) * sizeof(float);
  return out;
}

// Rows are padded, and every decoding row has a list of pages.
warm_extent warm_extent_of(const cuda_facts& d, const head_shape& h, std::uint32_t decode_rows,
                           std::uint32_t prompt_rows, std::uint32_t most_pages) {
  warm_extent out{};
  out.logits = std::max(whole_units(decode_rows), class_of_rows(decode_rows));
  out.rows = std::max(whole_units(decode_rows + prompt_rows), out.logits);
  out.words = std::uint64_t{out.rows} * 16 + 4 * std::uint64_t{most_listed(d, h, decode_rows)} +
              std::uint64_t{decode_rows} * most_pages;
  return out;
}

std::uint32_t warm_graphs(const cuda_facts& d, const head_shape& h, std::uint32_t decode_rows) {
  std::set<std::pair<std::uint32_t, bool>> graphs;  // as cuda_decoder has them
  for (const std::uint32_t c : batch_classes) {
    const std::uint32_t n = std::min(c, decode_rows);
    for (const std::uint32_t longest : {0u, 16 * n}) {  // of the positions, the others being 0
      const bool listed =
          !d.deterministic && lists_pay(d, h, n, std::uint64_t{longest} + 1, std::uint64_t{longest} + n);
      graphs.emplace(d.deterministic ? whole_units(n) : class_of_rows(n), listed);
    }
    if (n == decode_rows) break;
  }
  return static_cast<std::uint32_t>(graphs.size());
}

decoder_needs needs_of(const cuda_facts& d, const decoder_shape& s, std::uint32_t decode_rows,
                       std::uint32_t most_pages) {
  const head_shape h = heads_of(s);
  const warm_extent e = warm_extent_of(d, h, decode_rows, decoder_prompt_rows, most_pages);
  decoder_room room = decoder_room_of(d, s, std::max(least_rows, e.rows), std::max(least_logits, e.logits));
  room.rows_here = e.words * 4;
  return {decoder_prompt_rows, room.bytes(), warm_graphs(d, h, decode_rows)};
}

}  // namespace weir::kernels::cuda
