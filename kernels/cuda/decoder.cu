#include "kernels/cuda/decoder.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "kernels/cuda/decoder_room.h"
#include "kernels/cuda/device/grown.h"
#include "kernels/cuda/device/step_clock.h"
#include "kernels/cuda/draws/draws.h"
#include "kernels/cuda/experts/experts.h"
#include "kernels/cuda/experts/route.h"
#include "kernels/cuda/layers.h"
#include "kernels/cuda/products/weight_products.h"
#include "kernels/cuda/step_rows.h"

namespace weir::kernels::cuda {
namespace {

// The bytes of the device's memory that warm_up() leaves free for the driver. The driver loads the code of a
// kernel when the kernel first runs, and stores graphs; a step for which it lacks memory fails for good.
constexpr std::size_t least_free = std::size_t{192} << 20;

std::size_t free_bytes(device& d) {
  std::size_t free = 0, total = 0;
  return WEIR_CUDA(d, cudaMemGetInfo(&free, &total)) ? free : 0;
}

class cuda_decoder final : public decoder {
 public:
  cuda_decoder(device& d, const decoder_shape& s);
  ~cuda_decoder() override;

  std::uint64_t page_bytes() const noexcept override { return page_bytes_of(s_); }
  std::string_view kv_type() const noexcept override {
    return number_bytes(heads_.pages) == 1 ? name(*s_.kv) : name(type_);
  }
  void set_pages(void* memory, std::uint32_t count, std::uint64_t stride) override {
    pages_ = static_cast<unsigned char*>(memory);
    page_count_ = count;
    page_stride_ = stride;
    drop_graphs();
  }
  std::uint32_t prompt_rows() const noexcept override { return decoder_prompt_rows; }
  bool warm_up(std::uint32_t decode_rows, std::uint32_t prompt_rows, std::uint32_t most_pages) override;
  bool forward(const decoder_step& step) override {
    d_.use();
    clock_.begin();
    const bool well = compute(step);
    clock_.end();
    return well;
  }
  bool draw(std::span<const decoder_draw> draws) override {
    d_.use();
    clock_.draw();
    return rows_here_.wait_taken() && draws_.begin(draws, logits_.as<float>(), s_.model.vocab);
  }
  bool computing() override {
    d_.use();
    return !d_.failed() && cudaStreamQuery(d_.stream) == cudaErrorNotReady;
  }
  bool collect(std::span<decoder_result> out) override {
    d_.use();
    return draws_.collect(out, logits_.as<float>(), s_.model.vocab);
  }
  void set_company(bool others) override { clock_.set_company(others); }
  std::optional<double> device_ns() override { return clock_.time(); }
  const draw_logprobs& logprobs_of(std::uint32_t i) const override { return draws_.logprobs_of(i); }
  bool read_logits(std::uint32_t row, float* to_host) override;

 private:
  bool compute(const decoder_step& step);
  bool make_room(std::uint32_t rows, std::uint32_t logits);
  void fill_tables();
  void record(const rows_view& v, bool decoding);
  pending_sum attend(std::size_t i, const rows_view& v, bool decoding, const pending_sum& before);
  pending_sum feed(std::size_t i, const rows_view& v, const pending_sum& before);
  expert_sum feed_experts(std::size_t i, const rows_view& v, const pending_sum* before, const norm_args& n);
  void feed_shared(std::size_t i, std::uint32_t rows);
  // The order in which the rows in front of a layer's feed-forward are best written.
  column_order order_to_feed(std::size_t i, std::uint32_t rows) const {
    const decoder_layer& w = s_.layers[i];
    if (s_.model.layers[i].mlp.is_mixture()) return column_order::plain;
    return products_.order_for(w.gate_up, w.gate_up_rest, rows);
  }
  rotary_args rotary_of(std::size_t i) const;
  // The norm in front of attention or of the feed-forward of a layer, whose weights are `by`.
  norm_args front(const layer_shape& shape, const norm_weight& by) const {
    return {shape.norm_before() ? by : norm_weight{}, units_.eps, s_.model.centred_norms};
  }
  norm_args final_norm() const {
    const model_shape& m = s_.model;
    const float *weight = norm_.as<float>(), *bias = s_.norm.bias ? weight + m.hidden : nullptr;
    return {m.logit_factor == 1 ? s_.norm : norm_weight{weight, bias}, units_.eps, m.centred_norms};
  }
  void multiply(const matrix& w, std::span<const matrix> rest, const element* x, std::uint32_t rows,
                void* out, product_out kind, column_order order = column_order::plain) {
    products_.run(w, rest, x, rows, out, kind, scratch_.as<void>(), order);
  }
  // A product of x with its norm in front, by one kernel. Returns false where there is no such kernel, or
  // where something is to be added to x first, and then launches nothing.
  bool multiply_normed(const pending_sum& before, const norm_args& n, const std::int32_t* from,
                       const matrix& w, std::span<const matrix> rest, std::uint32_t rows, void* out,
                       product_out kind, activation gate = activation::silu) {
    const norm_before norm{x_.as<float>(), n.by.weight, from, n.eps};
    return before.is_nothing() && n.is_plain() && products_.run_normed(w, rest, norm, rows, out, kind, gate);
  }
  // Adds a product to the stream, or to the branch of layer `i`, of which it is the `first` product.
  void add(std::size_t i, const matrix& w, const element* x, std::uint32_t rows, bool first,
           column_order order);
  bool clears(std::size_t i, bool attended, std::uint32_t rows) const;
  void drop_graphs();

