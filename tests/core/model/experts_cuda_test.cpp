// Models with mixtures of experts, sinks and clamped activations on a cuda device: the decoder's logits agree
// with those of the reference's single operations, and a deterministic device gives a row the same bits in
// any company. Skipped, saying so, where there is no device.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "core/model/decoder_model.h"
#include "core/model/load.h"
#include "kernels/blocks.h"
#include "tests/support/chooser.h"
#include "tests/support/cuda_device.h"
#include "tests/support/difference.h"
#include "tests/support/drive.h"
#include "tests/support/plain_layer.h"
#include "tests/support/seed.h"

namespace weir::tests::experts_cuda_test {

using namespace weir::core;

namespace {

using backend_ptr = std::shared_ptr<const kernels::backend>;

constexpr std::uint32_t sequences = 6, pages_each = 7;

// How rows come to their experts. all: every expert is every row's. fixed: by biases that no score outweighs.
// Where scores decide (free), two experts may be so nearly equal that the rounding of rows decides.
enum class choice { all, fixed, free };

struct described {
  model_config config;
  kernels::dtype type;  // of matrices
  choice how;
};

kernels::feed_forward mixture(chooser& r, std::uint32_t unit, choice how) {
  kernels::feed_forward f;
  f.inter = unit * (1 + r.up_to(unit < 64 ? 8 : 1));
  f.kind = r.of({kernels::activation::silu, kernels::activation::gelu, kernels::activation::relu2,
                 kernels::activation::clamped, kernels::activation::clamped});
  f.gated = f.kind == kernels::activation::clamped || !r.one_in(4);
  if (f.kind == kernels::activation::clamped) f.limit = 1.5f;
  f.router.experts = how == choice::all ? r.of({4u, 8u}) : r.of({4u, 8u, 20u});
  f.router.chosen = how == choice::all ? f.router.experts : 1 + r.up_to(3);
  f.router.sigmoid = r.one_in(2);
  f.router.choice_bias = r.one_in(3);
  f.router.renormalised = !r.one_in(3);
  f.router.factor = r.of({1.0f, 1.5f});
  if (r.one_in(2)) f.shared = unit * (1 + r.up_to(2));
  f.shared_gate = f.shared != 0 && r.one_in(2);
  return f;
}

described describe(chooser& r, kernels::dtype type, choice how) {
  described d{parse_random_model("tiny-110m", 4096).value().config, type, how};
  model_config& c = d.config;
  // 360 and 72 are no multiples of 64; blocks have columns in multiples of 32 or 256.
  const std::uint32_t block = kernels::facts(type).block_weights, unit = std::max(block, 8u);
  c.shape.hidden = block == 256 ? 256 : block == 32 ? r.of({96u, 160u, 256u}) : r.of({128u, 200u, 360u});
  c.shape.vocab = 512;
  const std::uint32_t kv_heads = r.of({1u, 2u}), head_dim = r.of({32u, 64u, 128u});
  const std::uint32_t group = block == 256 ? 8 : r.of({1u, 2u, 8u});
  set_layers(c, 2 + r.up_to(1), tests::plain_layer(unit * 2, kv_heads * group, kv_heads, head_dim));
  const bool alike = r.one_in(2);
  const auto place = static_cast<kernels::norm_place>(r.up_to(3));
  for (kernels::layer_shape& l : c.shape.layers) {
    l.norms = alike ? place : static_cast<kernels::norm_place>(r.up_to(3));
    l.branch_factor = alike ? 0.5f : r.of({1.0f, 0.5f});
    if (&l == &c.shape.layers[1] || !r.one_in(3)) l.mlp = mixture(r, unit, how);
    l.mixer.sinks = r.one_in(2);
    if (r.one_in(2)) l.mixer.rule.window = 1 + r.up_to(100);
  }
  return d;
}

// A model and the memory of its weights. The same description and seed give the same numbers on every
// backend.
class drawn_model {
 public:
  drawn_model(const described& of, const backend_ptr& b, std::uint64_t seed)
      : d_(of), b_(b), r_(static_cast<std::mt19937::result_type>(seed)) {
    const kernels::model_shape& s = d_.config.shape;
    model_weights w;
    w.embedding = draw_matrix(s.vocab, s.hidden);
    w.head = draw_matrix(s.vocab, s.hidden);
    w.norm.weight = draw(s.hidden, 0.2f, 1);
    for (const kernels::layer_shape& l : s.layers) w.layers.push_back(draw_layer(l));
    weights_ = w.layers;
    model_ =
        std::make_unique<decoder_model>(d_.config, std::vector<token_id>{}, std::move(w), b_, kv_choice{});
    model_->allocate_pages(sequences * pages_each).value();
  }
  decoder_model& get() { return *model_; }
  // The weights without their data, as a plan has them.
  step_needs planned(std::uint32_t batch) const {
    model_weights w;
    w.embedding = w.head = {nullptr, d_.type, d_.config.shape.vocab, d_.config.shape.hidden};
    w.layers = weights_;
    return step_needs_of(d_.config, w, *b_, {}, batch);
  }

