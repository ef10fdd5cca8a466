#include "tests/walks/walk.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "core/grammar/cursor.h"

namespace weir::walks {
namespace {

using namespace core::grammar;
using core::token_id;

class walker {
 public:
  walker(std::shared_ptr<constraint> over, const walk_options& o, std::mt19937_64& random)
      : options_(o), random_(random), at_(std::move(over)) {}

  walk_result run() {
    while (out_.steps < options_.most_steps && !ended_ && out_.fault.empty()) {
      if (below(100) < options_.hurry)
        go_along_completion();
      else
        draw();
    }
    while (!ended_ && out_.fault.empty()) go_along_completion();
    return std::move(out_);
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  void fault(std::string what) { out_.fault = std::move(what); }

  const token_mask* mask() {
    const auto* m = at_.mask();
    if (!m) fault("the constraint has failed: " + at_.over().failure());
    return m;
  }

  void write(token_id id) {
    if (!at_.accept(id)) return fault(at_.failed() ? at_.over().failure() : "a token of the mask is refused");
    const auto bytes = at_.over().trie().text(id);
    out_.text += bytes;
    ++out_.steps;
    written_.push_back(id);
    if (rest_.starts_with(bytes))
      rest_.erase(0, bytes.size());
    else
      rest_.clear();
    if (at_.over().bytes() <= options_.most_bytes) return;
    if (!at_.move_to(at_.over().fresh(), written_))
      fault("the tokens are refused by the constraint made afresh");
  }

  // Writes one of the allowed tokens, or ends, where the text may end; the end is as likely as any token.
  void draw() {
    const auto* m = mask();
    if (!m) return;
    const std::size_t n = m->count() + (at_.may_end() ? 1 : 0);
    if (n == 0) return fault("the mask is empty, and the text may not end");
    const auto chosen = below(n);
    if (chosen == m->count())
      ended_ = true;
    else
      write(m->ids()[chosen]);
  }

  // Writes an allowed token that begins the rest of a shortest completion, or ends where no rest is left.
  void go_along_completion() {
    if (rest_.empty()) {
      const auto found = at_.over().completion(at_.at());
      if (!found) return fault("there is no completion");
      rest_ = *found;
    }
    if (rest_.empty()) {
      if (!at_.may_end()) return fault("the completion is empty, and the text may not end");
      ended_ = true;
      return;
    }
    const auto* m = mask();
    if (!m) return;
    const auto fitting = tokens_along(*m);
    if (fitting.empty()) return fault("no allowed token begins the completion");
    write(fitting[below(fitting.size())]);
  }

  std::vector<token_id> tokens_along(const token_mask& m) const {
    const auto& tree = at_.over().trie().tree();
    std::vector<token_id> out;
    std::uint32_t node = 0;
    for (const char c : rest_) {
      std::uint32_t child = node + 1;
      while (child < tree[node].end && tree[child].byte != static_cast<unsigned char>(c))
        child = tree[child].end;
      if (child >= tree[node].end) break;
      node = child;
      for (const auto id : tree.ids(node))
        if (m.has(id)) out.push_back(id);
    }
    return out;
  }

  const walk_options& options_;
  std::mt19937_64& random_;
  cursor at_;
  walk_result out_;
  std::vector<token_id> written_;
  std::string rest_;  // what is left of the completion that the text follows; empty: none
  bool ended_ = false;
};

}  // namespace

walk_result walk(std::shared_ptr<constraint> over, const walk_options& o, std::mt19937_64& random) {
  return walker(std::move(over), o, random).run();
}

}  // namespace weir::walks
