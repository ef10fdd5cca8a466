// A model in GGUF files against the same one in a Hugging Face directory, and every way in which its keys and
// files can be wrong.
#include "core/model/load/gguf_model.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>

#include "core/model/load.h"
#include "core/model/load/gguf_names.h"
#include "kernels/blocks.h"
#include "tests/support/drive.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::gguf_model_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

std::string arch_of(const tests::toy_options& o) {
  return o.architecture == "Qwen2ForCausalLM"   ? "qwen2"
         : o.architecture == "Qwen3ForCausalLM" ? "qwen3"
                                                : "llama";
}

gguf_names names_of(const tests::toy_options& o) {
  return {*find_gguf_architecture(arch_of(o)), *find_family(o.architecture)};
}

gguf_writer keys_of(const tests::toy_options& o) {
  const std::string a = arch_of(o) + ".";
  gguf_writer w;
  w.text("general.architecture", arch_of(o));
  w.number(a + "block_count", o.layers).number(a + "context_length", o.context);
  w.number(a + "embedding_length", o.hidden).number(a + "feed_forward_length", o.inter);
  w.number(a + "attention.head_count", o.heads).number(a + "attention.head_count_kv", o.kv_heads);
  w.number(a + "attention.key_length", o.head_dim).number(a + "attention.value_length", o.head_dim);
  w.number(a + "rope.dimension_count", o.head_dim);
  w.real(a + "attention.layer_norm_rms_epsilon", 1e-5f).real(a + "rope.freq_base", 10000.0f);
  std::vector<std::string> tokens(tests::toy_vocab);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = "t" + std::to_string(i);
  w.texts("tokenizer.ggml.tokens", tokens);
  w.number("tokenizer.ggml.bos_token_id", toy_bos).number("tokenizer.ggml.eos_token_id", toy_eos);
  return w;
}

// Rows in the order for a rotation of neighbours: row 2i + j of a head is its row j * half + i.
std::string in_pairs(const std::string& rows, std::uint32_t heads, std::uint32_t head_dim) {
  const std::size_t wide = rows.size() / (std::size_t{heads} * head_dim);
  std::string out;
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t i = 0; i < head_dim / 2; ++i)
      for (std::size_t j = 0; j < 2; ++j)
        out += rows.substr((h * head_dim + j * (head_dim / 2) + i) * wide, wide);
  return out;
}

std::uint32_t type_id(const std::string& dtype) { return dtype == "F32" ? 0 : dtype == "F16" ? 1 : 30; }

tests::gguf_tensor tensor_of(const tests::toy_options& o, const tests::toy_tensor& t) {
  tests::gguf_tensor out{
      names_of(o).gguf_name(t.name), {t.shape.rbegin(), t.shape.rend()}, type_id(t.dtype), t.bytes};
  const bool q = t.name.find("q_proj") != t.name.npos, k = t.name.find("k_proj") != t.name.npos;
  if (arch_of(o) == "llama" && (q || k)) out.bytes = in_pairs(t.bytes, q ? o.heads : o.kv_heads, o.head_dim);
  return out;
}

gguf_writer model_of(const tests::toy_options& o) {
  gguf_writer w = keys_of(o);
  for (const auto& t : tests::toy_tensors(o)) w.tensor(tensor_of(o, t));
  return w;
}

struct written {
  tests::temporary_dir dir;
  std::string path = dir / "m.gguf";
  explicit written(const gguf_writer& w) { tests::write_file(path, w.file()); }
};

const std::shared_ptr<const kernels::backend>& reference() {
  static const auto b = kernels::reference_backend();
  return b;
}

std::string refusal(const gguf_writer& w, const kernels::backend& on = *reference()) {
  const written f(w);
  const auto r = inspect_model(f.path, on);
  if (r) return "accepted";
  CHECK_THAT(r.error().message, Contains(f.path));
  return r.error().message;
}

std::vector<std::vector<float>> logits_of(const std::string& path,
                                          const std::shared_ptr<const kernels::backend>& b) {
  const auto m = std::move(load_model(path, b).value().weights);
  m->allocate_pages(2).value();
  const token_id prompt[] = {3, 200, 17, 90, 256, 1, 1, 45};
  tests::driven_sequence s(*m, 0, 1);
  std::vector<std::vector<float>> out;
  for (const std::size_t count : {5u, 1u, 2u}) {
    const auto at = s.position();
    const auto got = s.feed(std::span(prompt).subspan(at, count), count);
    out.emplace_back(got.begin(), got.end());
  }
  return out;
}

