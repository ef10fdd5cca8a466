#include "core/text/tokenizer/pretokenizer.h"

#include <algorithm>

#include "core/text/tokenizer/byte_level.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

using behavior = pretokenizer::behavior;

constexpr std::string_view byte_level_words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view whitespace_words = R"(\w+|[^\w\s]+)";

struct stretch {
  span_of_text at;
  bool matches = false;
};

void find_stretches(std::string_view word, const pattern& what, bool invert, std::vector<span_of_text>& hits,
                    std::vector<stretch>& out, turn* at) {
  hits.clear();
  out.clear();
  what.find(word, hits, at);
  std::size_t done = 0;
  work_steps all(at);
  for (const span_of_text& hit : hits) {
    all.add();
    if (done != hit.begin) out.push_back({{done, hit.begin}, invert});
    out.push_back({hit, !invert});
    done = hit.end;
  }
  if (done != word.size()) out.push_back({{done, word.size()}, invert});
}

// Each matching character is a stretch; so is the text between two of them.
void find_stretches(std::string_view word, bool (*matches)(char32_t) noexcept, std::vector<stretch>& out,
                    turn* at_turn) {
  out.clear();
  std::size_t done = 0;
  work_steps all(at_turn);
  for (std::string_view rest = word; !rest.empty();) {
    all.add();
    const std::size_t at = word.size() - rest.size();
    if (!matches(take_character(rest))) continue;
    const std::size_t end = word.size() - rest.size();
    if (done < at) out.push_back({{done, at}, false});
    out.push_back({{at, end}, true});
    done = end;
  }
  if (done < word.size()) out.push_back({{done, word.size()}, false});
}

void merge_stretches(std::vector<stretch>& all, behavior how) {
  const bool backwards = how == behavior::merged_with_next;
  if (backwards) std::reverse(all.begin(), all.end());
  std::size_t kept = 0;
  bool previous = false;
  for (const stretch& s : all) {
    const bool joins = how == behavior::contiguous ? s.matches == previous : s.matches && !previous;
    previous = s.matches;
    if (!joins || kept == 0) {
      all[kept++] = s;
    } else if (backwards) {
      all[kept - 1].at.begin = s.at.begin;
    } else {
      all[kept - 1].at.end = s.at.end;
    }
  }
  all.resize(kept);
  if (backwards) std::reverse(all.begin(), all.end());
}

void append_words(std::vector<stretch>& all, behavior how, std::size_t offset,
                  std::vector<span_of_text>& out) {
  if (how != behavior::isolated && how != behavior::removed) merge_stretches(all, how);
  for (const stretch& s : all) {
    if (s.at.begin == s.at.end || (how == behavior::removed && s.matches)) continue;
    out.push_back({offset + s.at.begin, offset + s.at.end});
  }
}

// Cuts every word by what `find(word, stretches)` finds in it.
void cut_words(word_list& list, behavior how, turn* at, const auto& find) {
  std::vector<span_of_text> cut;
  std::vector<stretch> stretches;
  cut.reserve(list.words.size());
  work_steps all(at);
  for (const span_of_text& word : list.words) {
    all.add(4 + word.end - word.begin);
    find(word.of(list.text), stretches);
    all.add(stretches.size());
    append_words(stretches, how, word.begin, cut);
  }
  list.words = std::move(cut);
}

void apply_step(word_list& list, bool, const pretokenizer::split& s, turn* at) {
  std::vector<span_of_text> hits;
  cut_words(list, s.how, at,
            [&](auto word, auto& out) { find_stretches(word, s.what, s.invert, hits, out, at); });
}

void apply_step(word_list& list, bool, const pretokenizer::by_class& s, turn* at) {
  cut_words(list, s.how, at, [&](auto word, auto& out) { find_stretches(word, s.matches, out, at); });
}

// Replaces the text by one that has the new spellings of all words, without gaps. `rewrite(word, text)`
// appends the new spelling of `word` to the new text.
void rewrite_words(word_list& list, turn* at, const auto& rewrite) {
  std::string text;
  text.reserve(list.text.size() + list.text.size() / 2);
  work_steps all(at);
  for (span_of_text& word : list.words) {
    all.add(1 + word.end - word.begin);
    const std::size_t begin = text.size();
    rewrite(word, text);
    word = {begin, text.size()};
  }
  list.text = std::move(text);
}

