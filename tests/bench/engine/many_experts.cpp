// many_experts.cpp — what the number of tensors alone costs when a mixture of experts is loaded.
//
//   bench_engine_many_experts DIR [fp8]
//
// Writes a model of 48 layers with 128 tiny experts each to DIR, which must exist: 18,867 tensors of bf16, or
// 37,491 of fp8 and its scales. It then opens the model, plans its weights and loads them for the cpu
// backend, three times. Output: milliseconds of processor time of all threads.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/load.h"
#include "core/model/load/opened_model.h"

using namespace weir;
using namespace weir::core;

namespace {

constexpr int layers = 48, experts = 128, side = 32;

// The header and the data of a safetensors file.
struct tensors {
  bool fp8;
  std::string header, data;

  void add(const std::string& name, int rows, int columns, const char* type, std::string_view element) {
    const std::size_t first = data.size();
    for (int i = 0; i < rows * std::max(columns, 1); ++i) data += element;
    const std::string shape = columns ? fmt::format("{},{}", rows, columns) : fmt::format("{}", rows);
    header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          header.empty() ? "" : ",", name, type, shape, first, data.size());
  }
  void plain(const std::string& name, int rows, int columns = 0) {
    add(name + ".weight", rows, columns, "BF16", std::string_view("\x00\x3c", 2));
  }
  void linear(const std::string& name, int rows, int columns) {
    if (!fp8) return plain(name, rows, columns);
    add(name + ".weight", rows, columns, "F8_E4M3", "\x20");
    add(name + ".weight_scale_inv", 1, 1, "F32", std::string_view("\x00\x00\x00\x3f", 4));
  }
};

void add_layer(tensors& t, const std::string& at) {
  for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) t.plain(at + norm, side);
  for (const char* norm : {"q_norm", "k_norm"}) t.plain(at + "self_attn." + norm, 8);
  for (const char* name : {"q_proj", "o_proj"}) t.linear(at + "self_attn." + name, side, side);
  for (const char* name : {"k_proj", "v_proj"}) t.linear(at + "self_attn." + name, side / 2, side);
  t.plain(at + "mlp.gate", experts, side);
  for (int e = 0; e < experts; ++e)
    for (const char* name : {"gate_proj", "up_proj", "down_proj"})
      t.linear(fmt::format("{}mlp.experts.{}.{}", at, e, name), side, side);
}

void write_model(const std::string& dir, bool fp8) {
  tensors t{fp8, {}, {}};
  for (const char* name : {"model.embed_tokens", "lm_head"}) t.plain(name, 256, side);
  t.plain("model.norm", side);
  for (int i = 0; i < layers; ++i) add_layer(t, fmt::format("model.layers.{}.", i));
  const std::string header = "{" + t.header + "}";
  std::ofstream file(dir + "/model.safetensors", std::ios::binary);
  for (int i = 0; i < 8; ++i) file.put(static_cast<char>(std::uint64_t{header.size()} >> (8 * i)));
  file << header << t.data;
  std::ofstream(dir + "/config.json") << fmt::format(
      R"({{"architectures":["Qwen3MoeForCausalLM"],"hidden_size":32,"intermediate_size":32,
           "num_hidden_layers":{},"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,
           "max_position_embeddings":512,"rms_norm_eps":1e-5,"vocab_size":256,"eos_token_id":255,
           "num_experts":{},"num_experts_per_tok":8,"moe_intermediate_size":32{}}})",
      layers, experts,
      fp8 ? R"(,"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]})" : "");
}

double processor_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "bench_engine_many_experts DIR [fp8]\n"), 2;
  const std::string dir = argv[1];
  write_model(dir, argc > 2 && std::string_view(argv[2]) == "fp8");
  std::puts("open,plan,load");
  for (int round = 0; round < 3; ++round) {
    const auto on = make_backend("cpu", 2).value();
    const double start = processor_ms();
    const auto m = open_model(dir).value();
    const double opened = processor_ms();
    static_cast<void>(plan_weights(m.config, m.weights, *on).value());
    const double planned = processor_ms();
    static_cast<void>(load_weights(m.config, m.weights, on, {}).value());
    std::printf("%.0f,%.0f,%.0f\n", opened - start, planned - opened, processor_ms() - planned);
  }
}
