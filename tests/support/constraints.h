// constraints.h — constraints of toy jobs, and helpers that are late.
#pragma once

#include <catch2/catch.hpp>
#include <deque>
#include <limits>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "core/grammar/compile.h"
#include "core/grammar/masks/job_mask.h"

namespace weir::tests {

inline std::shared_ptr<core::grammar::terminal_views> views_of(std::shared_ptr<const core::tokenizer> words) {
  using namespace core::grammar;
  return std::make_shared<terminal_views>(std::make_shared<const token_trie>(std::move(words)));
}

// A constraint that nobody has used: nothing of it is remembered.
inline std::shared_ptr<core::grammar::constraint> fresh_constraint(
    std::string_view regex, std::shared_ptr<core::grammar::terminal_views> views) {
  auto rules = core::grammar::compile_regex(regex);
  REQUIRE(rules.has_value());
  auto made = core::grammar::constraint::make(std::move(*rules), std::move(views));
  REQUIRE(made.has_value());
  return *made;
}

// Helpers that do the work of masks when the test says so.
class lazy_helpers final : public core::grammar::mask_helpers {
 public:
  std::uint32_t posted = 0, refused = 0, waited_for = 0;
  std::vector<std::shared_ptr<core::grammar::job_mask>> discarded;
  std::size_t room = std::numeric_limits<std::size_t>::max();  // masks that may wait at once

  bool post(std::shared_ptr<core::grammar::job_mask> m) noexcept override {
    std::erase(work_, nullptr);
    if (work_.size() >= room) {
      ++refused;
      return false;
    }
    ++posted;
    work_.push_back(std::move(m));
    return true;
  }
  void finish(core::grammar::job_mask& m) noexcept override {
    ++waited_for;
    for (auto& w : work_)
      if (w.get() == &m) do_it(w);
  }
  void discard(std::shared_ptr<core::grammar::job_mask> m) noexcept override {
    discarded.push_back(std::move(m));
  }
  // Does about half of what waits.
  void some(std::mt19937& random) {
    for (auto& w : work_)
      if (random() % 2) do_it(w);
    std::erase(work_, nullptr);
  }

 private:
  static void do_it(std::shared_ptr<core::grammar::job_mask>& w) {
    if (w) w->work();
    w.reset();
  }
  std::deque<std::shared_ptr<core::grammar::job_mask>> work_;
};

}  // namespace weir::tests