// The same keys with one of them replaced, or one more.
gguf_writer with_number(gguf_writer w, const std::string& key, std::uint32_t x) {
  std::erase_if(w.keys, [&](const std::string& k) { return k.starts_with(tests::gguf_text(key)); });
  return std::move(w.number(key, x));
}
gguf_writer without(gguf_writer w, const std::string& key) {
  const auto before = w.keys.size();
  std::erase_if(w.keys, [&](const std::string& k) { return k.starts_with(tests::gguf_text(key)); });
  REQUIRE(w.keys.size() + 1 == before);
  return w;
}

// A quantised model: hidden 256, one layer, types by the tensor's name.
gguf_writer quantised_model(const std::function<kernels::dtype(const std::string&)>& type_of) {
  tests::toy_options o;
  o.hidden = 256, o.inter = 256, o.layers = 1, o.heads = 4, o.kv_heads = 2, o.head_dim = 64;
  o.tied = true;
  gguf_writer w = keys_of(o);
  constexpr std::uint32_t ids[] = {0, 30, 1, 2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 20, 23, 39};
  std::uint64_t seed = 0;
  for (const auto& t : tests::toy_tensors(o)) {
    auto made = tensor_of(o, t);
    if (t.shape.size() == 2) {
      const auto type = type_of(made.name);
      const auto elements = t.shape[0] * t.shape[1];
      made.type = ids[static_cast<int>(type)];
      made.bytes.assign(kernels::bytes_of(type, elements), '\0');
      kernels::fill_random_blocks(made.bytes.data(), type, elements, ++seed);
    }
    w.tensor(std::move(made));
  }
  return w;
}

kernels::dtype mixed(const std::string& name) {
  using kernels::dtype;
  return name == "token_embd.weight"          ? dtype::q6_k
         : name.find("attn_v") != name.npos   ? dtype::q6_k
         : name.find("ffn_down") != name.npos ? dtype::q5_k
                                              : dtype::q4_k;
}

}  // namespace

TEST_CASE("a GGUF file of plain types gives the logits of the same safetensors, to the bit") {
  for (const char* architecture : {"LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"})
    for (const char* dtype : {"F32", "F16", "BF16"})
      for (const bool tied : {false, true}) {
        tests::toy_options o;
        o.architecture = architecture;
        o.dtype = dtype;
        o.tied = tied;
        o.qkv_bias = o.architecture != "Qwen3ForCausalLM";
        o.out_bias = o.mlp_bias = o.architecture == "LlamaForCausalLM";
        o.qk_norm = o.architecture == "Qwen3ForCausalLM";
        CAPTURE(architecture, dtype, tied);
        const tests::temporary_dir dir;
        tests::write_toy_directory(dir.path(), o);
        const written file(model_of(o));
        for (const auto& b : {reference(), kernels::cpu_backend(2)}) {
          CHECK(logits_of(file.path, b) == logits_of(dir.path().string(), b));
          const auto ours = inspect_model(file.path, *b).value(),
                     theirs = inspect_model(dir.path().string(), *b).value();
          CHECK(ours.weight_bytes == theirs.weight_bytes);
          CHECK(ours.page_bytes == theirs.page_bytes);
          CHECK(ours.config.architecture == architecture);
          CHECK(ours.config.context == theirs.config.context);
          CHECK(ours.config.bos == tests::toy_bos);
          CHECK(ours.generation.stop_ids == std::vector<token_id>{tests::toy_eos});
        }
      }
}

TEST_CASE("rows in pairs are read in order, in pieces of any size") {
  tests::toy_options o;
  o.qkv_bias = o.out_bias = true;
  const written file(model_of(o));
  const auto opened = open_gguf(file.path).value();
  std::mt19937 r(5);
  std::size_t checked = 0;
  for (const auto& t : tests::toy_tensors(o)) {
    const stored_tensor* stored = opened.weights.find(t.name);
    REQUIRE(stored);
    CHECK((stored->paired_heads != 0) ==
          (t.name.find("q_proj") != t.name.npos || t.name.find("k_proj") != t.name.npos));
    if (stored->paired_heads == 0) continue;
    ++checked;
    std::string got(t.bytes.size(), '?');
    for (std::size_t at = 0, n = 0; at < got.size(); at += n) {
      n = std::min<std::size_t>(got.size() - at, 1 + r() % 700);
      auto to = std::as_writable_bytes(std::span(got).subspan(at, n));
      REQUIRE(opened.weights.read(*stored, at, to).has_value());
    }
    CHECK(got == t.bytes);
  }
  CHECK(checked == 2 * 4);  // two layers, weights and biases of queries and keys
}

