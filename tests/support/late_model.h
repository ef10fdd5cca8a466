// late_model.h — makes any model one that runs ahead: forwards and draws that are begun are computed in order
// when tokens are collected, or pages or logits are read, and not before.
//
// No result is known too early: a row gets its drawn token only when that draw has been made. Batches,
// samplers and masks are copied when they are given, as a device reads them then and not later.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "core/model/model.h"
#include "core/sample/logprobs.h"

namespace weir::tests {

class late_model final : public core::model {
 public:
  explicit late_model(std::unique_ptr<core::model> m) : model_(std::move(m)), info_(model_->info()) {
    info_.paced = false;
    info_.runs_ahead = true;
  }

  std::uint32_t behind = 0;                // forwards that were begun while another was under way
  std::uint32_t wasted = 0;                // rows of logits that nobody drew from
  std::uint32_t told = 0;                  // tokens that were collected
  std::function<void()> on_draws;          // called as draws are begun, which may take a busy device long
  bool company = false;                    // as set_company() said last
  std::optional<core::duration> measured;  // what device_time() answers
  // Called before a step or its draws are begun, and before its tokens are collected; an error is the
  // device's.
  std::function<core::result<void>()> before_call;

  const core::model_info& info() const noexcept override { return info_; }
  core::result<void> allocate_pages(std::uint32_t count) override { return model_->allocate_pages(count); }
  core::result<void> allocate_host_pages(std::uint32_t count) override {
    return model_->allocate_host_pages(count);
  }
  core::result<void> save_page(core::page_id page, std::uint32_t slot) override {
    catch_up();
    return model_->save_page(page, slot);
  }
  core::result<void> restore_page(core::page_id page, std::uint32_t slot) override {
    catch_up();
    return model_->restore_page(page, slot);
  }

  core::result<void> move_pages(std::span<const core::page_copy> moves) override {
    catch_up();
    return model_->move_pages(moves);
  }
  core::result<void> reserve_pages(std::uint32_t most) override { return model_->reserve_pages(most); }
  std::int32_t pages() const noexcept override { return model_->pages(); }
  std::int32_t most_pages() const noexcept override { return model_->most_pages(); }
  std::int32_t page_step() const noexcept override { return model_->page_step(); }
  // No step that is under way may use a page above. A step that is not computed yet reads and writes its
  // pages.
  core::result<void> set_pages(std::int32_t pages) override {
    for (const step& s : steps_) {
      if (s.computed) continue;
      for (const auto& list : s.pages)
        for (const core::page_id p : list) REQUIRE(p < std::min(pages, model_->pages()));
    }
    return model_->set_pages(pages);
  }

  core::result<void> forward(const core::batch& b) override {
    REQUIRE(steps_.size() < 2);
    REQUIRE((steps_.empty() || steps_.back().draws));
    if (auto ok = call(); !ok) return ok;
    behind += !steps_.empty();
    step& s = steps_.emplace_back();
    s.work = b;
    for (const auto& slice : b.slices) s.pages.emplace_back(slice.pages.begin(), slice.pages.end());
    for (std::size_t i = 0; i < s.pages.size(); ++i) s.work.slices[i].pages = s.pages[i];
    return {};
  }

  core::result<void> begin_draws(std::span<const core::draw> draws) override {
    REQUIRE(!steps_.empty());
    step& s = steps_.back();
    REQUIRE(!s.draws);
    if (auto ok = call(); !ok) return ok;
    if (on_draws) on_draws();
    wasted += s.work.logits_rows - static_cast<std::uint32_t>(draws.size());
    s.draws.emplace(draws.begin(), draws.end());
    for (auto& d : *s.draws) {
      d.from = &s.samplers.emplace_back(*d.from);
      d.allowed = s.masks.emplace_back(d.allowed.begin(), d.allowed.end());
    }
    return {};
  }

  core::result<void> collect(std::span<core::drawn> out) override {
    REQUIRE(!steps_.empty());
    REQUIRE(steps_.front().draws);
    REQUIRE(steps_.front().draws->size() == out.size());
    if (auto ok = call(); !ok) return ok;
    if (auto done = run(steps_.front()); !done) return done;
    std::copy(drawn_.begin(), drawn_.end(), out.begin());
    steps_.pop_front();
    told += static_cast<std::uint32_t>(out.size());
    return {};
  }

  void set_company(bool others) override { company = others; }
  std::optional<core::duration> device_time() const override { return measured; }

  core::result<void> sample(std::span<const core::draw>, std::span<core::drawn>) override {
    return core::make_error(core::errc::internal, "asked to sample at once");
  }
  const core::draw_logprobs& logprobs_of(std::uint32_t i) const override { return model_->logprobs_of(i); }
  // Of the latest forward. Computes first what was begun.
  std::span<const float> logits(std::uint32_t row) const override {
    const_cast<late_model*>(this)->catch_up();
    return model_->logits(row);
  }

 private:
  struct step {
    core::batch work;
    std::deque<std::vector<core::page_id>> pages;
    std::optional<std::vector<core::draw>> draws;
    std::deque<core::sampler> samplers;
    std::deque<std::vector<std::uint32_t>> masks;
    bool computed = false, drawn = false;
  };

  core::result<void> call() { return before_call ? before_call() : core::result<void>(); }

  core::result<void> run(step& s) {
    if (!s.computed) {
      for (auto& t : s.work.tokens)
        if (t < 0) t = std::max(0, drawn_.at(static_cast<std::size_t>(-1 - t)).id);
      s.computed = true;
      if (auto done = model_->forward(s.work); !done) return done;
    }
    if (s.drawn || !s.draws) return {};
    s.drawn = true;
    drawn_.assign(s.draws->size(), {});
    return s.draws->empty() ? core::result<void>() : model_->sample(*s.draws, drawn_);
  }

  // Computes what was begun; called before pages or logits are read. Draws that were not begun come later.
  void catch_up() {
    for (auto& s : steps_) REQUIRE(run(s).has_value());
  }

  std::unique_ptr<core::model> model_;
  core::model_info info_;
  std::deque<step> steps_;          // under way
  std::vector<core::drawn> drawn_;  // by the step that was computed last
};

}  // namespace weir::tests
