// A whole decoder on a cuda device: it agrees with the single operations of the host, whatever the batch, and
// draws what the host draws. Skipped, saying so, where there is no device.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/model/load.h"
#include "core/model/load/safetensors.h"
#include "core/sample/pipeline.h"
#include "tests/support/budget.h"
#include "tests/support/cuda_device.h"
#include "tests/support/difference.h"
#include "tests/support/drive.h"
#include "tests/support/golden.h"
#include "tests/support/log_softmax.h"
#include "tests/support/plain_layer.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::decoder_cuda_test {

using namespace weir::core;

namespace {

struct shape {
  std::uint32_t hidden, inter, heads, kv_heads, head_dim, vocab;
  bool tied, bias, qk_norm;
  std::uint32_t window;
};

random_model toy(const shape& s, kernels::dtype type = kernels::dtype::bf16) {
  random_model m = parse_random_model("tiny-110m", 4096).value();
  m.type = type;
  model_config& c = m.config;
  c.shape.hidden = s.hidden;
  c.shape.vocab = s.vocab;
  c.stored.tied = s.tied;
  c.stored.qkv_bias = c.stored.out_bias = c.stored.mlp_bias = s.bias;
  auto layer = tests::plain_layer(s.inter, s.heads, s.kv_heads, s.head_dim);
  if (s.qk_norm) layer.mixer.norms = kernels::head_norms::each;
  set_layers(c, 2, layer);
  c.shape.layers[0].mixer.rule.window = s.window;
  return m;
}

std::unique_ptr<model> make(const random_model& shape, std::shared_ptr<const kernels::backend> b,
                            kv_choice kv = {}) {
  auto m = std::move(make_random_model(shape, std::move(b), 5, kv).value().weights);
  m->allocate_pages(400).value();
  m->warm_up(20, 300).value();  // as a server's models are: nothing of it may be seen
  return m;
}

constexpr shape shapes[] = {
    {256, 512, 4, 2, 64, 512, true, false, false, 0},
    {512, 1024, 8, 2, 128, 1024, false, false, false, 0},
    {512, 1536, 4, 4, 128, 512, false, true, true, 100},
    {256, 768, 8, 1, 32, 640, true, true, false, 40},
    {384, 640, 6, 2, 96, 520, false, false, true, 0},
    {512, 4096, 2, 1, 256, 512, true, false, false, 70},
    {128, 256, 8, 4, 16, 104, true, false, false, 0},
    {4096, 14336, 32, 8, 128, 512, false, false, false, 0},
    {2048, 8192, 32, 8, 64, 2048, true, false, false, 0},
};

struct allowed {
  kernels::dtype type;
  double difference;
  kv_choice kv = {};  // of both; the host's f32 stands for the device's own choice
};

// Runs random batches of prompts, slices and decoding on the host and on the device.
void compare_batches(model& on_host, model& on_device, std::uint32_t hidden, double most) {
  const auto host = &on_host, device = &on_device;
  const std::uint32_t vocab = host->info().vocab_size;
  const std::size_t sequences = hidden > 1000 ? 6 : 20;
  std::mt19937 r(11);
  std::vector<tests::driven_sequence> of_host, of_device;
  std::vector<std::uint32_t> prompts;
  for (std::size_t i = 0; i < sequences; ++i) {
    of_host.emplace_back(*host, static_cast<page_id>(i * 7), 7);
    of_device.emplace_back(*device, static_cast<page_id>(i * 7), 7);
    prompts.push_back(1 + r() % (hidden > 1000 ? 90 : 300));
  }
  for (int step = 0; step < 14; ++step) {
    // A mixed step: prompts in slices, and decoding for those that are through. Later ones only decode, so
    // that graphs are recorded and replayed, with batches of other sizes between.
    batch bh, bd;
    const std::size_t some = step < 8 ? sequences : 1 + r() % sequences;
    for (std::size_t i = 0; i < some; ++i) {
      const std::uint32_t at = of_host[i].position();
      const std::uint32_t rows = step >= 5 || at >= prompts[i]
                                     ? 1
                                     : std::min(prompts[i] - at, 1 + static_cast<std::uint32_t>(r() % 150));
      const auto first = static_cast<std::uint32_t>(bh.tokens.size());
      for (std::uint32_t j = 0; j < rows; ++j) bh.tokens.push_back(static_cast<token_id>(r() % vocab));
      bh.slices.push_back(of_host[i].slice(first, rows, static_cast<std::int32_t>(i)));
      bd.slices.push_back(of_device[i].slice(first, rows, static_cast<std::int32_t>(i)));
      of_host[i].advance(rows);
      of_device[i].advance(rows);
    }
    bd.tokens = bh.tokens;
    bh.logits_rows = bd.logits_rows = static_cast<std::uint32_t>(some);
    host->forward(bh).value();
    device->forward(bd).value();
    double worst = 0;
    for (std::uint32_t row = 0; row < some; ++row)
      worst = std::max(worst, difference(host->logits(row), device->logits(row)));
    CAPTURE(step, some);
    CHECK(worst <= most);
  }
}

void compare_batches(const std::shared_ptr<const kernels::backend>& b,
                     const std::vector<std::pair<shape, allowed>>& all) {
  for (const auto& [s, each] : all) {
    const auto host = make(toy(s, each.type), kernels::cpu_backend(2), each.kv),
               device = make(toy(s, each.type), b, each.kv);
    CHECK(device->info().kv_type ==
          (each.kv ? kernels::name(*each.kv)
                   : kernels::name(kernels::is_plain(each.type) ? each.type : kernels::dtype::bf16)));
    CAPTURE(kernels::name(each.type), each.kv.has_value(), s.hidden, s.inter, s.heads, s.kv_heads, s.head_dim,
            s.bias, s.qk_norm, s.window);
    compare_batches(*host, *device, s.hidden, each.difference);
  }
}

// A model of three layers whose switches are drawn.
random_model described(unsigned seed, kernels::dtype type) {
  using namespace kernels;
  std::mt19937 r(seed);
  const auto one_of = [&](auto... x) {
    const std::common_type_t<decltype(x)...> all[] = {x...};
    return all[r() % sizeof...(x)];
  };
  const std::uint32_t head_dim = one_of(64u, 128u, 256u), heads = one_of(2u, 4u, 8u);
  random_model m = parse_random_model("tiny-110m", 4096).value();
  m.type = type;
  model_config& c = m.config;
  c.shape.hidden = one_of(256u, 384u, 512u);
  c.shape.vocab = 640;
  c.stored.tied = r() % 2;
  c.stored.qkv_bias = r() % 3 == 0;
  auto layer = tests::plain_layer(one_of(512u, 768u), heads, one_of(1u, heads / 2, heads), head_dim);
  layer.norms = one_of(norm_place::before, norm_place::behind, norm_place::both, norm_place::parallel);
  layer.branch_factor = one_of(1.0f, 1.0f, 0.4f);
  layer.mlp.kind = one_of(activation::silu, activation::gelu, activation::relu2);
  layer.mlp.gated = r() % 4 != 0;
  layer.mixer.norms = one_of(head_norms::none, head_norms::each, head_norms::own, head_norms::row);
  layer.mixer.gated = r() % 4 == 0 && !c.stored.qkv_bias;
  if (r() % 3 == 0) layer.mixer.rule.cap = 5;
  if (r() % 4 == 0) layer.mixer.rule.growth = 0.1f, layer.mixer.rule.growth_unit = 64;
  c.stored.norms = layer.norms == norm_place::behind     ? names_behind
                   : layer.norms == norm_place::both     ? names_both
                   : layer.norms == norm_place::parallel ? names_parallel
                                                         : names_before;
  c.shape.centred_norms = r() % 4 == 0;
  c.stored.norm_bias = c.shape.centred_norms && r() % 2;
  c.shape.embed_factor = one_of(1.0f, 3.0f);
  c.shape.embed_norm = r() % 4 == 0;
  c.shape.logit_factor = one_of(1.0f, 0.25f);
  if (r() % 3 == 0) c.shape.logit_cap = 8;
  c.ropes = {{.theta = 1e6, .partial = one_of(1.0, 0.5)}, {.theta = 1e4, .attention_factor = 1.1}};
  c.ropes[1].partial = c.ropes[0].partial;
  set_layers(c, 3, layer);
  for (auto& l : c.shape.layers) {
    l.mixer.rotary = one_of(0, 0, 1, -1);
    l.mixer.rule.window = one_of(0u, 0u, 40u);
  }
  return m;
}

}  // namespace

