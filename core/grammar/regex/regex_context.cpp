#include "core/grammar/regex/regex_context.h"

#include <optional>

#include "core/grammar/regex/regex.h"

namespace weir::core::grammar {
namespace {

constexpr std::array all_demands{demand::any, demand::edge, demand::word, demand::other};

// Both demands of one place; nullopt: no place satisfies both.
std::optional<demand> both_of(demand x, demand y) {
  if (x == demand::any || x == y) return y;
  if (y == demand::any) return x;
  if (x == demand::word || y == demand::word) return std::nullopt;
  return demand::edge;  // an edge counts as `other`
}

template <class Visit>
void each(const fragment& f, Visit visit) {
  for (const auto before : all_demands)
    for (const auto behind : all_demands)
      if (const auto r = f.at(before, behind); r != regex_pool::nothing) visit(before, behind, r);
}

}  // namespace

bool fragment::is_plain() const {
  bool plain = true;
  each(*this, [&](demand before, demand behind, regex_id) {
    plain = plain && before == demand::any && behind == demand::any;
  });
  return plain;
}

fragments::fragments(regex_pool& pool, spelling how)
    : pool_(pool), how_(how), any_text_(grammar::any_text(pool, how)) {}

fragment fragments::beginning() {
  fragment f;
  f.at(demand::edge, demand::any) = regex_pool::empty;
  return f;
}

fragment fragments::end() {
  fragment f;
  f.at(demand::any, demand::edge) = regex_pool::empty;
  return f;
}

fragment fragments::word_border() {
  fragment f;
  f.at(demand::word, demand::other) = f.at(demand::other, demand::word) = regex_pool::empty;
  return f;
}

fragment fragments::no_word_border() {
  fragment f;
  f.at(demand::word, demand::word) = f.at(demand::other, demand::other) = regex_pool::empty;
  return f;
}

fragment fragments::either(const fragment& x, const fragment& y) {
  fragment out;
  for (const auto before : all_demands)
    for (const auto behind : all_demands)
      out.at(before, behind) = pool_.either(x.at(before, behind), y.at(before, behind));
  return out;
}

fragment fragments::concat(const fragment& x, const fragment& y) {
  if (x.is_plain() && y.is_plain())
    return fragment::plain(pool_.concat(x.at(demand::any, demand::any), y.at(demand::any, demand::any)));
  fragment out;
  const auto add = [&](demand before, demand behind, regex_id r) {
    out.at(before, behind) = pool_.either(out.at(before, behind), r);
  };
  each(x, [&](demand x_before, demand x_behind, regex_id a) {
    each(y, [&](demand y_before, demand y_behind, regex_id b) {
      if (x_behind == demand::any && y_before == demand::any) {
        add(x_before, y_behind, pool_.concat(a, b));
        return;
      }
      // A demand applies to the neighbour's text. If that text is empty, the demand becomes one of the
      // result.
      add(x_before, y_behind, pool_.concat(ends(a, y_before), begins(b, x_behind)));
      const auto before = both_of(x_before, y_before), behind = both_of(x_behind, y_behind);
      const bool a_empty = pool_.nullable(a), b_empty = pool_.nullable(b);
      if (a_empty && before) add(*before, y_behind, begins(b, x_behind));
      if (b_empty && behind) add(x_before, *behind, ends(a, y_before));
      if (a_empty && b_empty && before && behind) add(*before, *behind, regex_pool::empty);
    });
  });
  return out;
}

// Whether a word border lies between two repetitions depends on both, so the loop is unrolled into `max`
// repetitions.
std::optional<fragment> fragments::repeat(const fragment& x, std::uint32_t min, std::uint32_t max) {
  if (x.is_plain()) return fragment::plain(pool_.repeat(x.at(demand::any, demand::any), min, max));
  bool edges_alone = true;
  each(x, [&](demand before, demand behind, regex_id) {
    edges_alone = edges_alone && before <= demand::edge && behind <= demand::edge;
  });
  if (edges_alone) return repeat_between_edges(x, min, max);
  if (max > most_borders) return std::nullopt;
  fragment out = fragment::plain(regex_pool::empty);
  const auto optional = either(out, x);
  for (std::uint32_t i = 0; i < max; ++i) out = concat(i < min ? x : optional, out);
  return out;
}

// Of all repetitions that match some text, one that demands the beginning is the first, and one that demands
// the end is the last. Repetitions that match the empty text fill up the count.
fragment fragments::repeat_between_edges(const fragment& x, std::uint32_t min, std::uint32_t max) {
  const auto inner = x.at(demand::any, demand::any), first = x.at(demand::edge, demand::any),
             last = x.at(demand::any, demand::edge), alone = x.at(demand::edge, demand::edge);
  fragment out;
  out.at(demand::any, demand::any) = pool_.repeat(inner, min, max);
  if (max == 0) return out;
  const bool fills_first = pool_.nullable(first), fills_last = pool_.nullable(last);
  const auto inner_beside = [&](std::uint32_t others, bool fills) {
    const auto least = fills || min < others ? 0 : min - others;
    return pool_.repeat(inner, least, max == unbounded ? unbounded : max - others);
  };
  out.at(demand::edge, demand::any) = pool_.concat(first, inner_beside(1, fills_first));
  out.at(demand::any, demand::edge) = pool_.concat(inner_beside(1, fills_last), last);
  const bool fills = fills_first || fills_last || pool_.nullable(inner) || pool_.nullable(alone);
  auto& both = out.at(demand::edge, demand::edge);
  if (min <= 1 || fills) both = alone;
  if (max >= 2)
    both = pool_.either(both,
                        pool_.concat(first, pool_.concat(inner_beside(2, fills_first || fills_last), last)));
  return out;
}

regex_id fragments::not_empty(regex_id r) {
  if (!pool_.nullable(r)) return r;
  return pool_.both(r, pool_.complement(regex_pool::empty));
}

void fragments::make_borders() {
  if (word_ == regex_pool::nothing) {
    word_ = one_of(pool_, ecma_word(), how_);
    other_ = one_of(pool_, ecma_word().negated(), how_);
  }
}

regex_id fragments::begins(regex_id r, demand d) {
  if (d == demand::edge) return regex_pool::nothing;
  if (d == demand::any) return not_empty(r);
  make_borders();
  return pool_.both(r, pool_.concat(d == demand::word ? word_ : other_, any_text_));
}

regex_id fragments::ends(regex_id r, demand d) {
  if (d == demand::edge) return regex_pool::nothing;
  if (d == demand::any) return not_empty(r);
  make_borders();
  return pool_.both(r, pool_.concat(any_text_, d == demand::word ? word_ : other_));
}

regex_id fragments::whole(const fragment& f) {
  std::vector<regex_id> out;
  each(f, [&](demand before, demand behind, regex_id r) {
    if (before != demand::word && behind != demand::word) out.push_back(r);
  });
  return pool_.either(out);
}

regex_id fragments::search(const fragment& f, bool at_start) {
  std::vector<regex_id> out;
  const auto outside = [&](demand d, bool before) -> regex_id {
    if (d == demand::edge) return regex_pool::empty;
    if (d == demand::any) return any_text_;
    const auto some = before ? ends(any_text_, d) : begins(any_text_, d);
    return d == demand::other ? pool_.either(regex_pool::empty, some) : some;
  };
  each(f, [&](demand before, demand behind, regex_id r) {
    if (at_start && before == demand::word) return;
    const auto left = at_start ? regex_id{regex_pool::empty} : outside(before, true);
    out.push_back(pool_.concat(left, pool_.concat(r, outside(behind, false))));
  });
  return pool_.either(out);
}

}  // namespace weir::core::grammar
