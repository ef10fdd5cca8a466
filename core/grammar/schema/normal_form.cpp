#include "core/grammar/schema/normal_form.h"

#include <algorithm>
#include <map>

#include "core/grammar/schema/refused.h"

namespace weir::core::grammar {

// A schema, and the evaluations that it belongs to.
struct normal_form::asked {
  literal what;
  evaluation_set evaluations = 0;
};

struct normal_form::choice {
  alternatives of;
  evaluation_set evaluations = 0;
};

// A case under way.
struct normal_form::open_case {
  constraints facts;
  std::vector<asked> todo;                  // to be taken from the back
  std::map<literal, evaluation_set> taken;  // a schema that is reached twice says nothing new
  std::vector<choice> choices;              // still to be made, from the front
  std::size_t chosen = 0;
  std::vector<evaluation> evaluations;

  void add(const alternative& a, evaluation_set evaluations_of_it, const json_tree& tree) {
    intersect(facts, a.facts, tree);
    if (evaluations_of_it != 0) note(evaluations, evaluations_of_it, a.facts);
    for (auto l = a.also.rbegin(); l != a.also.rend(); ++l)
      todo.push_back({*l, l->negated ? 0 : evaluations_of_it});
  }
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

// The evaluations that the schema belongs to: those of what led to it, and its own.
evaluation_set normal_form::evaluations_of(open_case& now, const asked& what) {
  evaluation_set all = what.evaluations;
  if (what.what.negated) return all;
  for (const bool of_items : {false, true}) {
    const auto keyword = keywords_.unevaluated(what.what.schema, of_items);
    if (!keyword) continue;
    for (std::size_t i = 0; i < now.evaluations.size(); ++i)
      if (evaluation& outer = now.evaluations[i];
          (what.evaluations >> i & 1) && outer.of_items == of_items && outer.keyword != *keyword)
        outer.everything = true;
    auto at = std::ranges::find(now.evaluations, *keyword, &evaluation::keyword);
    if (at == now.evaluations.end()) {
      if (now.evaluations.size() == most_evaluations)
        refuse_schema(tree_.pointer(*keyword),
                      "more than {} unevaluatedProperties and unevaluatedItems hold "
                      "together for one value",
                      most_evaluations);
      at = now.evaluations.insert(at, {*keyword, of_items, false, false, {}, {}});
    }
    all |= evaluation_set{1} << (at - now.evaluations.begin());
  }
  return all;
}

// False: no value can satisfy the case.
bool normal_form::take(open_case& now, const asked& what) {
  tree_.burn();
  const literal l = what.what;
  if (now.taken.contains(!l)) return false;
  const evaluation_set of = evaluations_of(now, what);
  const auto [known, is_new] = now.taken.try_emplace(l, of);
  if (!is_new && (of & ~known->second) == 0) return true;
  known->second |= of;
  const bool told = of == 0 || keywords_.tells_evaluated(l.schema);
  for (std::size_t i = 0; i < now.evaluations.size() && !told; ++i)
    if (of >> i & 1) now.evaluations[i].untold = true;
  for (alternatives& a : keywords_.say(l, of != 0)) {
    if (a.empty()) return false;
    if (a.size() == 1)
      now.add(a.front(), of, tree_);
    else
      now.choices.push_back({std::move(a), of});
  }
  return !impossible(now.facts);
}

void normal_form::choose(open_case& now, std::vector<open_case>& open) {
  const choice next = std::move(now.choices[now.chosen++]);
  for (auto a = next.of.rbegin(); a != next.of.rend(); ++a) {  // the last is taken first
    open_case& branch = open.emplace_back(now);
    branch.add(*a, next.evaluations, tree_);
    if (impossible(branch.facts)) open.pop_back();
  }
}

void normal_form::finish(open_case& now, std::vector<constraints>& out) {
  for (const evaluation& e : now.evaluations) {
    const json_node& asked_of_others = tree_[e.keyword];
    if (asked_of_others.kind == json_kind::boolean && asked_of_others.truth) continue;
    if (speaks_of_all(e)) continue;
    if (e.untold)
      keywords_.relax(e.keyword,
                      fmt::format("{} is not supported beside contains and beside an anyOf of many schemas",
                                  e.of_items ? "unevaluatedItems" : "unevaluatedProperties"));
    else
      enforce(now.facts, e);
  }
  out.push_back(std::move(now.facts));
}

// False: there were too many cases. `without_opposites`: schemas that must not hold are passed over, which
// gives a superset.
bool normal_form::expand(const goal& g, bool without_opposites, std::vector<constraints>& out) {
  std::vector<open_case> open(1);
  for (auto l = g.rbegin(); l != g.rend(); ++l) open.front().todo.push_back({*l});
  std::uint32_t steps = 0;
  while (!open.empty()) {
    open_case now = std::move(open.back());
    open.pop_back();
    if (++steps > most_cases_of_a_goal || left_ == 0) return false;
    --left_;
    bool possible = true;
    while (possible && !now.todo.empty()) {
      const asked next = now.todo.back();
      now.todo.pop_back();
      if (!next.what.negated || !without_opposites) possible = take(now, next);
    }
    if (!possible) continue;
    if (now.chosen == now.choices.size())
      finish(now, out);
    else
      choose(now, open);
  }
  return true;
}

}  // namespace weir::core::grammar