 private:
  const float* draw(std::size_t count, float spread, float around = 0) {
    std::normal_distribution<float> normal(around, spread);
    std::vector<float> v(count);
    for (float& x : v) x = normal(r_);
    return keep(v.data(), count * sizeof(float));
  }
  const float* keep(const void* from, std::size_t bytes) {
    memory_.emplace_back(b_, bytes);
    b_->do_upload(b_->self, memory_.back().data(), from, bytes);
    return memory_.back().floats();
  }

  // Rows of a matrix as they are on the host. Quantised ones have numbers of about 1/32.
  std::vector<std::byte> draw_rows(std::uint32_t rows, std::uint32_t cols) {
    const kernels::dtype type = d_.type;
    std::vector<std::byte> out(kernels::bytes_of(type, std::uint64_t{rows} * cols));
    if (!kernels::is_plain(type)) {
      kernels::fill_random_blocks(out.data(), type, std::uint64_t{rows} * cols, r_());
      return out;
    }
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(cols)));
    for (std::size_t i = 0; i < std::size_t{rows} * cols; ++i) {
      const float x = normal(r_);
      const std::uint16_t bits = type == kernels::dtype::f16 ? kernels::to_f16(x) : kernels::to_bf16(x);
      std::memcpy(out.data() + 2 * i, &bits, 2);
    }
    return out;
  }
  kernels::matrix draw_matrix(std::uint32_t rows, std::uint32_t cols) {
    return draw_experts(1, rows, cols).first;
  }
  kernels::expert_matrices draw_experts(std::uint32_t count, std::uint32_t rows, std::uint32_t cols) {
    const std::uint64_t each = (b_->weight_bytes(b_->self, d_.type, rows, cols) + 255) / 256 * 256;
    memory_.emplace_back(b_, each * count);
    std::byte* const at = memory_.back().data();
    for (std::uint32_t e = 0; e < count; ++e) {
      const auto host = draw_rows(rows, cols);
      b_->do_pack(b_->self, {host.data(), d_.type, rows, cols}, at + e * each);
    }
    return {{at, d_.type, rows, cols, kernels::layout::packed}, count, each};
  }

  layer_weights draw_layer(const kernels::layer_shape& l) {
    const std::uint32_t hidden = d_.config.shape.hidden;
    layer_weights w;
    for (kernels::norm_weight* n : {&w.attention_norm, &w.attention_behind, &w.mlp_norm, &w.mlp_behind})
      n->weight = draw(hidden, 0.2f, 1);
    w.qkv.w = draw_matrix(l.mixer.width(), hidden);
    w.qkv.bias = draw(l.mixer.width(), 0.2f);
    w.out.w = draw_matrix(hidden, l.mixer.q_width());
    w.out.bias = draw(hidden, 0.2f);
    if (l.mixer.sinks) w.sinks = draw(l.mixer.heads, 2);
    const kernels::feed_forward& f = l.mlp;
    const std::uint32_t inter = f.is_mixture() ? f.shared : f.inter;
    if (inter) {
      w.gate_up.w = draw_matrix(f.gated ? 2 * inter : inter, hidden);
      w.down.w = draw_matrix(hidden, inter);
      if (!f.is_mixture()) w.down.bias = draw(hidden, 0.2f);
    }
    if (f.is_mixture()) w.experts = draw_mixture(f, hidden);
    return w;
  }

