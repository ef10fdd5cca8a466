// toy_model.h — a model whose logits are a hash of all tokens before: small, exact, sensitive to mistakes.
//
// It stores each row's token in the pages that the batch names and computes logits from what it reads back
// there. A wrong page, a row twice, a row left out or another sequence's row changes every later token.
// `script` replaces the logits: what it returns is drawn for certain.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "core/model/model.h"
#include "core/sample/logprobs.h"
#include "core/sample/steps.h"

namespace weir::tests {

class toy_model final : public core::model {
 public:
  static constexpr std::uint32_t default_vocab = 61;

  explicit toy_model(std::uint32_t vocab = default_vocab, std::uint32_t context = 4096) : scratch_(vocab) {
    info_.architecture = "toy";
    info_.vocab_size = vocab;
    info_.context = context;
    info_.page_bytes = page_span * sizeof(core::token_id);
  }

  // seed, index of the output token -> the token
  std::function<core::token_id(std::uint64_t, std::uint32_t)> script;
  // Called before each forward; an error is the device's.
  std::function<core::result<void>(const core::batch&)> before_forward;
  // Draws whose logits are NaN: seed, index of the output token.
  std::function<bool(std::uint64_t, std::uint32_t)> broken;
  std::uint32_t forwards = 0;
  bool copies_fail = false;  // of pages to host memory and back
  // Whether draws may leave out rows: their sequences ended meanwhile, or their masks were late.
  bool some_rows_unwanted = false;
  // Whether tokens leave contexts: a draw's position is then beyond its row.
  bool contexts_shift = false;

  // The logits of the token behind `before`.
  static std::vector<float> logits_behind(std::span<const core::token_id> before, std::uint32_t vocab) {
    std::uint64_t h = 1;
    for (const core::token_id id : before) h = mix(h + static_cast<std::uint32_t>(id));
    std::vector<float> row(vocab);
    for (std::uint32_t i = 0; i < vocab; ++i)
      row[i] = static_cast<float>(mix(h ^ (i * 0x1000193ULL)) >> 40) * 0x1p-22f - 2;  // [-2, 2)
    return row;
  }

  core::model_info& change_info() { return info_; }
  const core::model_info& info() const noexcept override { return info_; }

  core::result<void> allocate_pages(std::uint32_t count) override {
    memory_.assign(std::size_t{count} * core::page_tokens, -1);
    pages_ = static_cast<std::int32_t>(count);
    return {};
  }

  core::result<void> allocate_host_pages(std::uint32_t count) override {
    host_.assign(std::size_t{count} * core::page_tokens, -2);
    return {};
  }
  core::result<void> save_page(core::page_id page, std::uint32_t slot) override {
    REQUIRE_FALSE(asleep);
    if (copies_fail) return core::make_error(core::errc::internal, "no copy today");
    std::ranges::copy(page_at(page), page_of(host_, slot).begin());
    return {};
  }
  core::result<void> restore_page(core::page_id page, std::uint32_t slot) override {
    if (copies_fail) return core::make_error(core::errc::internal, "no copy today");
    std::ranges::copy(page_of(host_, slot), page_at(page).begin());
    return {};
  }

  // Sleep loses the pages; nothing may be computed or copied meanwhile.
  std::optional<std::uint64_t> sleep_bytes() const noexcept override { return 1000; }
  core::result<void> sleep(const std::atomic<bool>*) override {
    REQUIRE_FALSE(asleep);
    if (no_sleep) return core::make_error(core::errc::does_not_fit, "no memory today");
    std::ranges::fill(memory_, -3);
    asleep = true;
    return {};
  }
  core::result<void> wake(const std::atomic<bool>*) override {
    REQUIRE(asleep);
    asleep = false;
    return {};
  }
  bool asleep = false, no_sleep = false;

  core::result<void> move_pages(std::span<const core::page_copy> moves) override {
    REQUIRE_FALSE(asleep);
    if (copies_fail) return core::make_error(core::errc::internal, "no copy today");
    for (const auto& c : moves) std::ranges::copy(page_at(c.from), page_at(c.to).begin());
    return {};
  }
  // The pool has addresses for all pages of allocate_pages(). A page without memory is not touched.
  std::int32_t pages() const noexcept override { return pages_; }
  std::int32_t most_pages() const noexcept override {
    return static_cast<std::int32_t>(memory_.size() / core::page_tokens);
  }
  std::int32_t page_step() const noexcept override { return 1; }
  core::result<void> set_pages(std::int32_t pages) override {
    REQUIRE((pages >= 1 && pages <= most_pages()));
    if (pages > pages_ && no_room) return core::make_error(core::errc::does_not_fit, "no memory today");
    const auto changed = memory_.begin() + std::min(pages, pages_) * page_span;
    std::fill(changed, memory_.begin() + std::max(pages, pages_) * page_span, -4);
    pages_ = pages;
    return {};
  }
  bool no_room = false;