TEST_CASE("cuda: a decoder's logits agree with the host's over batches of prompts, slices and decoding") {
  const auto b = tests::cuda_device();
  if (!b) return;
  constexpr allowed bf16{kernels::dtype::bf16, 4e-2}, f16{kernels::dtype::f16, 5e-3},
      f32{kernels::dtype::f32, 1e-4};
  std::vector<std::pair<shape, allowed>> all;
  for (const shape& s : shapes) {
    all.emplace_back(s, bf16);
    if (s.hidden < 4096) all.emplace_back(s, f16);
    if (s.hidden < 1000) all.emplace_back(s, f32);  // by single operations
  }
  // Quantised: products of few rows have exact weights, those of many rows weights that are rounded to bf16.
  for (std::size_t i = 0; i < kernels::dtype_count; ++i)
    if (const auto type = static_cast<kernels::dtype>(i); !kernels::is_plain(type)) {
      all.emplace_back(shapes[i % 2], allowed{type, 4e-2});
      if (type == kernels::dtype::q4_k || type == kernels::dtype::q8_0)
        for (const std::size_t which : {2u, 3u, 7u}) all.emplace_back(shapes[which], allowed{type, 4e-2});
    }
  compare_batches(b, all);
}

TEST_CASE("cuda: models of every description agree with the host's, by a decoder or by single operations") {
  const auto b = tests::cuda_device();
  if (!b) return;
  unsigned whole = 0;
  for (unsigned seed = 0; seed < rounds(60); ++seed) {
    const auto type = seed % 3 == 0   ? kernels::dtype::f16
                      : seed % 3 == 1 ? kernels::dtype::bf16
                                      : kernels::dtype::f32;
    const auto shape = described(seed, type);
    const auto& l = shape.config.shape.layers.front();
    CAPTURE(seed, kernels::name(type), int(l.norms), int(l.mlp.kind), l.mlp.gated, int(l.mixer.norms),
            l.mixer.gated, l.mixer.head_dim, l.mixer.heads, l.mixer.kv_heads, l.mixer.rule.cap,
            l.mixer.rule.growth, shape.config.shape.centred_norms, shape.config.shape.embed_norm,
            shape.config.ropes[0].partial);
    const auto host = make(shape, kernels::cpu_backend(2)), device = make(shape, b);
    whole += device->info().runs_ahead;
    compare_batches(*host, *device, shape.config.shape.hidden,
                    type == kernels::dtype::f32   ? 1e-4
                    : type == kernels::dtype::f16 ? 1e-2
                                                  : 6e-2);
  }
  CHECK(whole > rounds(60) / 4);
}

