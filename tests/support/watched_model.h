// watched_model.h — any model, with digests of the logits that each draw was made from, and faults on demand.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "core/model/model.h"

namespace weir::tests {

class watched_model final : public core::model {
 public:
  explicit watched_model(std::unique_ptr<core::model> m) : model_(std::move(m)), info_(model_->info()) {
    info_.runs_ahead = false;  // the logits would be gone when the draws are known
  }

  // seed, position -> a digest of the logits' bits, of every draw since the last clear().
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> seen;
  // Draws that fail as if their logits were not finite: seed, index of the output token.
  std::function<bool(std::uint64_t, std::uint32_t)> broken;
  std::uint64_t copies = 0;

  const core::model_info& info() const noexcept override { return info_; }
  core::result<void> allocate_pages(std::uint32_t count) override { return model_->allocate_pages(count); }
  core::result<void> allocate_host_pages(std::uint32_t count) override {
    return model_->allocate_host_pages(count);
  }
  core::result<void> save_page(core::page_id page, std::uint32_t slot) override {
    return model_->save_page(page, slot);
  }
  core::result<void> restore_page(core::page_id page, std::uint32_t slot) override {
    return model_->restore_page(page, slot);
  }
  core::result<void> move_pages(std::span<const core::page_copy> moves) override {
    return model_->move_pages(moves);
  }
  core::result<void> reserve_pages(std::uint32_t most) override { return model_->reserve_pages(most); }
  std::int32_t pages() const noexcept override { return model_->pages(); }
  std::int32_t most_pages() const noexcept override { return model_->most_pages(); }
  std::int32_t page_step() const noexcept override { return model_->page_step(); }
  core::result<void> set_pages(std::int32_t pages) override { return model_->set_pages(pages); }
  core::time_point due(const core::upcoming& u) const override { return model_->due(u); }
  core::result<void> forward(const core::batch& b) override {
    copies += b.copies.size();
    return model_->forward(b);
  }
  core::result<void> sample(std::span<const core::draw> draws, std::span<core::drawn> out) override {
    auto done = model_->sample(draws, out);
    for (std::size_t i = 0; i < draws.size(); ++i) {
      const auto& d = draws[i];
      seen[{d.seed, d.position}] = digest(model_->logits(d.logits_row));
      if (broken && broken(d.seed, d.position - d.prompt_tokens)) out[i] = {-1, true};
    }
    return done;
  }
  const kernels::draw_logprobs& logprobs_of(std::uint32_t i) const override { return model_->logprobs_of(i); }
  std::span<const float> logits(std::uint32_t row) const override { return model_->logits(row); }

 private:
  static std::uint64_t digest(std::span<const float> row) {
    std::uint64_t h = 0xCBF29CE484222325;
    for (const float x : row) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &x, sizeof bits);
      h = (h ^ bits) * 0x100000001B3;
    }
    return h;
  }

  std::unique_ptr<core::model> model_;
  core::model_info info_;
};

}  // namespace weir::tests
