// Objects as rules.
//
// Declared members come in the order in which they are declared, then those that are only required, then
// others. Each state, which is the next declared member and the number of members so far, is a rule.
#include <algorithm>
#include <set>

#include "core/grammar/schema/writer.h"

namespace weir::core::grammar {
namespace {

constexpr std::size_t most_cells = 16;
constexpr std::uint64_t most_object_states = 60'000;

bool declares(const member_rule& rule, const std::string& name) {
  return std::ranges::any_of(rule.declared, [&](const auto& d) { return d.first == name; });
}

}  // namespace

part_id schema_writer::object(const constraints& c, const goal& g) {
  for (json_node_id v : c.not_values)
    if (tree_[v].kind == json_kind::object)
      keywords_.relax(v, "an object among the values that are not allowed is not supported");
  return object_with_needed(c, g, {});
}

// Each rule of some_members gives a choice: a declared member that it means satisfies it, or another member
// does.
part_id schema_writer::object_with_needed(constraints c, const goal& g,
                                          std::vector<std::vector<cell>> needed) {
  if (c.some_members.empty()) {
    object_plan plan;
    plan.min = c.min_members;
    plan.max = c.max_members;
    plan.needed = std::move(needed);
    if (plan.min > plan.max || !plan_known(c, plan)) return rules::nothing;
    plan_others(c, plan, g);
    return rules_.sequence({json_.open('{'), members(plan, g), json_.close('}')});
  }
  if (c.some_members.size() + needed.size() > 3) {
    keywords_.relax(c.some_members.front().what.front().schema,
                    "more than three opposites of additionalProperties or patternProperties at one place are "
                    "not supported");
    c.some_members.clear();
    return object_with_needed(std::move(c), g, std::move(needed));
  }
  const some_member_rule rule = c.some_members.back();
  c.some_members.pop_back();
  std::vector<part_id> ways;
  regex_id spoken_of = regex_pool::anything;
  if (!rule.rule) {
    const auto language = texts_.name_language(rule.pattern, spelling_);
    if (!language) return object_with_needed(std::move(c), g, std::move(needed));  // warned of: a superset
    spoken_of = *language;
  }
  for (const auto& [pattern, what] :
       rule.rule ? rule.rule->patterns : std::vector<std::pair<json_node_id, literal>>())
    if (const auto language = texts_.name_language(pattern, spelling_))
      spoken_of = pool_.both(spoken_of, pool_.complement(*language));
  std::set<std::string> names(c.required.begin(), c.required.end());
  for (const auto& m : c.members)
    for (const auto& [name, what] : m->declared) names.insert(name);
  for (const std::string& name : names) {
    if (rule.rule && declares(*rule.rule, name)) continue;
    if (!texts_.contains(spoken_of, spelled(name, spelling_))) continue;
    constraints with = c;
    auto one = std::make_shared<member_rule>();
    for (const literal& l : rule.what) one->declared.emplace_back(name, l);
    with.members.push_back(one);
    if (std::ranges::find(with.required, name) == with.required.end()) with.required.push_back(name);
    ways.push_back(object_with_needed(std::move(with), g, needed));
  }
  regex_id others = spoken_of;
  std::vector<std::string> taken;
  for (const std::string& name : names) taken.push_back(spelled(name, spelling_));
  if (rule.rule)
    for (const auto& [name, what] : rule.rule->declared) taken.push_back(spelled(name, spelling_));
  if (!taken.empty()) others = pool_.both(others, pool_.complement(pool_.literals(std::move(taken))));
  std::vector<cell> one = cells(c, others, g);
  for (cell& k : one) k.value.insert(k.value.end(), rule.what.begin(), rule.what.end());
  needed.push_back(std::move(one));
  ways.push_back(object_with_needed(std::move(c), g, std::move(needed)));
  return rules_.choice(ways);
}

// False: a required member is impossible.
bool schema_writer::plan_known(const constraints& c, object_plan& plan) {
  const regex_id allowed = name_language(c.names);
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const auto& rule : c.members)
    for (const auto& [name, what] : rule->declared)
      if (seen.insert(name).second) names.push_back(name);
  for (const std::string& name : c.required)
    if (seen.insert(name).second) names.push_back(name);
  const std::set<std::string> required(c.required.begin(), c.required.end());
  for (const std::string& name : names) {
    object_plan::known_member m{name, {}, required.contains(name)};
    const std::string text = spelled(name, spelling_);
    bool possible = !c.absent.contains(name) && texts_.contains(allowed, text);
    for (const auto& rule : c.members) {
      tree_.burn(1 + rule->declared.size() / 16 + rule->patterns.size());
      bool named = false;
      for (const auto& [n, what] : rule->declared)
        if (n == name) named = true, m.value.push_back(what);
      for (const auto& [pattern, what] : rule->patterns) {
        const auto language = texts_.name_language(pattern, spelling_);
        if (!language) named = true;  // it cannot be told: a superset
        if (!language || !texts_.contains(*language, text)) continue;
        named = true;
        m.value.push_back(what);
      }
      if (!named && rule->others) m.value.push_back(*rule->others);
    }
    possible = possible && !is_false(m.value);
    if (!possible && m.required) return false;
    if (possible) plan.known.push_back(std::move(m));
  }
  return true;
}