TEST_CASE("cuda: a decoder with keys and values in fp8 or q8 agrees with a host that stores the same") {
  const auto b = tests::cuda_device();
  if (!b) return;
  std::vector<std::pair<shape, allowed>> all;
  // The neighbours of a number of fp8 are a sixteenth to an eighth apart. Where the product in front is off
  // by 2^-9, as in bf16, about one number in twenty is rounded to the neighbour of what the host stores; in
  // f16 one in two hundred. Codes of q8 are off by one in as few numbers, which is worth 2e-2.
  for (const shape& s : shapes) {
    all.emplace_back(s, allowed{kernels::dtype::bf16, 0.15, kernels::kv_type::fp8});
    if (s.hidden < 1000) all.emplace_back(s, allowed{kernels::dtype::f16, 6e-2, kernels::kv_type::fp8});
    if (s.head_dim % 32 != 0) continue;
    all.emplace_back(s, allowed{kernels::dtype::bf16, 6e-2, kernels::kv_type::q8});
    if (s.hidden < 1000) all.emplace_back(s, allowed{kernels::dtype::f16, 2e-2, kernels::kv_type::q8});
  }
  all.emplace_back(shapes[1], allowed{kernels::dtype::q4_k, 0.15, kernels::kv_type::fp8});
  all.emplace_back(shapes[1], allowed{kernels::dtype::q4_k, 6e-2, kernels::kv_type::q8});
  compare_batches(b, all);
}

