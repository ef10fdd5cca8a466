// Random descriptions of models on a cuda device: whatever a layer is made of, the decoder's logits agree
// with those of the host's single operations. Skipped, saying so, where there is no device.
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "core/model/load.h"
#include "tests/support/chooser.h"
#include "tests/support/cuda_device.h"
#include "tests/support/difference.h"
#include "tests/support/drive.h"
#include "tests/support/plain_layer.h"

namespace weir::tests::descriptions_cuda_test {

using namespace weir::core;

namespace {

kernels::rotary_table table(chooser& r, std::uint32_t head_dim) {
  const std::uint32_t pairs = r.one_in(2)   ? head_dim / 2
                              : r.one_in(2) ? head_dim / 4
                                            : 1 + r.up_to(head_dim / 2 - 1);
  kernels::rotary_table t;
  for (std::uint32_t i = 0; i < pairs; ++i)
    t.frequencies.push_back(std::pow(10000.0f, -static_cast<float>(i) / static_cast<float>(pairs)));
  if (r.one_in(3)) t.factor = 1.2f;
  return t;
}

void choose_mixer(chooser& r, kernels::attention_mixer& a, std::size_t tables, bool centred) {
  a.rotary = static_cast<std::int32_t>(r.up_to(static_cast<std::uint32_t>(tables))) - 1;
  a.norms = static_cast<kernels::head_norms>(r.up_to(3));
  if (centred && a.norms == kernels::head_norms::row) a.norms = kernels::head_norms::own;
  if (r.one_in(2)) a.rule.window = 1 + r.up_to(150);
  if (r.one_in(3)) a.rule.cap = 2;
  if (r.one_in(3)) a.rule.growth = 0.2f, a.rule.growth_unit = 1 + r.up_to(60);
}

random_model describe(chooser& r, kernels::dtype type) {
  random_model m = parse_random_model("tiny-110m", 4096).value();
  m.type = type;
  model_config& c = m.config;
  c.shape.hidden = r.of({128u, 256u, 512u, 768u});
  c.shape.vocab = r.of({512u, 1000u, 1024u});
  c.stored.tied = r.one_in(2);
  c.stored.norms = names_both;  // every norm is there, used or not
  const bool gated = r.one_in(4), biased = r.one_in(3);
  c.stored.qkv_bias = biased && !gated;
  c.stored.out_bias = c.stored.mlp_bias = biased;
  c.shape.centred_norms = r.one_in(3);
  c.stored.norm_bias = c.shape.centred_norms && r.one_in(2);
  c.shape.behind_eps = 1e-4f;
  const std::uint32_t kv_heads = r.of({1u, 2u, 4u}), head_dim = r.of({16u, 32u, 64u, 96u, 128u, 256u});
  set_layers(c, 2 + r.up_to(2), tests::plain_layer(64, kv_heads * r.of({1u, 2u, 3u}), kv_heads, head_dim));
  c.shape.tables = {table(r, head_dim)};
  if (r.one_in(2)) c.shape.tables.push_back(table(r, head_dim));
  const float factor = r.of({1.0f, 0.25f});
  const bool alike = r.one_in(2);
  const auto place = static_cast<kernels::norm_place>(r.up_to(3));
  for (kernels::layer_shape& l : c.shape.layers) {
    l.norms = alike ? place : static_cast<kernels::norm_place>(r.up_to(3));
    l.branch_factor = alike ? factor : r.of({1.0f, 0.5f});
    l.mlp = {64 * (1 + r.up_to(12)),
             r.of({kernels::activation::silu, kernels::activation::gelu, kernels::activation::gelu,
                   kernels::activation::relu2}),
             !r.one_in(4)};
    choose_mixer(r, l.mixer, c.shape.tables.size(), c.shape.centred_norms);
    l.mixer.gated = gated;
  }
  if (r.one_in(2)) c.shape.embed_factor = 8;
  c.shape.embed_norm = r.one_in(3);
  if (r.one_in(2)) c.shape.logit_factor = 0.3f;
  if (r.one_in(3)) c.shape.logit_cap = 5;
  return m;
}

std::string text_of(const kernels::model_shape& m) {
  std::string out =
      fmt::format("hidden {} tables {} centred {} embed {} {} logits {} {}\n", m.hidden, m.tables.size(),
                  m.centred_norms, m.embed_factor, m.embed_norm, m.logit_factor, m.logit_cap);
  for (const auto& t : m.tables) out += fmt::format("  table {} {}\n", t.frequencies.size(), t.factor);
  for (const auto& l : m.layers)
    out += fmt::format(
        "  norms {} factor {} heads {}/{} of {} gated {} rotary {} head norms {} window {} cap {} growth {} "
        "mlp {} "
        "{} {}\n",
        int(l.norms), l.branch_factor, l.mixer.heads, l.mixer.kv_heads, l.mixer.head_dim, l.mixer.gated,
        l.mixer.rotary, int(l.mixer.norms), l.mixer.rule.window, l.mixer.rule.cap, l.mixer.rule.growth,
        l.mlp.inter, int(l.mlp.kind), l.mlp.gated);
  return out;
}

std::unique_ptr<model> make(const random_model& shape, std::shared_ptr<const kernels::backend> b,
                            kv_choice kv, bool warm) {
  auto m = std::move(make_random_model(shape, std::move(b), 5, kv).value().weights);
  m->allocate_pages(500).value();
  if (warm) m->warm_up(48, 200).value();
  return m;
}

// Quantised weights are whole blocks.
void fill_blocks(model_config& c) {
  c.shape.hidden = 512;
  for (kernels::layer_shape& l : c.shape.layers) {
    l.mlp.inter = (l.mlp.inter + 255) / 256 * 256;
    l.mixer.heads = l.mixer.kv_heads * (256 / std::gcd(256u, l.mixer.head_dim));
  }
}

// Feeds both models the same random steps of prompts, slices and decoding. Returns the largest difference.
double compare(chooser& r, model& host, model& device, std::uint32_t vocab) {
  constexpr std::size_t sequences =
      40;  // more key heads than a device has multiprocessors, with four of each
  std::vector<tests::driven_sequence> of_host, of_device;
  std::vector<std::uint32_t> prompts;
  for (std::size_t i = 0; i < sequences; ++i) {
    of_host.emplace_back(host, static_cast<page_id>(i * 6), 6);
    of_device.emplace_back(device, static_cast<page_id>(i * 6), 6);
    prompts.push_back(1 + r.up_to(i < 8 ? 200 : 20));
  }
  double worst = 0;
  for (int step = 0; step < 9; ++step) {
    batch bh, bd;
    const std::size_t some = step < 4 || step == 8 ? sequences : 1 + r.up_to(sequences - 1);
    for (std::size_t i = 0; i < some; ++i) {
      const std::uint32_t at = of_host[i].position();
      const std::uint32_t rows =
          step >= 3 || at >= prompts[i] ? 1 : std::min(prompts[i] - at, 1 + r.up_to(120));
      const auto first = static_cast<std::uint32_t>(bh.tokens.size());
      for (std::uint32_t j = 0; j < rows; ++j) bh.tokens.push_back(static_cast<token_id>(r.up_to(vocab - 1)));
      bh.slices.push_back(of_host[i].slice(first, rows, static_cast<std::int32_t>(i)));
      bd.slices.push_back(of_device[i].slice(first, rows, static_cast<std::int32_t>(i)));
      of_host[i].advance(rows);
      of_device[i].advance(rows);
    }
    bd.tokens = bh.tokens;
    bh.logits_rows = bd.logits_rows = static_cast<std::uint32_t>(some);
    host.forward(bh).value();
    device.forward(bd).value();
    for (std::uint32_t row = 0; row < some; ++row)
      worst = std::max(worst, difference(host.logits(row), device.logits(row)));
  }
  return worst;
}

}  // namespace

TEST_CASE("cuda: a decoder's logits agree with the host's for random descriptions of layers") {
  for (const bool deterministic : {false, true}) {
    const auto b = tests::cuda_device(deterministic);
    if (!b) return;
    for (std::uint32_t seed = 0; seed < (deterministic ? 4u : 40u); ++seed) {
      chooser r(seed + 1);
      const kernels::dtype type = seed % 4 == 1   ? kernels::dtype::f16
                                  : seed % 8 == 3 ? kernels::dtype::q8_0
                                  : seed % 8 == 7 ? kernels::dtype::q4_k
                                                  : kernels::dtype::bf16;
      random_model m = describe(r, type);
      if (!kernels::is_plain(type)) fill_blocks(m.config);
      const auto host = make(m, kernels::cpu_backend(4), {}, false), device = make(m, b, {}, seed % 6 == 0);
      INFO("seed " << seed << " " << kernels::name(type) << " deterministic " << deterministic << " "
                   << text_of(m.config.shape));
      CHECK(device->info().runs_ahead);  // the decoder has taken it
      CHECK(compare(r, *host, *device, m.config.shape.vocab) <= (type == kernels::dtype::f16 ? 1e-2 : 6e-2));
    }
  }
}

TEST_CASE("cuda: random descriptions of layers keep keys and values in fp8 and q8") {
  const auto b = tests::cuda_device();
  if (!b) return;
  for (std::uint32_t seed = 100; seed < 110; ++seed) {
    chooser r(seed);
    random_model m = describe(r, kernels::dtype::bf16);
    const bool q8 = seed % 2 == 0;
    if (q8 && m.config.shape.layers[0].mixer.head_dim < 32) continue;
    const kv_choice kv = q8 ? kernels::kv_type::q8 : kernels::kv_type::fp8;
    const auto host = make(m, kernels::cpu_backend(4), kv, false), device = make(m, b, kv, false);
    INFO("seed " << seed << " " << text_of(m.config.shape));
    CHECK(device->info().runs_ahead);
    CHECK(compare(r, *host, *device, m.config.shape.vocab) <= (q8 ? 0.1 : 0.25));
  }
}

}  // namespace weir::tests::descriptions_cuda_test
