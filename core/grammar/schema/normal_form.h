// normal_form.h — what a goal asks of a value, as «one of these sets of constraints».
//
// A goal is a list of schemas that hold and of schemas that do not. «or» comes from anyOf, oneOf, if,
// dependencies and from opposites; every way through them is a case of its own. The parts of arrays and
// objects stay goals: they are looked at when they are written.
//
// Thread safety: one thread.
#pragma once

#include <vector>

#include "core/grammar/schema/evaluation.h"
#include "core/grammar/schema/keywords.h"

namespace weir::core::grammar {

class normal_form {
 public:
  // At most `most` cases are looked at over the whole schema.
  normal_form(schema_keywords& keywords, const json_tree& tree, std::uint32_t most = 20'000)
      : keywords_(keywords), tree_(tree), left_(most) {}

  // Cases in the order in which the schema has its alternatives. None: no value satisfies the goal. Throws
  // schema_refused. A goal that has too many cases is relaxed (schema_keywords::relax()): the cases are then
  // a superset.
  std::vector<constraints> cases(const goal& g);

 private:
  struct asked;
  struct choice;
  struct open_case;
  bool take(open_case& now, const asked& what);
  void choose(open_case& now, std::vector<open_case>& open);
  void finish(open_case& now, std::vector<constraints>& out);
  evaluation_set evaluations_of(open_case& now, const asked& what);
  bool expand(const goal& g, bool without_opposites, std::vector<constraints>& out);

  schema_keywords& keywords_;
  const json_tree& tree_;
  std::uint32_t left_;
};

// The goal in the form that two equal goals share: sorted, each literal once.
goal normalised(goal g);

}  // namespace weir::core::grammar