TEST_CASE("cuda: draws are the host's, from the same logits") {
  const auto b = tests::cuda_device();
  if (!b) return;
  const auto m = make(toy({256, 512, 4, 2, 64, 5000, false, false, false, 0}), b);
  std::mt19937 r(3);
  std::vector<tests::driven_sequence> sequences;
  for (int i = 0; i < 16; ++i) sequences.emplace_back(*m, i * 4, 4);
  const auto real = [&](double low, double high) {
    return static_cast<float>(std::uniform_real_distribution<double>(low, high)(r));
  };
  int equal = 0, all = 0;
  for (int step = 0; step < 40; ++step) {
    batch work;
    std::vector<sampler> samplers;
    samplers.reserve(16);
    std::vector<draw> draws;
    std::vector<std::vector<std::uint32_t>> masks(16);  // of a third of the draws: from one token to most
    for (std::uint32_t i = 0; i < 16; ++i) {
      work.tokens.push_back(static_cast<token_id>(r() % 5000));
      work.slices.push_back(sequences[i].slice(i, 1, static_cast<std::int32_t>(i)));
      sequences[i].advance(1);
      sampling_params p;
      p.seed = r();
      p.choice = r() % 4;
      p.temperature = r() % 5 == 0 ? 0.0f : real(0.05, 2);
      if (r() % 2) p.top_k = 1 + r() % (r() % 3 ? 60 : 4000);
      if (r() % 2) p.top_p = real(0.05, 1);
      if (r() % 3 == 0) p.min_p = real(0, 0.5);
      if (r() % 3 == 0) p.repetition_penalty = real(0.5, 2);
      if (r() % 3 == 0) p.frequency_penalty = real(-2, 2);
      if (r() % 3 == 0) p.presence_penalty = real(-2, 2);
      std::vector<std::pair<token_id, float>> biases;
      if (r() % 4 == 0)
        for (token_id id = 7; id < 5000; id += 701) biases.push_back({id, real(-9, 9)});
      // A bias so large that rounding makes thousands of logits equal.
      if (step % 4 == 1) {
        const float large = std::ldexp(1.0f, i % 2 ? 24 : 26);
        biases.clear();
        for (token_id id = 0; id < 5000; ++id) biases.push_back({id, r() % 9 ? large : 0.0f});
      }
      p.logit_bias = std::move(biases);
      std::vector<token_id> prompt(50), endings{1, 2, 3};
      for (auto& id : prompt) id = static_cast<token_id>(r() % 5000);
      samplers.emplace_back(p, 5000, prompt, sampler::limits{10, r() % 2 ? 5u : 0u, endings});
      samplers.back().accept(static_cast<token_id>(r() % 5000));
      draws.push_back({&samplers.back(), i, 30, p.seed, 10, static_cast<std::int32_t>(r() % 22) - 1});
      if (r() % 3) continue;
      masks[i].assign((5000 + 31) / 32, 0);
      const auto one_in = 1 + r() % (r() % 2 ? 3 : 5000);
      for (std::uint32_t id = 4; id < 5000; ++id)
        if (id == 4321 || r() % one_in == 0) masks[i][id / 32] |= 1u << id % 32;
      draws.back().allowed = masks[i];
    }
    work.logits_rows = 16;
    m->forward(work).value();
    std::vector<drawn> out(16);
    m->sample(draws, out).value();
    sample_scratch scratch(5000);
    for (std::uint32_t i = 0; i < 16; ++i) {
      // After sampling, since a row that a draw changed must have been put back.
      const auto wanted = samplers[i].pick(m->logits(i), 30, scratch, masks[i]);
      REQUIRE(wanted.has_value());
      CHECK(!out[i].fault);
      if (const auto& m = masks[i]; !m.empty())
        CHECK((m[static_cast<std::size_t>(out[i].id) / 32] >> (out[i].id % 32) & 1) == 1);
      if (const auto top = draws[i].top_logprobs; top >= 0)
        tests::check_logprobs(m->logprobs_of(i), m->logits(i), out[i].id, static_cast<std::uint32_t>(top));
      ++all;
      equal += out[i].id == *wanted;
      if (samplers[i].params().temperature == 0) CHECK(out[i].id == *wanted);
    }
  }
  // A draw on the boundary between two tokens may take the other token, because sums differ by rounding.
  CHECK(equal >= all - 1);
}

