#include "core/grammar/schema/normal_form.h"

#include <algorithm>
#include <set>

#include "core/grammar/schema/refused.h"

namespace weir::core::grammar {

// A case under way.
struct normal_form::open_case {
  constraints facts;
  goal todo;                          // to be taken from the back
  std::set<literal> taken;            // a schema that is reached twice says nothing new
  std::vector<alternatives> choices;  // still to be made, from the front
  std::size_t chosen = 0;
};

namespace {

constexpr std::uint32_t most_cases_of_a_goal = 600;

bool impossible(const constraints& c) { return c.types == 0 || (c.values && c.values->empty()); }

}  // namespace

goal normalised(goal g) {
  std::ranges::sort(g);
  g.erase(std::unique(g.begin(), g.end()), g.end());
  return g;
}

std::vector<constraints> normal_form::cases(const goal& g) {
  std::vector<constraints> out;
  if (expand(g, false, out)) return out;
  const json_node_id blamed = g.front().schema;
  keywords_.relax(blamed,
                  "the alternatives of oneOf, anyOf, if and not multiply to more cases than are looked at");
  out.clear();
  if (expand(g, true, out)) return out;
  out.assign(1, constraints());  // any value
  return out;
}

// False: there were too many cases. `without_opposites`: schemas that must not hold are passed over, which
// gives a superset.
bool normal_form::expand(const goal& g, bool without_opposites, std::vector<constraints>& out) {
  std::vector<open_case> open(1);
  open.front().todo.assign(g.rbegin(), g.rend());
  std::uint32_t steps = 0;
  while (!open.empty()) {
    open_case now = std::move(open.back());
    open.pop_back();
    if (++steps > most_cases_of_a_goal || left_ == 0) return false;
    --left_;
    bool possible = true;
    while (possible && !now.todo.empty()) {
      const literal l = now.todo.back();
      now.todo.pop_back();
      tree_.burn();
      if (now.taken.contains(!l)) possible = false;
      if ((l.negated && without_opposites) || !now.taken.insert(l).second) continue;
      const std::vector<alternatives> said = keywords_.say(l);
      for (const alternatives& a : said) {
        if (a.empty()) possible = false;
        if (a.size() != 1) {
          now.choices.push_back(a);
          continue;
        }
        intersect(now.facts, a.front().facts, tree_);
        now.todo.insert(now.todo.end(), a.front().also.rbegin(), a.front().also.rend());
      }
      possible = possible && !impossible(now.facts);
    }
    if (!possible) continue;
    if (now.chosen == now.choices.size()) {
      out.push_back(std::move(now.facts));
      continue;
    }
    const alternatives next = std::move(now.choices[now.chosen++]);
    for (auto a = next.rbegin(); a != next.rend();
         ++a) {  // the last is taken first, so the first is pushed last
      open_case& branch = open.emplace_back(now);
      intersect(branch.facts, a->facts, tree_);
      branch.todo.assign(a->also.rbegin(), a->also.rend());
      if (impossible(branch.facts)) open.pop_back();
    }
  }
  return true;
}

}  // namespace weir::core::grammar