// Splits a language of names by the patterns that apply to them.
std::vector<schema_writer::cell> schema_writer::cells(const constraints& c, regex_id names, const goal& g) {
  struct open_cell {
    cell what;
    bool named = false;  // by the rule that is looked at
  };
  std::vector<open_cell> open{{{pool_.both(names, name_language(c.names)), {}}}};
  for (const auto& rule : c.members) {
    for (open_cell& o : open) o.named = false;
    bool untold = false;
    for (const auto& [pattern, what] : rule->patterns) {
      const auto language = texts_.name_language(pattern, spelling_);
      if (!language) {
        untold = true;
        continue;
      }
      std::vector<open_cell> split;
      for (open_cell& o : open) {
        const regex_id in = pool_.both(o.what.names, *language);
        const regex_id out = pool_.both(o.what.names, pool_.complement(*language));
        if (pool_.live(in)) {
          open_cell& both = split.emplace_back(open_cell{{in, o.what.value}, true});
          both.what.value.push_back(what);
        }
        if (pool_.live(out)) split.push_back({{out, o.what.value}, o.named});
      }
      if (split.size() > most_cells) {
        keywords_.relax(blamed(g), "so many overlapping patternProperties are not supported");
        break;
      }
      open = std::move(split);
    }
    for (open_cell& o : open)
      if (!o.named && !untold && rule->others) o.what.value.push_back(*rule->others);
    std::erase_if(open, [&](const open_cell& o) { return is_false(o.what.value); });
  }
  std::vector<cell> out;
  for (open_cell& o : open)
    if (pool_.live(o.what.names)) out.push_back(std::move(o.what));
  return out;
}

void schema_writer::plan_others(const constraints& c, object_plan& plan, const goal& g) {
  std::set<std::string> taken(c.absent.begin(), c.absent.end());
  taken.insert(c.required.begin(), c.required.end());
  for (const auto& rule : c.members)
    for (const auto& [name, what] : rule->declared) taken.insert(name);
  std::vector<std::string> texts;
  for (const std::string& name : taken) texts.push_back(spelled(name, spelling_));
  regex_id names = any_text(pool_, spelling_);
  if (!texts.empty()) names = pool_.both(names, pool_.complement(pool_.literals(std::move(texts))));
  plan.others = cells(c, names, g);
}

part_id schema_writer::other_member(const std::vector<cell>& cells) {
  std::vector<part_id> ways;
  for (const cell& k : cells) ways.push_back(rules_.sequence({json_.name(k.names), value_of(k.value)}));
  return rules_.choice(ways);
}