namespace {

// Writes a copy of the model in folder `dir` to `to` whose tensors are f32. Single operations compute it.
void write_widened(const std::filesystem::path& dir, const tests::temporary_dir& to) {
  const std::string file = tests::read_file(dir / "model.safetensors");
  const auto parsed = parse_safetensors(std::as_bytes(std::span(file)), "model.safetensors").value();
  std::vector<tests::toy_tensor> wide;
  for (const auto& [name, t] : parsed) {
    std::string bytes;
    if (t.dtype == "F32") {
      wide.push_back({name, "F32", t.shape, {reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size()}});
      continue;
    }
    REQUIRE(t.dtype == "BF16");
    for (std::size_t i = 0; i < t.bytes.size(); i += 2) {
      bytes.append(2, '\0');
      bytes.append(reinterpret_cast<const char*>(t.bytes.data()) + i, 2);
    }
    wide.push_back({name, "F32", t.shape, std::move(bytes)});
  }
  tests::write_file(to / "model.safetensors", tests::safetensors_bytes(wide));
  std::filesystem::copy_file(dir / "config.json", to / "config.json");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"})
    if (std::filesystem::exists(dir / name)) std::filesystem::copy_file(dir / name, to / name);
}

bool has_routers(const tests::golden& g) { return !g.generations.back().router_margins.empty(); }

// Compares the model in the file or folder `model` with the reference in `dir`.
void check_reference(const std::filesystem::path& model, const std::filesystem::path& dir,
                     const backend_ptr& b) {
  CAPTURE(dir.filename());
  auto m = std::move(load_model(model.string(), b).value().weights);
  m->allocate_pages(m->info().context / page_tokens + 1).value();
  const tests::golden g = tests::read_golden(dir);
  for (const std::size_t chunk : {std::size_t{1} << 20, std::size_t{7}, std::size_t{1}}) {
    for (const auto& wanted : g.at) {
      tests::driven_sequence s(*m, 0, static_cast<std::uint32_t>(wanted.position) / page_tokens + 1);
      const auto got = s.feed(std::span(g.input_ids).first(wanted.position + 1), chunk);
      double largest = 0, worst = 0;
      for (const double x : wanted.logits) largest = std::max(largest, std::abs(x));
      for (std::size_t i = 0; i < wanted.ids.size(); ++i)
        worst = std::max(worst, std::abs(got[static_cast<std::size_t>(wanted.ids[i])] - wanted.logits[i]));
      CAPTURE(wanted.position, chunk, largest);
      CHECK(worst <= 8e-2 * largest);
    }
    // Teacher-forced: the same best token wherever the margin is not within rounding.
    const auto& wanted = g.generations.back();
    if (wanted.margins.empty()) continue;
    tests::driven_sequence s(*m, 0, m->info().context / page_tokens + 1);
    auto got = s.feed(wanted.prompt_ids, chunk);
    for (std::size_t i = 0; i < wanted.greedy_ids.size() && i < 60; ++i) {
      CAPTURE(i, chunk);
      if (wanted.margins[i] > 0.4) CHECK(tests::argmax(got) == wanted.greedy_ids[i]);
      if (i + 1 < wanted.greedy_ids.size()) got = s.feed(std::span(&wanted.greedy_ids[i], 1), 1);
    }
  }
}

}  // namespace

TEST_CASE("cuda: every reference model's tokens and logits are reproduced within what its types allow") {
  const auto b = tests::cuda_device();
  if (!b) return;
  for (const auto& dir : tests::reference_models()) check_reference(dir, dir, b);
  // Rows are elements, whose rounding moves a router's scores: a mixture may choose other experts than its
  // reference wherever two scores are near.
  for (const auto& dir : tests::bundled_families())
    if (!has_routers(tests::read_golden(dir))) check_reference(dir, dir, b);
}

