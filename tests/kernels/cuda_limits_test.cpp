// Every kernel that a decoder launches on the general path, against the limits of the devices that the path
// is for. Skipped, saying so, where there is no device.
#ifdef WEIR_WITH_CUDA
#include <cstdlib>
#include <map>
#include <numeric>

#include "kernels/buffer.h"
#include "kernels/cuda/decoder.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/layers.h"
#include "tests/kernels/on_device.h"
#include "tests/support/plain_layer.h"

namespace weir::tests::cuda_limits_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;

namespace {

// CUDA C++ Programming Guide, «Technical Specifications per Compute Capability».
struct limits {
  const char* capability;
  std::size_t shared;  // bytes of a block, static and dynamic together
  int registers;       // of a block and of a multiprocessor
};
constexpr limits devices[] = {
    {"8.0", 163 << 10, 65536}, {"8.6", 99 << 10, 65536}, {"8.9", 99 << 10, 65536}, {"12.0", 99 << 10, 65536}};

constexpr int registers_of_a_warp_come_in = 256;

// Device 0 with the code path of capability 8.0, whatever its own capability is.
std::shared_ptr<const backend> general_device(std::string& why) {
  const char* before = std::getenv("WEIR_CUDA_PATH");
  const std::string kept = before ? before : "";
  ::setenv("WEIR_CUDA_PATH", "general", 1);
  auto b = cuda_backend(0, why);
  if (before)
    ::setenv("WEIR_CUDA_PATH", kept.c_str(), 1);
  else
    ::unsetenv("WEIR_CUDA_PATH");
  return b;
}

// A model of one layer whose weights are all zeros: what is launched does not depend on numbers.
class toy {
 public:
  toy(std::shared_ptr<const backend> b, dtype type, std::uint32_t head_dim, bool bias, bool mixed,
      std::optional<kv_type> kv)
      : b_(std::move(b)), zeros_(b_, 4u << 20), pages_(b_, 8u << 20), half_(head_dim / 2) {
    const std::uint32_t heads = 4, kv_heads = 2, hidden = 256, inter = 512, vocab = 128;
    decoder_shape s;
    s.model.hidden = hidden;
    s.model.vocab = vocab;
    s.model.tables = {{half_}};
    s.model.groups = {{kv_heads, head_dim, 1}};
    s.model.layers = {tests::plain_layer(inter, heads, kv_heads, head_dim)};
    if (mixed) {
      s.model.layers[0].mlp.router = {.experts = 64, .chosen = 4};
      s.model.layers[0].mixer.sinks = true;
    }
    s.page_tokens = cuda::page_tokens;
    const auto matrix_of = [&](std::uint32_t n, std::uint32_t k) {
      return matrix{zeros_.data(), type, n, k};
    };
    const auto* floats = zeros_.floats();
    s.embedding = s.head = matrix_of(vocab, hidden);
    s.norm.weight = floats;
    decoder_layer l;
    l.attention_norm.weight = l.mlp_norm.weight = floats;
    l.qkv = matrix_of((heads + 2 * kv_heads) * head_dim, hidden);
    l.out = matrix_of(hidden, heads * head_dim);
    if (mixed) {  // the same matrix is that of every expert
      l.experts.router = l.sinks = floats;
      l.experts.gate_up = {matrix_of(2 * inter, hidden), 64, 0};
      l.experts.down = {matrix_of(hidden, inter), 64, 0};
      if (bias) l.experts.gate_up_bias = l.experts.down_bias = floats;
    } else {
      l.gate_up = matrix_of(2 * inter, hidden);
      l.down = matrix_of(hidden, inter);
      if (bias) l.gate_up_bias = l.down_bias = floats;
    }
    if (bias) l.qkv_bias = l.out_bias = floats;
    s.layers = {l};
    s.kv = kv;
    decoder_ = b_->make_decoder(b_->self, s);
  }

  // Warms the decoder up, which launches prompts, steps of decoding alone and beside prompts, and draws.
  bool run() {
    if (!decoder_ || decoder_->page_bytes() * 64 > (8u << 20)) return false;
    decoder_->set_pages(pages_.data(), 64, 64 * decoder_->page_bytes() / 2);
    return decoder_->warm_up(40, 200, 64);
  }

 private:
  std::shared_ptr<const backend> b_;
  buffer zeros_, pages_;
  std::vector<float> half_;
  std::unique_ptr<decoder> decoder_;
};

}  // namespace

TEST_CASE("cuda: kernels of the general path fit on devices of 8.0, 8.6, 8.9 and 12.0") {
  std::string why;
  const auto b = general_device(why);
  if (!b) {
    std::cerr << "skipped: " << why << "\n";
    return;
  }
  device& d = of(b->self);
  REQUIRE(d.path == code_path::general);
  CHECK(d.shared_per_block <= general_shared);
  std::vector<launched> all;
  d.launches = &all;
  for (const dtype type : {dtype::bf16, dtype::f16})
    for (const std::uint32_t head_dim : {16u, 32u, 64u, 96u, 128u, 256u})
      for (const bool bias : {false, true})
        for (const auto kv :
             {std::optional<kv_type>(), std::optional(kv_type::fp8), std::optional(kv_type::q8)}) {
          if (kv == kv_type::q8 && head_dim < 32) continue;
          CAPTURE(name(type), head_dim, bias, kv.has_value());
          REQUIRE(toy(b, type, head_dim, bias, false, kv).run());
          if (!kv) REQUIRE(toy(b, type, head_dim, bias, true, kv).run());
        }
  d.launches = nullptr;
  CHECK(d.fault == "");

  std::map<const void*, launched> most;  // of each kernel, its largest launch
  for (const launched& l : all) {
    launched& m = most.try_emplace(l.kernel, l).first->second;
    m.threads = std::max(m.threads, l.threads);
    m.shared = std::max(m.shared, l.shared);
    m.cluster = std::max(m.cluster, l.cluster);
  }
  CHECK(most.size() >= 50);
  for (const auto& [kernel, l] : most) {
    cudaFuncAttributes a{};
    REQUIRE(cudaFuncGetAttributes(&a, kernel) == cudaSuccess);
    CHECK(l.cluster == 1);
    CHECK(l.threads <= 1024);
    CHECK(static_cast<int>(l.threads) <= a.maxThreadsPerBlock);
    const int warps = static_cast<int>(l.threads + 31) / 32;
    const int of_a_warp = (a.numRegs * 32 + registers_of_a_warp_come_in - 1) / registers_of_a_warp_come_in *
                          registers_of_a_warp_come_in;
    for (const limits& on : devices) {
      CAPTURE(on.capability, l.shared, a.sharedSizeBytes, a.numRegs, l.threads);
      CHECK(a.sharedSizeBytes + l.shared <= on.shared);
      CHECK(warps * of_a_warp <= on.registers);
    }
  }
}

}  // namespace weir::tests::cuda_limits_test

#endif