  kernels::expert_weights draw_mixture(const kernels::feed_forward& f, std::uint32_t hidden) {
    const std::uint32_t experts = f.router.experts;
    kernels::expert_weights e;
    e.router = draw(std::size_t{f.router_rows()} * hidden, 0.5f / std::sqrt(static_cast<float>(hidden)));
    std::vector<float> bias(experts), by_choice(experts);
    for (std::uint32_t i = 0; i < experts; ++i) {
      const auto place = static_cast<float>((i * 7 + 3) % experts);
      bias[i] = d_.how == choice::fixed ? 6 * place : 0.1f * place;
      by_choice[i] = d_.how == choice::fixed ? 2 * place : 0.02f * place;
    }
    e.router_bias = keep(bias.data(), experts * sizeof(float));
    if (f.router.choice_bias) e.choice_bias = keep(by_choice.data(), experts * sizeof(float));
    e.gate_up = draw_experts(experts, f.width(), hidden);
    e.down = draw_experts(experts, hidden, f.inter);
    e.gate_up_bias = draw(std::size_t{experts} * f.width(), 0.2f);
    e.down_bias = draw(std::size_t{experts} * hidden, 0.2f);
    return e;
  }

  const described d_;
  const backend_ptr b_;
  std::mt19937 r_;
  std::vector<kernels::buffer> memory_;
  std::vector<layer_weights> weights_;
  std::unique_ptr<decoder_model> model_;
};

// Feeds all models the same steps: prompts in slices, then decoding of all sequences, often enough for graphs
// to be recorded and replayed, and of some. `each` is called with the number of logits rows of each step.
template <class F>
void drive(chooser& r, std::vector<model*> models, std::uint32_t longest, const F& each) {
  std::vector<std::vector<tests::driven_sequence>> of(models.size());
  for (std::size_t m = 0; m < models.size(); ++m)
    for (std::uint32_t i = 0; i < sequences; ++i)
      of[m].emplace_back(*models[m], static_cast<page_id>(i * pages_each), pages_each);
  for (std::uint32_t step = 0; step < 8; ++step) {
    const std::uint32_t some = step == 6 ? 1 : step == 7 ? 2 + r.up_to(sequences - 3) : sequences;
    std::vector<std::uint32_t> rows(some, 1);
    if (step < 2)
      for (std::uint32_t& n : rows) n = 1 + r.up_to(12);
    if (step == 0) rows[0] = longest;
    std::vector<token_id> tokens;
    std::vector<batch> b(models.size());
    for (std::uint32_t i = 0; i < some; ++i) {
      const auto first = static_cast<std::uint32_t>(tokens.size());
      for (std::uint32_t j = 0; j < rows[i]; ++j) tokens.push_back(static_cast<token_id>(r.up_to(511)));
      for (std::size_t m = 0; m < models.size(); ++m) {
        b[m].slices.push_back(of[m][i].slice(first, rows[i], static_cast<std::int32_t>(i)));
        of[m][i].advance(rows[i]);
      }
    }
    for (std::size_t m = 0; m < models.size(); ++m) {
      b[m].tokens = tokens;
      b[m].logits_rows = some;
      models[m]->forward(b[m]).value();
    }
    each(some);
  }
}

std::string text_of(const described& d) {
  std::string out =
      fmt::format("{} hidden {} choice {}\n", kernels::name(d.type), d.config.shape.hidden, int(d.how));
  for (const auto& l : d.config.shape.layers)
    out += fmt::format(
        "  norms {} factor {} heads {}/{} of {} sinks {} window {} mlp {} {} {} experts {} of {} "
        "sigmoid {} choice bias {} renormalised {} shared {} {}\n",
        int(l.norms), l.branch_factor, l.mixer.heads, l.mixer.kv_heads, l.mixer.head_dim, l.mixer.sinks,
        l.mixer.rule.window, l.mlp.inter, int(l.mlp.kind), l.mlp.gated, l.mlp.router.chosen,
        l.mlp.router.experts, l.mlp.router.sigmoid, l.mlp.router.choice_bias, l.mlp.router.renormalised,
        l.mlp.shared, l.mlp.shared_gate);
  return out;
}