void apply_step(word_list& list, bool, const pretokenizer::byte_level&, turn* at) {
  rewrite_words(list, at, [&](const span_of_text& word, std::string& out) {
    append_byte_level(out, word.of(list.text));
  });
}

void apply_step(word_list& list, bool, const pretokenizer::leading_space&, turn* at) {
  rewrite_words(list, at, [&](const span_of_text& word, std::string& out) {
    if (list.text[word.begin] != ' ') out.push_back(' ');
    out.append(word.of(list.text));
  });
}

void apply_step(word_list& list, bool opens, const pretokenizer::metaspace& m, turn* at) {
  using scheme = metaspace_rules::scheme;
  rewrite_words(list, at, [&](const span_of_text& word, std::string& out) {
    const std::string_view old = word.of(list.text);
    const bool prepends =
        m.rules.prepend == scheme::always || (m.rules.prepend == scheme::first && opens && word.begin == 0);
    if (prepends && old[0] != ' ' && !old.starts_with(m.rules.replacement)) out += m.rules.replacement;
    for (const char c : old) c == ' ' ? out += m.rules.replacement : out += c;
  });
}

behavior parse_behavior(const json_field& field) {
  const std::string_view name = field.text();
  if (name == "Removed") return behavior::removed;
  if (name == "Isolated") return behavior::isolated;
  if (name == "MergedWithPrevious") return behavior::merged_with_previous;
  if (name == "MergedWithNext") return behavior::merged_with_next;
  if (name == "Contiguous") return behavior::contiguous;
  field.refuse(fmt::format("'{}'", name));
}

}  // namespace

pretokenizer::pretokenizer(const std::optional<json_field>& field) {
  text_growth so_far("pre-tokenizer");
  if (field) add(*field, so_far);
}

void pretokenizer::add(const json_field& field, text_growth& so_far) {
  const std::string_view type = field.at("type").text();
  if (type == "Sequence") {
    for (const json_field& step : field.at("pretokenizers").items()) add(step, so_far);
    return;
  }
  double times = 1;
  if (type == "ByteLevel") {
    times = add_byte_level(field);
  } else if (type == "Metaspace") {
    times = add_metaspace(field);
  } else if (type == "Split") {
    const behavior how = parse_behavior(field.at("behavior"));
    steps_.emplace_back(split{pattern(field.at("pattern")), how, field.boolean_or("invert", false)});
  } else if (type == "Digits") {
    const bool single = field.boolean_or("individual_digits", false);
    steps_.emplace_back(by_class{is_numeric, single ? behavior::isolated : behavior::contiguous});
  } else if (type == "Punctuation") {
    const auto how = field.find("behavior");
    steps_.emplace_back(by_class{is_punctuation, how ? parse_behavior(*how) : behavior::isolated});
  } else if (type == "Whitespace") {
    steps_.emplace_back(split{pattern(regex(whitespace_words)), behavior::removed, true});
  } else if (type == "WhitespaceSplit") {
    steps_.emplace_back(by_class{is_whitespace, behavior::removed});
  } else {
    field.refuse(fmt::format("pre-tokenizer '{}'", type));
  }
  so_far.count(field, type, times);
}

// A byte is spelled with one or two; a word of one byte may get a space.
double pretokenizer::add_byte_level(const json_field& field) {
  const bool prefix = field.boolean_or("add_prefix_space", true);
  if (prefix) steps_.emplace_back(leading_space{});
  if (field.boolean_or("use_regex", true)) {
    steps_.emplace_back(split{pattern(regex(byte_level_words)), behavior::isolated, false});
  }
  steps_.emplace_back(byte_level{});
  return prefix ? 4 : 2;
}

// A space becomes the replacement, and a word of one byte may get a replacement in front.
double pretokenizer::add_metaspace(const json_field& field) {
  const metaspace_rules rules(field);
  steps_.emplace_back(metaspace{rules});
  if (field.boolean_or("split", true)) {
    steps_.emplace_back(split{pattern(rules.replacement), behavior::merged_with_next, false});
  }
  return 1 + static_cast<double>(rules.replacement.size());
}

void pretokenizer::cut(std::string_view text, bool opens, word_list& out, turn* at) const {
  out.text = text;
  out.words.assign(1, {0, text.size()});
  if (text.empty()) out.words.clear();
  for (const auto& step : steps_) {
    std::visit([&](const auto& s) { apply_step(out, opens, s, at); }, step);
  }
}

}  // namespace weir::core