TEST_CASE("cuda: every mixture's tokens and logits are the reference's where weights and rows are f32") {
  const auto b = tests::cuda_device();
  if (!b) return;
  std::size_t compared = 0;
  for (const auto& dir : tests::bundled_families()) {
    const tests::golden g = tests::read_golden(dir);
    if (!has_routers(g)) continue;
    CAPTURE(dir.filename());
    const tests::temporary_dir folder;
    write_widened(dir, folder);
    auto m = std::move(load_model(folder.path().string(), b).value().weights);
    m->allocate_pages(m->info().context / page_tokens + 1).value();
    const auto& wanted = g.generations.back();
    const std::size_t certain = wanted.certain(2e-3, 1e-4);
    for (const std::size_t chunk : {std::size_t{1} << 20, std::size_t{7}, std::size_t{1}}) {
      tests::driven_sequence s(*m, 0, m->info().context / page_tokens + 1);
      auto got = s.feed(wanted.prompt_ids, chunk);
      for (std::size_t i = 0; i < certain; ++i, ++compared) {
        CAPTURE(i, chunk);
        CHECK(tests::argmax(got) == wanted.greedy_ids[i]);
        if (i + 1 < certain) got = s.feed(std::span(&wanted.greedy_ids[i], 1), 1);
      }
      if (wanted.router_margins.front() < 1e-4) continue;
      for (const auto& at : g.at) {
        tests::driven_sequence logits(*m, 0, static_cast<std::uint32_t>(at.position) / page_tokens + 1);
        const auto row = logits.feed(std::span(g.input_ids).first(at.position + 1), chunk);
        CAPTURE(at.position, chunk);
        for (std::size_t i = 0; i < at.ids.size(); ++i)
          CHECK(row[static_cast<std::size_t>(at.ids[i])] == Approx(at.logits[i]).margin(2e-3));
      }
    }
  }
  CHECK(compared >= 300);
}

TEST_CASE("cuda: every further family's tokens and logits are reproduced within what its types allow") {
  const auto b = tests::cuda_device();
  if (!b) return;
  for (const auto& dir : tests::data_folders("models-families", "reference.json")) {
    if (dir.filename() == "phi3-longrope-switch" || !inspect_model(dir.string(), *b)) continue;
    check_reference(dir, dir, b);
  }
}

// The host's f32 is what both are measured by: where numbers are rounded to the neighbours of what the host
// stores, the results differ as much as either differs from f32.
TEST_CASE("cuda: reference models with keys and values in fp8 and q8 are as near to f32 as on the host") {
  const auto b = tests::cuda_device();
  if (!b) return;
  int compared = 0;
  for (const auto& dir : tests::reference_models()) {
    CAPTURE(dir.filename());
    const auto ids = tests::read_golden(dir).input_ids;
    const auto logits = [&](model& m, std::size_t chunk) {
      const std::uint32_t pages = m.info().context / page_tokens + 1;
      m.allocate_pages(pages).value();
      tests::driven_sequence s(m, 0, pages);
      const auto row = s.feed(ids, chunk);
      return std::vector<float>(row.begin(), row.end());
    };
    const auto on_host = [&](kv_choice kv) {
      return logits(*load_model(dir.string(), kernels::cpu_backend(2), {}, kv).value().weights, ids.size());
    };
    const auto exact = on_host({});
    for (const auto kv : {kernels::kv_type::fp8, kernels::kv_type::q8}) {
      const std::string name = kernels::name(kv);
      const auto device = load_model(dir.string(), b, {}, kv);
      if (!device) {  // a model in f32; in q8 heads of another size, too
        CHECK(device.error().message.find("--kv-type " + name + ": on cuda") != std::string::npos);
        continue;
      }
      CHECK(device->weights->info().kv_type == name);
      const auto whole = logits(*device->weights, ids.size());
      const double allowed =
          (kv == kernels::kv_type::fp8 ? 8e-2 : 4e-2) + 1.5 * difference(exact, on_host(kv));
      CHECK(difference(exact, whole) <= allowed);
      for (const std::size_t chunk : {std::size_t{7}, std::size_t{1}}) {
        CAPTURE(name, chunk, allowed);
        const auto cut = logits(*device->weights, chunk);
        CHECK(difference(exact, cut) <= allowed);
        CHECK(difference(whole, cut) <= allowed);
      }
      ++compared;
    }
  }
  if (compared == 0) WARN("no reference models in bf16 or f16");
}