constexpr kernels::dtype types[] = {kernels::dtype::bf16, kernels::dtype::f16,  kernels::dtype::mxfp4,
                                    kernels::dtype::bf16, kernels::dtype::q8_0, kernels::dtype::fp8,
                                    kernels::dtype::bf16, kernels::dtype::q4_k};

}  // namespace

TEST_CASE("cuda: a decoder's logits agree with the reference's for random mixtures of experts") {
  for (const bool deterministic : {false, true}) {
    const auto b = tests::cuda_device(deterministic);
    if (!b) return;
    for (std::uint32_t n = 0; n < (deterministic ? 2u : 12u); ++n) {
      chooser r(tests::drawn_seed(n + 1));
      const kernels::dtype type = types[n % 8];
      const described d = describe(r, type, static_cast<choice>(n % 3));
      const std::uint64_t seed = n + 7;
      drawn_model host(d, kernels::reference_backend(), seed), device(d, b, seed);
      INFO("deterministic " << deterministic << " round " << n << " " << text_of(d));
      CHECK(device.get().info().runs_ahead);  // the decoder has taken it
      std::vector<double> all;
      drive(r, {&host.get(), &device.get()}, n % 4 == 0 ? 160 : 20, [&](std::uint32_t rows) {
        for (std::uint32_t row = 0; row < rows; ++row)
          all.push_back(difference(host.get().logits(row), device.get().logits(row)));
      });
      std::ranges::sort(all);
      const double most = type == kernels::dtype::f16 ? 1e-2 : 6e-2;
      CHECK(all[all.size() / 2] <= most);
      if (d.how != choice::free) CHECK(all.back() <= most);
    }
  }
}

TEST_CASE("cuda: a mixture gives a row the same bits in any company on a deterministic device") {
  const auto b = tests::cuda_device(true);
  if (!b) return;
  for (std::uint32_t n = 0; n < 4; ++n) {
    chooser r(tests::drawn_seed(n + 50));
    const described d = describe(r, types[(n * 3) % 8], choice::free);
    INFO("round " << n << " " << text_of(d));
    drawn_model all(d, b, n), alone(d, b, n);
    // The first sequence by itself, in other slices.
    std::vector<token_id> tokens(120);
    for (token_id& t : tokens) t = static_cast<token_id>(r.up_to(511));
    tests::driven_sequence single(alone.get(), 0, pages_each);
    const auto wanted = single.feed(tokens, 17);
    tests::driven_sequence first(all.get(), 0, pages_each), second(all.get(), pages_each, pages_each);
    batch work;
    work.tokens = tokens;
    for (std::uint32_t i = 0; i < 150; ++i) work.tokens.push_back(static_cast<token_id>(r.up_to(511)));
    work.slices = {first.slice(0, 120, 0), second.slice(120, 150, 1)};
    work.logits_rows = 2;
    all.get().forward(work).value();
    const auto got = all.get().logits(0);
    REQUIRE(got.size() == wanted.size());
    CHECK(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("cuda: a decoder with mixtures takes what is planned, and warms up") {
  for (const bool deterministic : {false, true}) {
    if (!tests::cuda_device(deterministic)) return;
    const auto b = make_backend("cuda:0", 1, deterministic).value();
    for (const std::uint32_t batch : {1u, 40u}) {
      chooser r(tests::drawn_seed(batch + 70));
      const described d = describe(r, kernels::dtype::bf16, choice::free);
      drawn_model m(d, b, 3);
      INFO("deterministic " << deterministic << " batch " << batch << " " << text_of(d));
      const step_needs planned = m.planned(batch);
      CHECK(planned.prompt_rows == m.get().info().prompt_rows);
      m.get().warm_up(batch, m.get().info().prompt_rows).value();
      CHECK(b->memory(b->self).workspaces + m.get().activation_bytes() == planned.workspaces);
    }
  }
}

}  // namespace weir::tests::experts_cuda_test