// Other members, behind `count` declared ones.
part_id schema_writer::tail(const object_plan& plan, std::uint32_t count) {
  if (!plan.needed.empty()) {
    std::vector<std::size_t> order(plan.needed.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::vector<part_id> ways;
    do {
      ways.push_back(needed_members(plan, count == 0, order));
    } while (std::ranges::next_permutation(order).found);
    return rules_.choice(ways);
  }
  const std::uint32_t min = count_left(plan.min, count), max = count_left(plan.max, count);
  const part_id none = min == 0 ? rules::empty : rules::nothing;
  if (plan.others.empty() || max == 0) return none;
  const part_id one = other_member(plan.others);
  const part_id next = rules_.sequence({json_.comma(), one});
  if (count > 0) return rules_.repeat(next, min, max);
  const part_id some =
      rules_.sequence({one, rules_.repeat(next, count_left(std::max(min, 1u), 1), count_left(max, 1))});
  return rules_.choice({none, some});
}

// Other members in any number, with the needed ones in this order among them. The number of members is not
// limited here.
part_id schema_writer::needed_members(const object_plan& plan, bool first, std::vector<std::size_t> order) {
  const part_id one = other_member(plan.others);
  const part_id more = rules_.any_number(rules_.sequence({json_.comma(), one}));
  std::vector<part_id> behind;  // what follows the first needed member
  for (std::size_t i = 0; i < order.size(); ++i) {
    const part_id needed = other_member(plan.needed[order[i]]);
    if (i > 0) behind.push_back(json_.comma());
    behind.push_back(needed);
    behind.push_back(more);
  }
  const part_id rest = rules_.sequence(behind);
  if (!first) return rules_.sequence({more, json_.comma(), rest});
  return rules_.choice({rest, rules_.sequence({one, more, json_.comma(), rest})});
}

part_id schema_writer::members(const object_plan& plan, const goal& g) {
  const auto n = static_cast<std::uint32_t>(plan.known.size());
  std::uint32_t min = plan.min, max = plan.max;
  // The count matters up to here.
  std::uint32_t cap = max != unbounded ? std::max(min, max) : std::max(min, 1u);
  if (!plan.needed.empty() && (min > plan.needed.size() || max != unbounded)) {
    keywords_.relax(
        blamed(g),
        "minProperties and maxProperties beside the opposite of additionalProperties are not supported");
    min = 0, max = unbounded, cap = 1;
  }
  cap = std::max(std::min(cap, n + (max == unbounded ? 0 : 1)), 1u);
  if (std::uint64_t{n} * (std::uint64_t{cap} + 1) > most_object_states) {
    keywords_.relax(blamed(g),
                    "minProperties and maxProperties beside so many declared members are not supported");
    min = 0, max = unbounded, cap = 1;
  }
  object_plan counted = plan;
  counted.min = min;
  counted.max = max;
  std::vector<part_id> behind(cap + 1);  // by count
  for (std::uint32_t count = 0; count <= cap; ++count) behind[count] = tail(counted, count);
  for (std::uint32_t i = n; i-- > 0;) {
    const object_plan::known_member& m = plan.known[i];
    const part_id member = rules_.sequence({json_.name_of(m.name), value_of(m.value)});
    std::vector<part_id> here(cap + 1);
    for (std::uint32_t count = 0; count <= cap; ++count) {
      std::vector<part_id> ways;
      if (count < max) {
        const part_id rest = behind[std::min(count + 1, cap)];
        ways.push_back(count > 0 ? rules_.sequence({json_.comma(), member, rest})
                                 : rules_.sequence({member, rest}));
      }
      if (!m.required) ways.push_back(behind[count]);
      here[count] = rules_.named(where(g), rules_.choice(ways));
    }
    behind = std::move(here);
  }
  return behind[0];
}

}  // namespace weir::core::grammar
