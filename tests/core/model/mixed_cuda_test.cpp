// Models whose matrices have several types, on a cuda device: they agree with the host, and the decoder takes
// those that it says it takes. Skipped, saying so, where there is no device.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "core/model/load.h"
#include "kernels/random_weights.h"
#include "tests/support/cuda_device.h"
#include "tests/support/difference.h"
#include "tests/support/drive.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::mixed_cuda_test {

using namespace weir::core;

namespace {

// The types of a model's matrices: BF16, F16, F32, or F8_E4M3 with a scale.
struct types {
  std::string layers, embedding, head;             // head: empty: the embedding
  std::map<std::string, std::string> others = {};  // by a part of the name, of layers
  bool decoder = true;                             // whether the decoder takes it
};

std::string type_of(const types& t, const std::string& name) {
  if (name == "model.embed_tokens.weight") return t.embedding;
  if (name == "lm_head.weight") return t.head;
  for (const auto& [part, type] : t.others)
    if (name.find(part) != name.npos) return type;
  return t.layers;
}

template <class T>
void append(std::string& to, T x) {
  to.append(reinterpret_cast<const char*>(&x), sizeof x);
}

// A number that each of the types has exactly, but for e4m3.
std::string number(const std::string& type, std::uint64_t seed, std::uint64_t i) {
  const std::uint16_t bits = kernels::random_weight(seed, i);
  const float x = kernels::from_bf16(bits);
  std::string out;
  if (type == "F32") append(out, x);
  if (type == "BF16") append(out, bits);
  if (type == "F16") append(out, kernels::random_weight_f16(seed, i));
  if (type == "F8_E4M3") append(out, kernels::to_e4m3(x * 64));
  return out;
}

// Writes a model of two layers.
void write_model(const std::filesystem::path& dir, const types& t) {
  toy_options o;
  o.hidden = 256, o.inter = 512, o.heads = 4, o.kv_heads = 2, o.head_dim = 64;
  o.tied = t.head.empty();
  std::vector<toy_tensor> tensors;
  std::uint64_t seed = 0;
  bool floats = false;
  for (toy_tensor each : toy_tensors(o)) {
    ++seed;
    if (each.shape.size() == 2) {
      each.dtype = type_of(t, each.name);
      each.bytes.clear();
      for (std::uint64_t i = 0; i < each.shape[0] * each.shape[1]; ++i)
        each.bytes += number(each.dtype, seed, i);
    }
    tensors.push_back(each);
    if (each.dtype != "F8_E4M3") continue;
    floats = true;
    std::string scale;
    append(scale, 1.0f / 64);
    tensors.push_back({each.name + "_scale", "F32", {1}, scale});
  }
  if (floats) o.config["quantization_config"] = {{"quant_method", "fp8"}, {"activation_scheme", "dynamic"}};
  write_toy_directory(dir, o);
  write_file(dir / "model.safetensors", safetensors_bytes(tensors));
}

void check(const types& t, const backend_ptr& b) {
  std::string others;
  for (const auto& [part, type] : t.others) others += part + " " + type + ", ";
  CAPTURE(t.layers, t.embedding, t.head, others, b->name);
  const temporary_dir dir;
  write_model(dir.path(), t);
  const auto host = std::move(load_model(dir.path().string(), kernels::cpu_backend(2)).value().weights),
             device = std::move(load_model(dir.path().string(), b).value().weights);
  CHECK(device->info().runs_ahead == t.decoder);
  for (model* m : {host.get(), device.get()}) m->allocate_pages(60).value();
  device->warm_up(20, 300).value();
  // Rows as f16 have three more bits than as bf16; f32 has all.
  const double allowed = !t.decoder ? 1e-4 : t.layers == "F16" && t.others.empty() ? 1e-2 : 4e-2;
  std::mt19937 r(7);
  for (const std::size_t rows : {1u, 7u, 40u, 150u, 280u}) {
    driven_sequence on_host(*host, 0, 20), on_device(*device, 0, 20);
    std::vector<token_id> tokens(rows);
    for (token_id& id : tokens) id = static_cast<token_id>(r() % toy_vocab);
    const auto compare = [&](std::span<const token_id> more) {
      CAPTURE(rows, more.size());
      const auto wanted = on_host.feed(more, more.size());
      const std::vector<float> copy(wanted.begin(), wanted.end());
      CHECK(difference(copy, on_device.feed(more, more.size())) <= allowed);
    };
    compare(tokens);
    for (int i = 0; i < 5; ++i) compare(std::span(tokens).first(1));  // launched, recorded, replayed
  }
}

}  // namespace

TEST_CASE("cuda: a model whose embedding, head or layers have several types agrees with the host") {
  const types all[] = {
      {"BF16", "F16", "F16"},
      {"BF16", "F32", "BF16"},
      {"F16", "BF16", "BF16"},
      {"F16", "F32", "F16"},
      {"F8_E4M3", "F16", ""},
      {"F8_E4M3", "BF16", "F16"},
      {"F8_E4M3", "F32", "F16"},
      {"F16", "F16", "F16", {{"down_proj", "F8_E4M3"}}},
      {"F8_E4M3", "F16", "", {{"down_proj", "F16"}}},
      {"F8_E4M3", "BF16", "", {{"layers.1.self_attn.o_proj", "F16"}}},
      {"BF16", "BF16", "", {{"layers.0.mlp.down_proj", "F16"}, {"layers.0.self_attn.v_proj", "F8_E4M3"}}},
      {"F8_E4M3", "BF16", "", {{"v_proj", "F16"}}},
      {"F8_E4M3", "F16", "", {{"q_proj", "F16"}, {"layers.1.mlp.up_proj", "F16"}}},
      {"F8_E4M3", "F16", "", {{"layers.0.mlp.gate_proj", "F16"}, {"layers.0.mlp.up_proj", "F16"}}},
      {"F16", "F16", "BF16", {{"k_proj", "F8_E4M3"}, {"layers.1.mlp.gate_proj", "F8_E4M3"}}},
      {"F8_E4M3",
       "BF16",
       "",
       {{"layers.0.self_attn.q_proj", "F16"},
        {"layers.0.self_attn.k_proj", "F16"},
        {"layers.0.self_attn.v_proj", "F16"}}},
      // By single operations.
      {"BF16", "F32", "", {}, false},
      {"F8_E4M3", "F16", "F32", {}, false},
      {"BF16", "BF16", "", {{"down_proj", "F32"}}, false},
      {"BF16", "BF16", "", {{"v_proj", "F16"}}, false},  // a stack of plain types is widened to f32
  };
  for (const bool deterministic : {false, true}) {
    const auto b = cuda_device(deterministic);
    if (!b) return;
    for (const types& t : all) check(t, b);
    CHECK(b->fault(b->self) == nullptr);
  }
}

}  // namespace weir::tests::mixed_cuda_test