TEST_CASE("cuda: --kv-type takes what a decoder stores, and refuses the rest by name") {
  const auto b = tests::cuda_device();
  if (!b) return;
  const shape s{256, 512, 4, 2, 64, 512, true, false, false, 0};
  const auto of = [&](kernels::dtype type, const char* kv) {
    auto m = make_random_model(toy(s, type), b, 5, parse_kv_type(kv).value());
    return m ? std::string(m->weights->info().kv_type) : m.error().message;
  };
  CHECK(of(kernels::dtype::bf16, "auto") == "bf16");
  CHECK(of(kernels::dtype::bf16, "bf16") == "bf16");
  CHECK(of(kernels::dtype::bf16, "fp8") == "fp8");
  CHECK(of(kernels::dtype::f16, "fp8") == "fp8");
  CHECK(of(kernels::dtype::q4_k, "fp8") == "fp8");
  CHECK(of(kernels::dtype::f16, "bf16").find("--kv-type bf16: on cuda") == 0);
  CHECK(of(kernels::dtype::f32, "fp8").find("--kv-type fp8: on cuda") == 0);
  CHECK(of(kernels::dtype::bf16, "q8") == "q8");
  CHECK(of(kernels::dtype::q4_k, "q8") == "q8");
  shape small = s;
  small.head_dim = 16;
  const auto narrow = make_random_model(toy(small), b, 5, parse_kv_type("q8").value());
  REQUIRE(!narrow);
  CHECK(narrow.error().message.find("--kv-type q8: on cuda") == 0);
  CHECK(narrow.error().message.find("a multiple of 32, and this model's have 16") != std::string::npos);
  CHECK(of(kernels::dtype::bf16, "f32").find("--kv-type f32: cuda") == 0);
}

TEST_CASE("cuda: every GGUF model's tokens and logits are reproduced within what its types allow") {
  const auto b = tests::cuda_device();
  if (!b) return;
  const auto folders = tests::data_folders("models-quant", "hf-config.json");
  if (folders.empty()) WARN("no GGUF models below " << tests::data_dir());
  for (const auto& dir : folders) {
    const auto file = dir / "model.gguf";
    check_reference(std::filesystem::exists(file) ? file : dir / "model-00001-of-00002.gguf", dir, b);
  }
}

TEST_CASE("cuda: every quantised directory's tokens and logits are reproduced within what its types allow") {
  const auto b = tests::cuda_device();
  if (!b) return;
  const auto folders = tests::data_folders("models-quant", "config.json");
  if (folders.empty()) WARN("no quantised directories below " << tests::data_dir());
  for (const auto& dir : folders) check_reference(dir, dir, b);
}

namespace {

constexpr std::uint32_t ahead_rows = 20, ahead_steps = 80;

// Steps of a batch that shrinks, so that batch classes change and a step has fewer rows than the step before
// had draws. Every tenth step also has a slice of a prompt, so that it is no step of decoding alone. In every
// fourth step the draws change their logits.
struct shrinking_batch {
  shrinking_batch(model& m, float temperature) : on(m), prompt(m, ahead_rows * 4, 4) {
    samplers.reserve(2 * ahead_rows);
    const std::vector<token_id> seen{1, 2, 3};
    for (std::uint32_t i = 0; i < 2 * ahead_rows; ++i) {
      sampling_params p;
      p.seed = i;
      p.temperature = temperature;
      if (i % 3 == 0) p.top_p = 0.7f;
      if (i >= ahead_rows)
        p.logit_bias = {{static_cast<token_id>(i * 11), 3.0f}}, p.repetition_penalty = 1.5f;
      samplers.emplace_back(p, 5000, seen, sampler::limits{});
      if (i < ahead_rows) all.emplace_back(m, static_cast<page_id>(i * 4), 4);
    }
  }
  static std::uint32_t rows(std::uint32_t step) { return ahead_rows - step / 8; }

  void forward(std::uint32_t step, std::span<const token_id> tokens) {
    batch work;
    const auto add = [&](tests::driven_sequence& s, std::span<const token_id> its, std::int32_t logits_row) {
      const auto first = static_cast<std::uint32_t>(work.tokens.size()),
                 count = static_cast<std::uint32_t>(its.size());
      work.tokens.insert(work.tokens.end(), its.begin(), its.end());
      work.slices.push_back(s.slice(first, count, logits_row));
      s.advance(count);
    };
    for (std::uint32_t i = 0; i < tokens.size(); ++i)
      add(all[i], tokens.subspan(i, 1), static_cast<std::int32_t>(i));
    if (step % 10 == 5) add(prompt, std::vector<token_id>{9, 8, 7, 6, 5}, -1);
    work.logits_rows = static_cast<std::uint32_t>(tokens.size());
    on.forward(work).value();
  }
  std::vector<draw> draws(std::uint32_t step) {
    std::vector<draw> d;
    for (std::uint32_t i = 0; i < rows(step); ++i) {
      sampler& from = samplers[i + (step % 4 == 2 ? ahead_rows : 0)];
      d.push_back({&from, i, step, from.params().seed, 3});
    }
    return d;
  }

