// launched_draws.h — the sampling kernels of a cuda device behind the interface of a decoder, over rows of
// logits that a test or a benchmark makes. It computes no pass.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "kernels/cuda/draws/draws.h"

namespace weir::tests {

class launched_draws final : public kernels::decoder {
 public:
  launched_draws(kernels::cuda::device& d, std::uint32_t rows, std::uint32_t vocab)
      : d_(d), launcher_(d), vocab_(vocab) {
    launcher_.reserve(rows, vocab);
    if (!launcher_.has_room() ||
        cudaMalloc(&logits_, std::size_t{rows} * vocab * sizeof(float)) != cudaSuccess)
      throw std::runtime_error("the device has no room for the rows");
  }
  launched_draws(const launched_draws&) = delete;
  ~launched_draws() override { cudaFree(logits_); }

  // Makes `rows` [n, vocab] the logits.
  void set(const std::vector<float>& rows) {
    if (cudaMemcpyAsync(logits_, rows.data(), rows.size() * sizeof(float), cudaMemcpyHostToDevice,
                        d_.stream) != cudaSuccess)
      throw std::runtime_error("the rows were not copied");
    d_.sync();
  }

  bool draw(std::span<const kernels::decoder_draw> draws) override {
    return launcher_.begin(draws, static_cast<float*>(logits_), vocab_);
  }
  bool collect(std::span<kernels::decoder_result> out) override {
    return launcher_.collect(out, static_cast<float*>(logits_), vocab_);
  }
  const kernels::draw_logprobs& logprobs_of(std::uint32_t i) const override {
    return launcher_.logprobs_of(i);
  }
  bool computing() override { return false; }
  bool read_logits(std::uint32_t row, float* to) override {
    d_.sync();
    return cudaMemcpy(to, static_cast<float*>(logits_) + std::size_t{row} * vocab_, vocab_ * sizeof(float),
                      cudaMemcpyDeviceToHost) == cudaSuccess;
  }
  std::uint64_t page_bytes() const noexcept override { return 0; }
  std::string_view kv_type() const noexcept override { return ""; }
  void set_pages(void*, std::uint32_t, std::uint64_t) override {}
  std::uint32_t prompt_rows() const noexcept override { return 1; }
  bool warm_up(std::uint32_t, std::uint32_t, std::uint32_t) override { return true; }
  bool forward(const kernels::decoder_step&) override { return false; }

 private:
  kernels::cuda::device& d_;
  kernels::cuda::draw_launcher launcher_;
  void* logits_ = nullptr;
  std::uint32_t vocab_;
};

}  // namespace weir::tests