TEST_CASE("weights of a mixed quantised model take the bytes that were planned, and each keeps its type") {
  const written file(quantised_model(mixed));
  for (const auto& b : {reference(), kernels::cpu_backend(2)}) {
    const auto planned = inspect_model(file.path, *b).value();
    std::uint64_t told = 0, of = 0;
    const auto loaded = load_model(file.path, b, [&](std::uint64_t done, std::uint64_t total) {
      told = done;
      of = total;
    });
    REQUIRE(loaded.has_value());
    CHECK(loaded->weights->info().weight_bytes == planned.weight_bytes);
    CHECK(told == of);
  }
  // The reference keeps the file's bytes: 258 * 256 weights of the embedding, and those of one layer.
  const auto bytes = [](kernels::dtype t, std::uint64_t n) { return kernels::bytes_of(t, n); };
  using kernels::dtype;
  std::uint64_t least = bytes(dtype::q6_k, 258 * 256) + bytes(dtype::q4_k, (256 + 128) * 256) +
                        bytes(dtype::q6_k, 128 * 256) + bytes(dtype::q4_k, 256 * 256) +
                        bytes(dtype::q4_k, 512 * 256) + bytes(dtype::q5_k, 256 * 256) + 3 * 256 * 4;
  const auto planned = inspect_model(file.path, *reference()).value().weight_bytes;
  CHECK(planned >= least);
  CHECK(planned < least + 9 * 256);  // each of the nine begins at a multiple of 256
}

TEST_CASE("a quantised model and its weights widened to f32 have the same logits within the sums' rounding") {
  auto quantised = quantised_model(mixed), wide = quantised;
  constexpr std::pair<std::uint32_t, kernels::dtype> ids[] = {
      {12, kernels::dtype::q4_k}, {13, kernels::dtype::q5_k}, {14, kernels::dtype::q6_k}};
  for (auto& t : wide.tensors)
    for (const auto& [id, type] : ids)
      if (t.type == id) {
        std::string floats(t.dims[0] * t.dims[1] * 4, '\0');
        kernels::dequantise(type, t.bytes.data(), t.dims[0] * t.dims[1],
                            reinterpret_cast<float*>(floats.data()));
        t.bytes = floats;
        t.type = 0;
        break;
      }
  const written a(quantised), b(wide);
  CHECK(logits_of(a.path, reference()) == logits_of(b.path, reference()));  // sums in double, in one order
  const auto got = logits_of(a.path, kernels::cpu_backend(2)), wanted = logits_of(b.path, reference());
  for (std::size_t i = 0; i < got.size(); ++i)
    for (std::size_t j = 0; j < got[i].size(); ++j) CHECK(std::abs(got[i][j] - wanted[i][j]) < 1e-4);
}

TEST_CASE("a backend without products for quantised weights refuses them by name, before loading") {
  auto plain = *reference();
  plain.takes_blocks = nullptr;
  plain.name = "cuda";
  CHECK_THAT(refusal(quantised_model(mixed), plain),
             Contains("device cuda does not run Q4_K weights yet") ||
                 Contains("device cuda does not run Q6_K weights yet"));
  const auto random = parse_random_model("tiny-110m:q8_0", 128).value();
  const auto made = make_random_model(random, std::make_shared<kernels::backend>(plain));
  REQUIRE(!made);
  CHECK_THAT(made.error().message, Contains("device cuda does not run q8_0 weights yet"));
}

TEST_CASE("frequencies are divided by the factors of rope_freqs.weight") {
  tests::toy_options o;
  auto w = model_of(o);
  const std::vector<float> factors{1, 2, 4, 8};
  std::string bytes;
  for (const float x : factors) bytes += tests::raw(x);
  w.tensor({"rope_freqs.weight", {4}, 0, bytes});
  const written f(w);
  const auto c = inspect_model(f.path, *reference()).value().config;
  const auto& got = c.shape.tables.front().frequencies;
  const auto plain = make_rotary_table({}, 2 * static_cast<std::uint32_t>(got.size()), 64).frequencies;
  for (std::size_t i = 0; i < 4; ++i) CHECK(got[i] == plain[i] / factors[i]);

  w.tensors.back().dims = {2, 2};
  CHECK_THAT(refusal(w), Contains("'rope_freqs.weight' is F32 [2, 2], not F32 [4]"));
  w.tensors.back().dims = {4};
  w.tensors.back().bytes.replace(4, 4, tests::raw(0.0f));
  CHECK_THAT(refusal(w), Contains("'rope_freqs.weight' has 0"));
}