  // The tokens stored in a page, one for each row.
  std::span<core::token_id> page_at(core::page_id page) {
    if (page < 0 || page >= pages_) FAIL("page " << page << " has no memory");
    return page_of(memory_, static_cast<std::size_t>(page));
  }

  core::result<void> forward(const core::batch& b) override {
    ++forwards;
    REQUIRE_FALSE(asleep);
    if (before_forward) {
      if (auto ok = before_forward(b); !ok) return ok;
    }
    for (const auto& c : b.copies) {
      REQUIRE(c.from != c.to);
      std::ranges::copy(page_at(c.from), page_at(c.to).begin());
    }
    rows_.assign(b.logits_rows, {});
    behind_.assign(b.logits_rows, 0);
    drawn_from_ = b.logits_rows - b.scored;
    std::uint32_t first_row = 0;
    for (const auto& s : b.slices) {
      REQUIRE(s.first_row == first_row);
      REQUIRE(s.rows >= 1);
      REQUIRE(s.pages.size() == (s.position + s.rows + core::page_tokens - 1) / core::page_tokens);
      for (std::uint32_t i = 0; i < s.rows; ++i) slot(s, s.position + i) = b.tokens[s.first_row + i];
      if (s.logits_row >= 0) fill(rows_[static_cast<std::size_t>(s.logits_row)], s, s.rows);
      if (s.logits_row >= 0) behind_[static_cast<std::size_t>(s.logits_row)] = s.position + s.rows;
      for (std::uint32_t i = 0; i < s.scored; ++i)
        fill(rows_.at(s.scored_logits + i), s, s.first_scored + i + 1);
      first_row += s.rows;
    }
    REQUIRE(first_row == b.tokens.size());
    return {};
  }

  core::result<void> sample(std::span<const core::draw> draws, std::span<core::drawn> out) override {
    REQUIRE((some_rows_unwanted ? draws.size() <= drawn_from_ : draws.size() == drawn_from_));
    for (std::size_t i = 0; i < draws.size(); ++i) {
      const auto& d = draws[i];
      auto& row = rows_[d.logits_row];
      const std::uint32_t behind = behind_.at(d.logits_row);
      REQUIRE((contexts_shift ? behind <= d.position : behind == d.position));
      if (script) keep_only(row, script(d.seed, d.position - d.prompt_tokens));
      if (broken && broken(d.seed, d.position - d.prompt_tokens)) row[0] = std::nanf("");
      const auto id = d.from->pick(row, d.position, scratch_, d.allowed);
      out[i] = {.id = id.value_or(-1), .fault = !core::sound(row), .nothing_left = !id && core::sound(row)};
      if (d.top_logprobs < 0 || !id) continue;
      logprobs_.resize(std::max(logprobs_.size(), draws.size()));
      core::compute_logprobs(row, *id, static_cast<std::uint32_t>(d.top_logprobs), scratch_, logprobs_[i]);
    }
    return {};
  }
  const core::draw_logprobs& logprobs_of(std::uint32_t i) const override { return logprobs_.at(i); }

  std::span<const float> logits(std::uint32_t row) const override { return rows_.at(row); }

 private:
  static constexpr std::ptrdiff_t page_span = core::page_tokens;
  static std::span<core::token_id> page_of(std::vector<core::token_id>& all, std::size_t page) {
    // REQUIRE would take most of a test's time: this function is called for each row that is computed.
    if ((page + 1) * core::page_tokens > all.size()) FAIL("there is no page " << page);
    return std::span(all).subspan(page * core::page_tokens, core::page_tokens);
  }
  core::token_id& slot(const core::batch_slice& s, std::uint32_t position) {
    return page_at(s.pages[position / core::page_tokens])[position % core::page_tokens];
  }

  // Logits after the first `rows` rows of a slice.
  void fill(std::vector<float>& row, const core::batch_slice& s, std::uint32_t rows) {
    std::vector<core::token_id> before;
    for (std::uint32_t p = 0; p < s.position + rows; ++p) before.push_back(slot(s, p));
    row = logits_behind(before, info_.vocab_size);
  }

  static void keep_only(std::vector<float>& row, core::token_id id) {
    std::fill(row.begin(), row.end(), -std::numeric_limits<float>::infinity());
    row.at(static_cast<std::size_t>(id)) = 0;
  }

  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDULL;
    x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53ULL;
    return x ^ (x >> 33);
  }

  core::model_info info_;
  core::sample_scratch scratch_;
  std::vector<core::token_id> memory_;         // [pages, page_tokens]
  std::int32_t pages_ = 0;                     // those of them that have memory
  std::vector<core::token_id> host_;           // [host pages, page_tokens]
  std::vector<std::vector<float>> rows_;       // [logits rows, vocab]
  std::vector<std::uint32_t> behind_;          // [logits rows] the position that a token drawn from it has
  std::size_t drawn_from_ = 0;                 // of rows_; the others are scored
  std::vector<core::draw_logprobs> logprobs_;  // by draw of the latest sample()
};

}  // namespace weir::tests