  device& d_;
  const decoder_shape s_;
  const dtype type_;  // of rows
  const head_shape heads_;
  const stream_units units_;
  std::vector<bool> apart_;  // has_branch() of each layer
  weight_products products_;
  unsigned char* pages_ = nullptr;
  std::uint32_t page_count_ = 0;
  std::uint64_t page_stride_ = 0;  // bytes from a layer's keys to its values, and on to the next layer's keys

  grown frequencies_, norm_, x_, branch_, normed_, qkv_, attended_, gate_up_, inner_, cos_, sin_, logits_,
      scratch_, parts_, arrived_, lists_, made_, shared_;
  expert_places places_;  // in lists_
  step_rows rows_here_;
  draw_launcher draws_;
  step_clock clock_;
  split_scratch split_;
  std::uint32_t rows_ = 0, logits_rows_ = 0;
  bool recording_ = false;  // a graph

  struct graph {
    bool seen = false;  // it has run once, so that the algorithm of each product is known
    cudaGraphExec_t ready = nullptr;
  };
  std::map<std::pair<std::uint32_t, bool>, graph> graphs_;  // by step_extent::rows and step_extent::listed
};

cuda_decoder::cuda_decoder(device& d, const decoder_shape& s)
    : d_(d),
      s_(s),
      type_(rows_type(s)),
      heads_(heads_of(s)),
      units_(units_of(s.model)),
      products_(d, s),
      frequencies_(d),
      norm_(d),
      x_(d),
      branch_(d),
      normed_(d),
      qkv_(d),
      attended_(d),
      gate_up_(d),
      inner_(d),
      cos_(d),
      sin_(d),
      logits_(d),
      scratch_(d),
      parts_(d),
      arrived_(d),
      lists_(d),
      made_(d),
      shared_(d),
      rows_here_(d, heads_),
      draws_(d),
      clock_(d) {
  for (const layer_shape& l : s_.model.layers) apart_.push_back(has_branch(s_.model, l));
  make_room(least_rows, least_logits);
  d_.sync();
}

cuda_decoder::~cuda_decoder() {
  d_.use();
  d_.sync();
  drop_graphs();
}

void cuda_decoder::drop_graphs() {
  for (auto& [of, g] : graphs_)
    if (g.ready) cudaGraphExecDestroy(g.ready);
  graphs_.clear();
}

// Makes room for `rows` rows and `logits` rows of logits. Returns false where the device failed or memory is
// short; in the latter case the next call tries again.
bool cuda_decoder::make_room(std::uint32_t rows, std::uint32_t logits) {
  const std::size_t r = std::max(rows, rows_), l = std::max(logits, logits_rows_);
  if (r == rows_ && l == logits_rows_) return !d_.failed();
  bool moved = false, there = true;
  const auto take = [&](grown& g, std::size_t bytes) {
    const bool anew = g.reserve(bytes);
    moved |= anew;
    there &= g.holds(bytes);
    return anew;
  };
  const decoder_room room =
      decoder_room_of(d_, s_, static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(l));
  take(x_, room.x);
  take(branch_, room.branch);
  take(scratch_, room.scratch);
  take(normed_, room.normed);
  take(qkv_, room.qkv);
  take(attended_, room.attended);
  take(gate_up_, room.gate_up);
  take(inner_, room.inner);
  take(cos_, room.cos);
  take(sin_, room.sin);
  take(logits_, room.logits);
  take(parts_, room.parts);
  take(arrived_, room.arrived);
  take(lists_, room.lists);
  take(made_, room.made);
  take(shared_, room.shared);
  // Filled even where other memory is short: in the next call take() returns false for these buffers.
  const bool fresh = take(frequencies_, room.frequencies) | take(norm_, room.norm);
  if (fresh && frequencies_.holds(room.frequencies) && norm_.holds(room.norm)) fill_tables();
  moved |= products_.reserve(room.rounded, room.ordered);
  there &= products_.has_room();
  moved |= draws_.reserve(static_cast<std::uint32_t>(l), s_.model.vocab);
  there &= draws_.has_room();
  if (moved) drop_graphs();
  split_.parts = parts_.as<float>();
  split_.arrived = arrived_.as<unsigned>();
  places_ = expert_room_of(s_.model, static_cast<std::uint32_t>(r)).lists;
  rows_ = there ? static_cast<std::uint32_t>(r) : 0;
  logits_rows_ = there ? static_cast<std::uint32_t>(l) : 0;
  return there && !d_.failed();
}

// Rotary tables, and the weights of the last norm times the factor of logits.
void cuda_decoder::fill_tables() {
  const model_shape& m = s_.model;
  const std::size_t half = heads_.head_dim / 2, all = angle_tables_of(m) * half;
  std::vector<float> numbers(all, 0.0f);
  numbers.resize(2 * all, 1.0f);
  for (std::size_t t = 0; t < m.tables.size(); ++t) {
    const auto& table = m.tables[t];
    std::ranges::copy(table.frequencies, numbers.begin() + static_cast<std::ptrdiff_t>(t * half));
    std::fill_n(numbers.begin() + static_cast<std::ptrdiff_t>(all + t * half), table.frequencies.size(),
                table.factor);
  }
  WEIR_CUDA(d_, cudaMemcpyAsync(frequencies_.as<float>(), numbers.data(), 2 * all * sizeof(float),
                                cudaMemcpyHostToDevice, d_.stream));
  d_.sync();  // the numbers end here
  if (m.logit_factor == 1) return;
  scale(d_, s_.norm.weight, m.hidden, m.logit_factor, norm_.as<float>());
  if (s_.norm.bias) scale(d_, s_.norm.bias, m.hidden, m.logit_factor, norm_.as<float>() + m.hidden);
}

// Searches the algorithms of the products and records the graphs, by running steps. All rows of these steps
// are written to the first page.
bool cuda_decoder::warm_up(std::uint32_t decode_rows, std::uint32_t prompt_rows, std::uint32_t most_pages) {
  if (page_count_ == 0) return !d_.failed();
  d_.use();
  const std::uint32_t most = decode_rows + prompt_rows;
  const std::vector<std::int32_t> tokens(most), pages(most / page_tokens + decode_rows / 4 + 2);
  std::vector<std::uint32_t> positions(most), rising(most);
  std::vector<std::int32_t> from(most);
  std::vector<kv_slice> single(most);
  std::iota(from.begin(), from.end(), 0);
  std::iota(rising.begin(), rising.end(), 0);
  for (std::uint32_t i = 0; i < most; ++i) single[i] = {i, 1, 0, pages.data()};
  const auto first = [](auto& all, std::uint32_t n) { return std::span(all).first(n); };
  // Takes all memory before the first step, because graphs contain addresses: for padded steps, and for a
  // list of pages for each decoding row.
  const warm_extent room = warm_extent_of(d_, heads_, decode_rows, prompt_rows, most_pages);
  rows_here_.reserve(room.words);
  if (!make_room(room.rows, room.logits) || free_bytes(d_) < least_free) return false;
  // Runs the largest number of rows of each class of products: an algorithm that is the fastest for the
  // fewest rows of a class may be slow for the most. On a deterministic device each number of rows is tried
  // (products::run).
  const auto next = [&](std::uint32_t n) {
    return d_.deterministic ? whole_units(n + 1) : products::next_class(n);
  };
  const auto prompt = [&](std::uint32_t n) {
    const kv_slice slice{0, n, 0, pages.data()};
    const auto last = static_cast<std::int32_t>(n - 1);
    return forward({first(tokens, n), first(rising, n), std::span(&slice, 1), std::span(&last, 1)});
  };
  const auto fuses = [&](std::uint32_t n) {
    for (std::size_t i = 0; i < s_.layers.size(); ++i)
      if (const feed_forward f = dense_part(s_.model.layers[i].mlp);
          f.inter && !products_.can_fuse_gate(s_.layers[i], f, normed_.as<element>(), n))
        return false;
    return true;
  };
  for (std::uint32_t n = 0; n < most;) {
    const std::uint32_t fewest = n + 1;
    n = std::min(next(n), most);
    if (!prompt(n)) return false;
    // The gate may be a part of the product for the most rows of a class, but not for fewer. cuBLASLt
    // computes those: its algorithm is searched for the most of them.
    std::uint32_t apart = n;
    while (apart >= fewest && fuses(apart)) --apart;
    if (!d_.deterministic && apart >= fewest && apart < n && !prompt(apart)) return false;
  }
  const auto decode = [&](std::uint32_t n) {
    return forward({first(tokens, n), first(positions, n), first(single, n), first(from, n)});
  };
  for (const std::uint32_t c : batch_classes) {
    const std::uint32_t n = std::min(c, decode_rows);
    // Contexts of equal length; then one that is much longer than the others, so that rows may be listed.
    for (const std::uint32_t longest : {0u, 16 * n}) {
      positions[0] = single[0].position = longest;
      // Launched one by one, recorded and run, replayed. A replay is a whole step at once, which holds up
      // others, so a load that gives way leaves it out.
      for (int i = 0; i < (d_.gives_way() ? 2 : 3); ++i)
        if (!decode(n)) return false;
    }
    if (n == decode_rows) break;
  }
  for (std::uint32_t n = largest_class; n < decode_rows;) {  // such steps have no graphs
    n = std::min(next(n), decode_rows);
    if (!decode(n)) return false;
  }
  const decoder_draw any;
  decoder_result drawn;
  return draw({&any, 1}) && collect({&drawn, 1});
}

bool cuda_decoder::compute(const decoder_step& step) {
  const auto rows = static_cast<std::uint32_t>(step.tokens.size());
  // Only steps of decoding are replayed as graphs: each slice has one row, and each row wants logits.
  const bool decoding =
      step.slices.size() == rows && step.logits_from.size() == rows && rows <= largest_class;
  const step_extent e = rows_here_.extent_of(step, decoding);
  // Waiting draws of the step before run inside the launch of a replayed step. They read the logits of the
  // step before, so that the memory of the logits must not move before they have run.
  const bool along = decoding && draws_.waiting() <= e.rows && e.rows <= rows_ && e.logits <= logits_rows_;
  if (!along) draws_.start(logits_.as<float>(), s_.model.vocab);
  if (!make_room(e.rows, e.logits)) return false;
  bool moved = false;
  rows_view v = rows_here_.write(step, e, moved);
  v.drawn = draws_.ids();
  if (moved) drop_graphs();
  if (d_.failed() || !v.tokens) return false;
  if (!decoding) {
    record(v, false);
    return !d_.failed();
  }
  draws_.go_along(e.rows);
  graph& g = graphs_[{e.rows, e.listed}];
  if (!g.seen) {
    record(v, true);
    g.seen = true;
    return !d_.failed();
  }
  if (!g.ready) {
    cudaGraph_t made = nullptr;
    WEIR_CUDA(d_, cudaStreamBeginCapture(d_.stream, cudaStreamCaptureModeThreadLocal));
    recording_ = true;
    record(v, true);
    recording_ = false;
    WEIR_CUDA(d_, cudaStreamEndCapture(d_.stream, &made));
    if (!d_.failed()) WEIR_CUDA(d_, cudaGraphInstantiate(&g.ready, made, 0));
    if (made) cudaGraphDestroy(made);
  }
  if (!d_.failed()) WEIR_CUDA(d_, cudaGraphLaunch(g.ready, d_.stream));
  d_.breathe(device::rests_of_kernels);
  return !d_.failed();
}

// Whether the branch has to be zeros when its next product comes: whether that product adds to it, for `rows`
// rows. The next one is that of layer `i` behind attention, or where `attended` behind the feed-forward, or
// of the first later layer that has a branch. A mixture of experts adds nothing to the branch (expert_sum).
bool cuda_decoder::clears(std::size_t i, bool attended, std::uint32_t rows) const {
  if (attended && i < apart_.size() && apart_[i] && !s_.model.layers[i].mlp.is_mixture())
    return products_.adds_quickly(s_.layers[i].down, rows);
  for (i += attended; i < apart_.size(); ++i)
    if (apart_[i]) return products_.adds_quickly(s_.layers[i].out, rows);
  return false;
}

void cuda_decoder::record(const rows_view& v, bool decoding) {
  const model_shape& m = s_.model;
  if (decoding) draws_.record(v.rows, logits_.as<float>(), m.vocab);
  rows_here_.copy_in(decoding);
  const float factor = m.embed_norm ? m.embed_factor : m.embed_factor / units_.unit;
  embed(d_, v, s_.embedding, x_.as<float>(), factor,
        clears(0, false, v.rows) ? branch_.as<float>() : nullptr);
  if (m.embed_norm)
    norm_stream(d_, x_.as<float>(), {{s_.embed_norm}, m.norm_eps, m.centred_norms}, v.rows, m.hidden,
                1 / units_.unit);
  const std::uint32_t half = heads_.head_dim / 2, tables = angle_tables_of(m);
  const auto* frequencies = frequencies_.as<float>();
  angles(d_, v, {frequencies, frequencies + std::size_t{tables} * half, tables, half},
         std::size_t{rows_} * half, cos_.as<float>(), sin_.as<float>());
  pending_sum before;  // what the layer before has not added to x
  for (std::size_t i = 0; i < s_.layers.size(); ++i) {
    before = feed(i, v, attend(i, v, decoding, before));
    if (!recording_) d_.breathe(device::rests_of_kernels);
  }
  if (v.logits == 0) return;
  float* logits = logits_.as<float>();
  const norm_args n = final_norm();
  if (!multiply_normed(before, n, v.logits_from, s_.head, {}, v.logits, logits, product_out::f32)) {
    const column_order order = products_.order_for(s_.head, {}, v.logits);
    norm(d_, multiplied_type(s_.head), x_.as<float>(), before, v.logits_from, n, v.logits, m.hidden,
         normed_.as<element>(), order);
    products_.run_head(normed_.as<element>(), v.logits, logits, order);
  }
  if (m.logit_cap != 0) cap_logits(d_, logits, std::size_t{v.logits} * m.vocab, m.logit_cap);
}

rotary_args cuda_decoder::rotary_of(std::size_t i) const {
  const decoder_layer& w = s_.layers[i];
  const attention_mixer& a = s_.model.layers[i].mixer;
  const std::size_t table = angle_table(s_.model, a) * std::size_t{rows_} * (heads_.head_dim / 2);
  rotary_args t{w.qkv_bias,       w.q_norm, w.k_norm, cos_.as<float>() + table, sin_.as<float>() + table,
                s_.model.norm_eps};
  t.rest = rest_of(s_.model, a);
  t.norms = a.norms;
  t.centred = s_.model.centred_norms;
  t.growth = a.rule.growth;
  t.growth_unit = a.rule.growth_unit;
  return t;
}

void cuda_decoder::add(std::size_t i, const matrix& w, const element* x, std::uint32_t rows, bool first,
                       column_order order) {
  if (!apart_[i]) return multiply(w, {}, x, rows, x_.as<float>(), product_out::add_f32, order);
  const bool adds = !first || products_.adds_quickly(w, rows);
  multiply(w, {}, x, rows, branch_.as<float>(), adds ? product_out::add_f32 : product_out::f32, order);
}

// Attention of layer `i`, its last product included. `before` is what is to be added to x in front of it.
// Returns what is to be added behind it. A parallel block leaves the normed rows as they are for feed().
pending_sum cuda_decoder::attend(std::size_t i, const rows_view& v, bool decoding,
                                 const pending_sum& before) {
  const decoder_layer& w = s_.layers[i];
  const layer_shape& shape = s_.model.layers[i];
  const bool parallel = shape.norms == norm_place::parallel;
  const std::size_t half = page_stride_;
  unsigned char* keys = pages_ + shape.mixer.place * 2 * half;
  element *normed = normed_.as<element>(), *qkv = qkv_.as<element>(), *out = attended_.as<element>();
  const norm_args n = front(shape, w.attention_norm);
  if (parallel ||
      !multiply_normed(before, n, nullptr, w.qkv, w.qkv_rest, v.rows, qkv, product_out::element)) {
    column_order order = products_.order_for(w.qkv, w.qkv_rest, v.rows);
    if (parallel && order_to_feed(i, v.rows) != order) order = column_order::plain;
    norm(d_, type_, x_.as<float>(), before, nullptr, n, v.rows, s_.model.hidden, normed, order);
    multiply(w.qkv, w.qkv_rest, normed, v.rows, qkv, product_out::element, order);
  }

  const rotary_args rotary = rotary_of(i);
  const column_order attended = products_.order_for(w.out, {}, v.rows);
  const attention_args attention{heads_,   type_,  {keys, keys + half}, qkv, out, shape.mixer.rule,
                                 attended, w.sinks};
  const bool fresh = decoding && !d_.deterministic && takes_fresh(heads_) && rotary.is_simple();
  if (!fresh) rotary_and_write(d_, type_, v, heads_, rotary, qkv, attention.pages);
  prefill_attention(d_, v, attention);
  decode_attention(d_, v, attention, rotary, fresh, split_);
  if (shape.mixer.gated) {
    const std::uint32_t first = heads_.width() - heads_.gates;
    gate_rows(d_, type_, heads_, qkv, w.qkv_bias ? w.qkv_bias + first : nullptr, v.rows, out, attended);
  }
  add(i, w.out, out, v.rows, true, attended);

  pending_sum after;
  after.biases[0] = w.out_bias;
  if (!apart_[i]) return after;
  after.branch = branch_.as<float>();
  if (shape.norm_behind()) after.behind = {w.attention_behind, s_.model.behind_eps, s_.model.centred_norms};
  after.factor = shape.branch_factor;
  after.clear = clears(i, true, v.rows);
  return after;
}

// The feed-forward of layer `i`; `before` as attend() returned it. Returns what is to be added to x behind
// it.
pending_sum cuda_decoder::feed(std::size_t i, const rows_view& v, const pending_sum& before) {
  const decoder_layer& w = s_.layers[i];
  const layer_shape& shape = s_.model.layers[i];
  const bool parallel = shape.norms == norm_place::parallel;
  element *normed = normed_.as<element>(), *inner = inner_.as<element>(), *gate_up = gate_up_.as<element>();
  const norm_args n = front(shape, w.mlp_norm);
  const bool mixed = shape.mlp.is_mixture();
  pending_sum after;
  if (!mixed) after.biases[0] = w.down_bias;
  if (apart_[i]) {
    // Of a mixture the branch has what attention has added to it in a parallel block.
    if (!mixed || parallel) after.branch = branch_.as<float>();
    if (shape.norm_behind()) after.behind = {w.mlp_behind, s_.model.behind_eps, s_.model.centred_norms};
    after.factor = shape.branch_factor;
    after.clear = clears(i + 1, false, v.rows);
  }
  if (parallel) after.biases[1] = w.out_bias;

  column_order order = order_to_feed(i, v.rows), inner_order = column_order::plain;
  if (mixed) {
    after.experts = feed_experts(i, v, parallel ? nullptr : &before, n);
    return after;
  }
  const bool fuses = products_.can_fuse_gate(w, shape.mlp, normed, v.rows);
  if (!parallel && fuses &&
      multiply_normed(before, n, nullptr, w.gate_up, w.gate_up_rest, v.rows, inner, product_out::gated,
                      shape.mlp.kind)) {
    add(i, w.down, inner, v.rows, true, inner_order);
    return after;
  }
  if (!parallel)
    norm(d_, type_, x_.as<float>(), before, nullptr, n, v.rows, s_.model.hidden, normed, order);
  else if (products_.order_for(w.qkv, w.qkv_rest, v.rows) != order)
    order = column_order::plain;  // as attend() has left them
  if (fuses) {
    if (order == column_order::paired) inner_order = products_.order_for(w.down, {}, v.rows);
    products_.run_gated(w, shape.mlp.kind, normed, v.rows, inner, order, inner_order);
  } else {
    multiply(w.gate_up, w.gate_up_rest, normed, v.rows, gate_up, product_out::element, order);
    activate_rows(d_, type_, gate_up, w.gate_up_bias, v.rows, shape.mlp, inner);
  }
  add(i, w.down, inner, v.rows, !parallel, inner_order);
  return after;
}

// The shared expert of layer `i`, from the normed rows to shared_.
void cuda_decoder::feed_shared(std::size_t i, std::uint32_t rows) {
  const decoder_layer& w = s_.layers[i];
  const feed_forward f = dense_part(s_.model.layers[i].mlp);
  element *normed = normed_.as<element>(), *inner = inner_.as<element>(), *gate_up = gate_up_.as<element>();
  constexpr column_order plain = column_order::plain;
  if (products_.can_fuse_gate(w, f, normed, rows)) {
    products_.run_gated(w, f.kind, normed, rows, inner, plain, plain);
  } else {
    multiply(w.gate_up, w.gate_up_rest, normed, rows, gate_up, product_out::element);
    activate_rows(d_, type_, gate_up, w.gate_up_bias, rows, f, inner);
  }
  multiply(w.down, {}, inner, rows, shared_.as<float>(), product_out::f32);
}

// The mixture of experts of layer `i`. `before` is what is to be added to x in front of the norm `n`; null:
// the normed rows are there, in plain order. Returns what is to be added to x. What experts make stays there
// until the next layer's experts.
expert_sum cuda_decoder::feed_experts(std::size_t i, const rows_view& v, const pending_sum* before,
                                      const norm_args& n) {
  const expert_weights& e = s_.layers[i].experts;
  const feed_forward& f = s_.model.layers[i].mlp;
  const std::uint32_t chosen = f.router.chosen, slots = v.rows * chosen;
  const expert_lists lists = lists_at(lists_.as<std::byte>(), places_);
  float *const gates = f.shared_gate ? lists.gates : nullptr, *const x = x_.as<float>();
  element* const normed = normed_.as<element>();
  const route how{nullptr,   e.router,      e.router_bias, e.choice_bias, f.router,
                  lists.ids, lists.weights, gates,         v.rows,        s_.model.hidden};
  if (before && can_begin_mixture(d_, how)) {
    begin_mixture(d_, type_, x, *before, n, how, v.pages_at, normed);
  } else {
    if (before) norm(d_, type_, x, *before, nullptr, n, v.rows, s_.model.hidden, normed);
    route_rows(d_, how, normed, type_, v.pages_at);
  }
  if (f.shared) feed_shared(i, v.rows);
  const bool plain = is_plain(e.gate_up.first.type) && is_plain(e.down.first.type);
  const expert_division by = divide_experts(slots, f.router.experts, plain, d_.deterministic);
  if (!by.single) order_slots(d_, lists, slots, f.router.experts, by);
  expert_product in{e.gate_up, e.gate_up_bias, normed, inner_.as<void>(), slots, chosen};
  in.kind = f.gated ? expert_out::gated : expert_out::alone;
  in.f = f.kind;
  in.limit = f.limit;
  expert_product out{e.down, e.down_bias, inner_.as<element>(), made_.as<void>(), slots};
  out.ids_settled = true;
  if (!by.single && can_group_slots(d_, e.gate_up, by) && can_group_slots(d_, e.down, by)) {
    auto* const gathered = made_.as<element>();  // nobody needs it before the last product writes to it
    gather_slots(d_, lists, normed, slots, chosen, s_.model.hidden, gathered);
    in.x = gathered;
    in.share = 1;
    in.places = slot_places::in_order;
    out.places = slot_places::to_slots;
  }
  // Where nothing else is to be done with the sum of what experts make, their kernel may add it to x at once.
  mixture_sum sum;
  if (!apart_[i] && !f.shared) sum = {x, lists.weights, chosen};
  if (multiply_mixture(d_, type_, lists, in, out, by, sum)) return {};
  return {made_.as<float>(), lists.weights, f.shared ? shared_.as<float>() : nullptr, gates, chosen};
}

bool cuda_decoder::read_logits(std::uint32_t row, float* to_host) {
  d_.use();
  if (d_.failed()) return false;
  WEIR_CUDA(d_, cudaMemcpyAsync(to_host, logits_.as<float>() + std::size_t{row} * s_.model.vocab,
                                s_.model.vocab * sizeof(float), cudaMemcpyDeviceToHost, d_.stream));
  d_.sync();
  return !d_.failed();
}

}  // namespace

std::unique_ptr<decoder> make_decoder(void* self, const decoder_shape& s) {
  device& d = of(self);
  if (!takes_all(s) || d.failed()) return nullptr;
  return std::make_unique<cuda_decoder>(d, s);
}

}  // namespace weir::kernels::cuda