  model& on;
  std::vector<tests::driven_sequence> all;
  tests::driven_sequence prompt;
  std::vector<sampler> samplers;
};

std::vector<token_id> first_tokens() {
  std::vector<token_id> first;
  for (std::uint32_t i = 0; i < ahead_rows; ++i) first.push_back(static_cast<token_id>(i * 7));
  return first;
}

// Each row's token is the one that the row's previous step drew on the device: the host does not wait for it.
std::vector<std::vector<token_id>> draw_ahead(shrinking_batch b) {
  std::vector<std::vector<token_id>> all;
  b.forward(0, first_tokens());
  for (std::uint32_t step = 0; step < ahead_steps; ++step) {
    b.on.begin_draws(b.draws(step)).value();
    std::vector<token_id> unknown;
    for (std::uint32_t i = 0; i < b.rows(step + 1); ++i)
      unknown.push_back(drawn_by(static_cast<std::uint32_t>(i)));
    if (step + 1 < ahead_steps) b.forward(step + 1, unknown);
    std::vector<drawn> got(b.rows(step), drawn{-7, false});
    b.on.collect(got).value();
    auto& tokens = all.emplace_back();
    for (const drawn& d : got) {
      REQUIRE(!d.fault);
      tokens.push_back(d.id);
    }
  }
  return all;
}

// Runs the steps ahead, and then once more by another model of the same kind, to which the host uploads the
// tokens. judge(model, batch, step, tokens drawn ahead, tokens) replaces `tokens` by those of the next step.
template <class Judge>
void follow_ahead(const std::shared_ptr<const kernels::backend>& b, float temperature, const Judge& judge) {
  const shape of{256, 512, 4, 2, 64, 5000, false, false, false, 0};
  const auto plain = make(toy(of), b), ahead = make(toy(of), b);
  const auto all = draw_ahead(shrinking_batch(*ahead, temperature));
  shrinking_batch told(*plain, temperature);
  auto tokens = first_tokens();
  for (std::uint32_t step = 0; step < ahead_steps; ++step) {
    tokens.resize(told.rows(step));
    told.forward(step, tokens);
    judge(*plain, told, step, all[step], tokens);
  }
}

}  // namespace

TEST_CASE("cuda: steps that run ahead draw what steps draw whose tokens the host uploads") {
  const auto b = tests::cuda_device(true);
  if (!b) return;
  follow_ahead(b, 1,
               [](model& plain, shrinking_batch& told, std::uint32_t step, std::span<const token_id> ahead,
                  std::vector<token_id>& tokens) {
                 std::vector<drawn> wanted(tokens.size());
                 plain.sample(told.draws(step), wanted).value();
                 for (std::size_t i = 0; i < tokens.size(); ++i) {
                   CAPTURE(step, i);
                   REQUIRE(ahead[i] == wanted[i].id);
                   tokens[i] = wanted[i].id;
                 }
               });
}

// Rows have other bits in every run here, so each token must be the best of its row only up to rounding.
TEST_CASE("cuda: steps that run ahead draw the best tokens on a device that is not deterministic") {
  const auto b = tests::cuda_device();
  if (!b) return;
  follow_ahead(b, 0,
               [](model& plain, shrinking_batch& told, std::uint32_t step, std::span<const token_id> ahead,
                  std::vector<token_id>& tokens) {
                 const auto draws = told.draws(step);
                 for (std::uint32_t i = 0; i < tokens.size(); ++i) {
                   const auto row = plain.logits(i);
                   tokens[i] = ahead[i];
                   if (draws[i].from->changes_logits()) continue;
                   const float best = row[static_cast<std::size_t>(tests::argmax(row))];
                   CAPTURE(step, i);
                   CHECK(row[static_cast<std::size_t>(tokens[i])] >= best - 2e-2f * std::abs(best));
                 }
               });
}

}  // namespace weir::tests::decoder_cuda_test
