// Finds a shortest text with which the constraint may end: first the shortest lengths of symbols and stacks,
// then a text of such a length. The lengths are the least solutions of their equations (D. Knuth, «A
// Generalization of Dijkstra's Algorithm», 1977), by repeated improvement.
#include <algorithm>
#include <unordered_map>

#include "core/grammar/constraint.h"

namespace weir::core::grammar {
namespace {

constexpr std::uint64_t endless = std::uint64_t{1} << 50;

std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return std::min(a + b, endless); }
std::uint64_t times(std::uint32_t n, std::uint64_t length) {
  if (n == 0) return 0;
  return length >= endless / n ? endless : n * length;
}

}  // namespace

class completer {
 public:
  completer(constraint& g, std::size_t max_bytes) : g_(g), max_bytes_(max_bytes) { measure_symbols(); }

  std::optional<std::string> run(parse_id c) {
    if (g_.parses_[c].may_end) return std::string();
    std::uint64_t best = endless;
    std::string text;
    stack_id next = 0;
    for (const auto& h : g_.parses_[c].heads) {
      if (h.is_tokens()) continue;
      const auto s = g_.pool_->shortest(h.state, max_bytes_);
      if (!s.found) continue;
      measure_stacks(h.next);
      const auto all = sum(s.text.size(), stacks_[h.next].length);
      if (all < best) best = all, text = s.text, next = h.next;
    }
    if (best > max_bytes_) return std::nullopt;
    write_stack(text, next);
    return text;
  }

 private:
  struct known_stack {
    std::uint64_t length = endless;
    stack_entry by;  // the entry with that length
  };

  std::uint64_t dot_length(dot_id d, std::uint32_t min) const {
    std::uint64_t n = 0;
    while (d > dot_accept) {
      const auto& x = g_.symbols_.dots[d];
      n = sum(n, times(min, lengths_[x.what]));
      d = x.next;
      if (d > dot_accept) min = g_.symbols_.dots[d].min;
    }
    return n;
  }

  void measure_symbols() {
    const auto& symbols = g_.symbols_.symbols;
    lengths_.assign(symbols.size(), endless);
    texts_.resize(symbols.size());
    ways_.assign(symbols.size(), dot_end);
    for (std::size_t s = 0; s < symbols.size(); ++s) {
      if (symbols[s].nullable) lengths_[s] = 0;
      if (symbols[s].what != symbol::kind::terminal || symbols[s].nullable) continue;
      auto shortest = g_.pool_->shortest(symbols[s].language, max_bytes_);
      if (!shortest.found) continue;
      texts_[s] = std::move(shortest.text);
      lengths_[s] = texts_[s].size();
    }
    for (bool better = true; better;) {
      better = false;
      for (std::size_t s = symbols.size(); s-- > 0;) {
        for (const auto a : symbols[s].alternatives) {
          const auto n = dot_length(a, g_.symbols_.dots[a].min);
          if (n >= lengths_[s]) continue;
          lengths_[s] = n;
          ways_[s] = a;
          better = true;
        }
      }
    }
  }

  void measure_stacks(stack_id from) {
    std::vector<stack_id> reached, open{from};
    while (!open.empty()) {
      const auto s = open.back();
      open.pop_back();
      if (!stacks_.try_emplace(s).second) continue;
      reached.push_back(s);
      for (const auto& e : g_.stacks_.entries(s))
        if (e.at != dot_accept) open.push_back(e.below);
    }
    for (bool better = true; better;) {
      better = false;
      for (auto i = reached.size(); i-- > 0;) {
        auto& s = stacks_[reached[i]];
        for (const auto& e : g_.stacks_.entries(reached[i])) {
          const auto n = e.at == dot_accept ? 0 : sum(dot_length(e.at, e.min), stacks_[e.below].length);
          if (n >= s.length) continue;
          s = {n, e};
          better = true;
        }
      }
    }
  }

  void write_stack(std::string& out, stack_id s) {
    for (auto e = stacks_[s].by; e.at != dot_accept; e = stacks_[e.below].by) write_dots(out, e.at, e.min);
  }

  // Places that are still to be written lie on a stack of their own, so there is no recursion.
  void write_dots(std::string& out, dot_id at, std::uint32_t min) {
    struct place {
      dot_id at;
      std::uint32_t min;
    };
    std::vector<place> open{{at, min}};
    while (!open.empty()) {
      auto& p = open.back();
      if (p.at <= dot_accept) {
        open.pop_back();
        continue;
      }
      const auto& d = g_.symbols_.dots[p.at];
      if (p.min == 0) {
        p.at = d.next;
        p.min = p.at > dot_accept ? g_.symbols_.dots[p.at].min : 0;
        continue;
      }
      --p.min;
      const auto& s = g_.symbols_.symbols[d.what];
      if (s.what == symbol::kind::terminal) {
        out += texts_[d.what];
      } else if (const auto way = ways_[d.what]; way > dot_accept) {
        open.push_back({way, g_.symbols_.dots[way].min});
      }
    }
  }

  constraint& g_;
  const std::size_t max_bytes_;
  std::vector<std::uint64_t> lengths_;  // of symbols
  std::vector<std::string> texts_;      // of terminals
  std::vector<dot_id> ways_;            // rules: the shortest alternative
  std::unordered_map<stack_id, known_stack> stacks_;
};

std::optional<std::string> constraint::completion(parse_id c, std::size_t max_bytes) {
  if (c <= failed) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return completer(*this, max_bytes).run(c);
}

}  // namespace weir::core::grammar