TEST_CASE("keys that change the arithmetic and are not read are refused by name") {
  const auto w = model_of({});
  const auto said = [&](const std::string& key, std::uint32_t x) { return refusal(with_number(w, key, x)); };
  CHECK(refusal(w) == "accepted");
  CHECK_THAT(said("llama.expert_count", 8), Contains("'llama.expert_used_count' is missing"));
  CHECK_THAT(said("llama.expert_gating_func", 2), Contains("accepted"));  // without experts it says nothing
  CHECK(said("llama.expert_count", 0) == "accepted");
  CHECK_THAT(said("llama.rope.dimension_count", 4), Contains("'llama.rope.dimension_count'"));
  CHECK_THAT(said("llama.attention.value_length", 4), Contains("'llama.attention.value_length'"));
  CHECK_THAT(said("llama.logit_scale", 4), Contains("key 'llama.logit_scale' is not supported"));
  CHECK_THAT(said("llama.block_count", 0), Contains("num_hidden_layers"));
  CHECK_THAT(said("llama.attention.head_count", 3), Contains("multiple"));
  auto other_rope = w;
  other_rope.text("llama.rope.scaling.type", "ntk");
  CHECK_THAT(refusal(other_rope), Contains("'llama.rope.scaling.type' ntk is not supported"));
  auto layers = without(w, "llama.feed_forward_length");
  layers.numbers<std::uint32_t>("llama.feed_forward_length", 4, {48, 64});
  CHECK_THAT(refusal(layers), Contains("'llama.feed_forward_length' differs between layers"));
  auto other = w;
  other.keys[0] = gguf_writer{}.text("general.architecture", "mamba2").keys[0];
  CHECK_THAT(refusal(other), Contains("architecture mamba2 is not supported"));
  for (const char* key : {"general.architecture", "llama.block_count", "llama.context_length",
                          "llama.embedding_length", "llama.feed_forward_length", "llama.attention.head_count",
                          "llama.attention.layer_norm_rms_epsilon", "tokenizer.ggml.tokens"})
    CHECK_THAT(refusal(without(w, key)), Contains(std::string("'") + key + "' is missing"));
  CHECK_THAT(said("llama.vocab_size", 300), Contains("'llama.vocab_size' is 300, but there are 258 tokens"));
  CHECK_THAT(said("tokenizer.ggml.eos_token_id", 258), Contains("'tokenizer.ggml.eos_token_id' is 258"));

  tests::toy_options qwen;
  qwen.architecture = "Qwen2ForCausalLM";
  qwen.qkv_bias = true;
  CHECK_THAT(refusal(with_number(model_of(qwen), "qwen2.attention.sliding_window", 64)),
             Contains("'qwen2.attention.sliding_window'"));
}

TEST_CASE("keys that do change the arithmetic and are read, do") {
  auto w = model_of({});
  const auto config_of = [](const gguf_writer& from) {
    const written f(from);
    return inspect_model(f.path, *reference()).value().config;
  };
  const auto windows = config_of(with_number(w, "llama.attention.sliding_window", 64));
  CHECK(windows.architecture == "MistralForCausalLM");
  for (const kernels::layer_shape& l : windows.shape.layers) CHECK(l.mixer.rule.window == 64);
  auto linear = w;
  linear.text("llama.rope.scaling.type", "linear").real("llama.rope.scaling.factor", 4);
  CHECK(config_of(linear).ropes.front().type == rope_type::linear);
  CHECK(config_of(linear).ropes.front().factor == 4);
  const auto plain = without(without(w, "llama.attention.key_length"), "llama.attention.head_count_kv");
  CHECK_THAT(refusal(plain), Contains("blk.0.attn_k.weight"));  // as many key heads as heads
}

TEST_CASE("the tokens that end a text are those of the keys and those that are spelled so") {
  auto w = without(model_of({}), "tokenizer.ggml.tokens");
  std::vector<std::string> tokens(tests::toy_vocab);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = "t" + std::to_string(i);
  tokens[9] = "<|im_end|>";
  tokens[12] = "</s>";
  w.texts("tokenizer.ggml.tokens", tokens).number("tokenizer.ggml.eot_token_id", 30);
  const written f(w);
  CHECK(inspect_model(f.path, *reference()).value().generation.stop_ids ==
        std::vector<token_id>{tests::toy_eos, 30, 9, 12});
}

TEST_CASE("a tensor that is missing, unknown or of another shape is named as the file names it") {
  auto w = model_of({});
  w.tensors[1].name = "blk.0.attn_nor.weight";
  CHECK_THAT(refusal(w), Contains("tensor 'blk.0.attn_norm.weight' [32] is missing"));
  w = model_of({});
  w.tensor({"blk.0.extra.weight", {1}, 0, "xxxx"});
  CHECK_THAT(refusal(w),
             Contains("tensor 'blk.0.extra.weight' [1] is in the file, but the description in its "
                      "keys implies no such tensor"));
  w = model_of({});
  w.tensors[0].dims = {tests::toy_vocab, 32};
  CHECK_THAT(refusal(w), Contains("tensor 'token_embd.weight' is [32, 258] in the file") &&
                             Contains("implies [258, 32]"));
  w = model_of({});
  w.tensor({"model.norm.weight", {32}, 0, std::string(128, 'x')});
  CHECK_THAT(refusal(w), Contains("under two names"));
}

TEST_CASE("a scale that is not finite is refused when its tensor is read, with the block's number") {
  auto w = quantised_model(mixed);
  auto& q = *std::ranges::find(w.tensors, "blk.0.attn_q.weight", &tests::gguf_tensor::name);
  q.bytes.replace(144 * 5, 2, tests::raw(std::uint16_t{0x7e00}));
  const written f(w);
  CHECK(inspect_model(f.path, *reference()).has_value());
  const auto r = load_model(f.path, reference());
  REQUIRE(!r);
  // Row 5 of the file is row 34 of the model: the file's rows alternate between the halves of a head.
  CHECK_THAT(r.error().message,
             Contains("tensor 'blk.0.attn_q.weight': the scale of block 34 is not finite"));
}

namespace {

// A model in two files, with its tensors from `cut` on in the second.
struct two_files {
  tests::temporary_dir dir;
  std::string first = dir / "m-00001-of-00002.gguf", second = dir / "m-00002-of-00002.gguf";
  gguf_writer one, two;

  explicit two_files(std::size_t cut = 7) {
    const auto w = model_of({});
    one = w;
    one.tensors.assign(w.tensors.begin(), w.tensors.begin() + static_cast<std::ptrdiff_t>(cut));
    two.tensors.assign(w.tensors.begin() + static_cast<std::ptrdiff_t>(cut), w.tensors.end());
    number(one, 0, 2, w.tensors.size());
    number(two, 1, 2, w.tensors.size());
  }
  static void number(gguf_writer& w, std::uint16_t no, std::uint16_t count, std::size_t tensors) {
    w.value("split.no", 2, tests::raw(no)).value("split.count", 2, tests::raw(count));
    w.value("split.tensors.count", 5, tests::raw(static_cast<std::int32_t>(tensors)));
  }
  void write() const {
    tests::write_file(first, one.file());
    tests::write_file(second, two.file());
  }
  std::string refusal(const std::string& path) const {
    write();
    const auto r = inspect_model(path, *reference());
    return r ? "accepted" : r.error().message;
  }
};

}  // namespace

TEST_CASE("a model in two files is that in one, to the bit") {
  const two_files parts;
  parts.write();
  const written whole(model_of({}));
  CHECK(logits_of(parts.first, reference()) == logits_of(whole.path, reference()));
}

TEST_CASE("files that do not belong together are refused") {
  two_files parts;
  CHECK_THAT(parts.refusal(parts.second), Contains("this is file 2 of 2; give the first"));
  parts.two.tensor(parts.one.tensors[0]);
  CHECK_THAT(parts.refusal(parts.first), Contains("'token_embd.weight' is in another file too"));
  parts.two.tensors.pop_back();
  parts.two.tensors.pop_back();
  CHECK_THAT(parts.refusal(parts.first), Contains("'split.tensors.count' is 21, the files have 20"));
  two_files third;
  third.two.keys.clear();
  two_files::number(third.two, 2, 3, 21);
  CHECK_THAT(third.refusal(third.first), Contains("this is file 3 of 3, not 2 of 2"));
  const two_files alone;
  alone.write();
  std::filesystem::remove(alone.second);
  const auto r = inspect_model(alone.first, *reference());
  REQUIRE(!r);
  CHECK_THAT(r.error().message, Contains(alone.second));
  const two_files renamed;
  renamed.write();
  std::filesystem::rename(renamed.first, renamed.dir / "other.gguf");
  CHECK_THAT(inspect_model(renamed.dir / "other.gguf", *reference()).error().message,
             Contains("must be called NAME-00001-of-00002.gguf"));
}

TEST_CASE("a path that is no model file is refused") {
  const tests::temporary_dir dir;
  CHECK_THAT(inspect_model(dir / "nothing.gguf", *reference()).error().message, Contains("nothing.gguf"));
  tests::write_file(dir / "text.txt", "hello, this is no model");
  CHECK_THAT(inspect_model(dir / "text.txt", *reference()).error().message, Contains("not a GGUF file"));
}

}  // namespace weir::tests::gguf_model_test
