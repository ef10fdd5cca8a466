#include "actors/make_job.h"

#include <ctime>
#include <random>
#include <span>
#include <variant>

#include "actors/kept_prompt.h"
#include "core/grammar/calls.h"
#include "core/job_limits.h"
#include "core/sample/logprobs.h"
#include "core/sample/steps.h"
#include "core/schedule/context_shift.h"
#include "core/text/answer/find_format.h"

namespace weir::actors {
namespace {

using core::bad_param;
using core::result;
using core::token_id;

using core::longest_bad_word;
using core::longest_breaker;
using core::longest_cache_salt;
using core::longest_deadline;
using core::longest_stop_string;
using core::most_bad_words;
using core::most_banned_bytes;
using core::most_banned_strings;
using core::most_breakers;
using core::most_listed_tokens;
using core::most_shifted_output;
using core::most_stop_strings;

// Replaces the default in `out` by the value in the request, if there is one. Error: the value is not in its
// range.
template <class To, class From>
result<void> take(const char* name, const core::number_range& range, const std::optional<From>& sent,
                  To& out) {
  if (!sent) return {};
  if (!range.holds(static_cast<double>(*sent)))
    return bad_param(name, "{} must be in {}{}, {}], not {}", name, range.above_low ? "(" : "[", range.low,
                     range.high, *sent);
  out = static_cast<To>(*sent);
  return {};
}

// `m`: null where the model is not known yet, nor what tokens it has.
result<void> check_id(const char* name, std::int64_t id, const served_model* m) {
  if (!m && (id < 0 || id > std::numeric_limits<token_id>::max()))
    return bad_param(name, "{}: {} is not a token id", name, id);
  if (m && (id < 0 || id >= static_cast<std::int64_t>(m->info.vocab_size)))
    return bad_param(name, "{}: token id {} is outside the vocabulary of {} (0 to {})", name, id, m->name,
                     m->info.vocab_size - 1);
  return {};
}

// A template that refuses a conversation, or fails on it, blames the client's field.
core::error blaming(core::error e, const request& r) {
  if (e.code == core::errc::invalid_param && e.param.empty()) e.param = r.input_param;
  return e;
}

core::jinja::limits limits_of_a_rendering(core::turn& at) {
  core::jinja::limits most;
  most.at = &at;
  most.deadline = at.now() + longest_rendering;
  return most;
}

result<void> check_room(const request& r, std::size_t prompt_tokens, const served_model& m) {
  if (prompt_tokens < m.context) return {};
  auto e = core::make_error(core::errc::prompt_too_long,
                            "prompt is too long: {} tokens > {} maximum; {}'s maximum context length is {} "
                            "tokens, one of them for the answer",
                            prompt_tokens, m.context - 1, m.name, m.context);
  e.param = r.input_param;
  return e;
}

// Each thread has one std::random_device. Constructing one executes CPUID, which on a virtual machine takes
// longer than everything else in this file.
std::uint64_t fresh_seed() {
  thread_local std::random_device device;
  const std::uint64_t low = device();
  return low | std::uint64_t{device()} << 32;
}

// In each take_field(), `m` is null where the model is not known yet, as in check_id().
template <class To, class From>
result<void> take_field(const core::sampling_field& f, const std::optional<From>& sent, To& out,
                        const served_model*) {
  return take(f.name, f.range, sent, out);
}

// A whole number, of which -1, where its range begins there, says that the field is off, as 0 does.
result<void> take_field(const core::sampling_field& f, const std::optional<std::int64_t>& sent,
                        std::uint32_t& out, const served_model*) {
  if (sent != -1 || f.range.low > -1) return take(f.name, f.range, sent, out);
  out = 0;
  return {};
}

result<void> take_field(const core::sampling_field& f,
                        const std::vector<std::pair<std::int64_t, double>>& sent,
                        core::shared_list<std::pair<token_id, float>>& out, const served_model* m) {
  if (sent.size() > most_listed_tokens)
    return bad_param(f.name, "{} has {} tokens; at most {} are taken", f.name, sent.size(),
                     most_listed_tokens);
  std::vector<std::pair<token_id, float>> checked;
  checked.reserve(sent.size());
  for (const auto& [id, value] : sent) {
    if (auto ok = check_id(f.name, id, m); !ok) return ok;
    if (!f.range.holds(value))
      return bad_param(f.name, "{} of token {} must be in [{}, {}], not {}", f.name, id, f.range.low,
                       f.range.high, value);
    checked.emplace_back(static_cast<token_id>(id), static_cast<float>(value));
  }
  out = std::move(checked);
  return {};
}

result<void> take_field(const core::sampling_field& f, const std::vector<std::int64_t>& sent,
                        core::token_set& out, const served_model* m) {
  std::vector<token_id> ids;
  ids.reserve(sent.size());
  for (const std::int64_t id : sent) {
    if (auto ok = check_id(f.name, id, m); !ok) return ok;
    ids.push_back(static_cast<token_id>(id));
  }
  core::token_set set(std::move(ids));
  if (set.size() > most_listed_tokens)
    return bad_param(f.name, "{} has {} different tokens; at most {} are taken", f.name, set.size(),
                     most_listed_tokens);
  out = std::move(set);
  return {};
}

// The tokens of item `i` of bad_words.
result<std::vector<token_id>> tokens_of(const core::sampling_field& f, std::size_t i,
                                        const std::vector<std::int64_t>& ids, const served_model* m) {
  if (ids.empty()) return bad_param(f.name, "{}[{}] has no token", f.name, i);
  std::vector<token_id> out;
  for (const std::int64_t id : ids) {
    if (auto ok = check_id(f.name, id, m); !ok) return ok.error();
    out.push_back(static_cast<token_id>(id));
  }
  return out;
}

// Where `sent` is a text, its tokens at the beginning of a text and behind a space, as in vLLM.
result<std::vector<std::vector<token_id>>> spellings_of(
    const core::sampling_field& f, std::size_t i,
    const std::variant<std::string, std::vector<std::int64_t>>& sent, const served_model* m) {
  std::vector<std::vector<token_id>> out;
  if (const auto* ids = std::get_if<std::vector<std::int64_t>>(&sent)) {
    auto tokens = tokens_of(f, i, *ids, m);
    if (!tokens) return tokens.error();
    out.push_back(std::move(*tokens));
    return out;
  }
  const auto& text = std::get<std::string>(sent);
  if (text.empty() || text.size() > longest_bad_word)
    return bad_param(f.name, "{}[{}] must have 1 to {} bytes, not {}", f.name, i, longest_bad_word,
                     text.size());
  if (!m) return out;
  for (const std::string& spelling : {text, " " + text}) {
    auto tokens = m->tokenizer->encode(spelling, {.add_special = false, .parse_special = false});
    const auto known = [&](token_id id) { return id >= 0 && id < static_cast<token_id>(m->info.vocab_size); };
    if (!tokens.empty() && std::ranges::all_of(tokens, known)) out.push_back(std::move(tokens));
  }
  return out;
}

result<void> take_field(const core::sampling_field& f,
                        const std::vector<std::variant<std::string, std::vector<std::int64_t>>>& sent,
                        core::shared_list<token_id>& out, const served_model* m) {
  if (sent.size() > most_bad_words)
    return bad_param(f.name, "{} has {} words; at most {} are taken", f.name, sent.size(), most_bad_words);
  std::vector<token_id> words;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const auto spellings = spellings_of(f, i, sent[i], m);
    if (!spellings) return spellings.error();
    for (const auto& tokens : *spellings) {
      words.push_back(static_cast<token_id>(tokens.size()));
      words.insert(words.end(), tokens.begin(), tokens.end());
    }
  }
  if (words.size() > 4 * most_listed_tokens)
    return bad_param(f.name, "{} has more than {} tokens", f.name, 4 * most_listed_tokens);
  out = std::move(words);
  return {};
}

// Only checked here: take_breakers() finds them where they are needed.
result<void> take_field(const core::sampling_field& f, const std::optional<std::vector<std::string>>& sent,
                        std::shared_ptr<const core::dry_breakers>&, const served_model*) {
  if (!sent) return {};
  if (sent->size() > most_breakers)
    return bad_param(f.name, "{} has {} texts; at most {} are taken", f.name, sent->size(), most_breakers);
  for (std::size_t i = 0; i < sent->size(); ++i)
    if (const std::size_t bytes = (*sent)[i].size(); bytes == 0 || bytes > longest_breaker)
      return bad_param(f.name, "{}[{}] must have 1 to {} bytes, not {}", f.name, i, longest_breaker, bytes);
  return {};
}

void take_breakers(const core::sampling_request& r, const served_model& m, core::sampling_params& s) {
  static const std::vector<std::string> usual{"\n", ":", "\"", "*"};
  if (s.dry_multiplier > 0)
    s.dry_sequence_breakers = m.breakers->find(r.dry_sequence_breakers.value_or(usual), *m.tokenizer,
                                               std::min(m.info.vocab_size, m.tokenizer->vocab_size()));
}

// Words of one token need no look at what came before them: they move to disallow_tokens.
void move_single_words(core::sampling_params& s) {
  std::vector<token_id> single, longer;
  for (std::size_t at = 0; at < s.bad_words.size();) {
    const auto size = static_cast<std::size_t>(s.bad_words[at]);
    const std::span word(s.bad_words.data() + at, size + 1);
    if (size == 1)
      single.push_back(word.back());
    else
      longer.insert(longer.end(), word.begin(), word.end());
    at += size + 1;
  }
  if (single.empty()) return;
  s.disallow_tokens = s.disallow_tokens.with(core::token_set(std::move(single)));
  s.bad_words = core::shared_list<token_id>(std::move(longer));
}

// Gives values that change nothing the default, by which samplers know that there is nothing to do.
void take_neutral(core::sampling_params& s) {
  const core::sampling_params neutral;
  if (s.top_n_sigma < 0) s.top_n_sigma = 0;  // off, as in llama.cpp
  if (s.typical_p == 0) s.typical_p = 1;     // off, as clients send it
  if (core::has_penalties(s)) return;
  s.repetition_range = neutral.repetition_range;
  s.repetition_decay = neutral.repetition_decay;
}

result<void> take_fields(const core::sampling_request& r, const served_model* m, core::sampling_params& s) {
  result<void> taken;
  core::visit_sampling([&](const core::sampling_field& f, auto sent, auto used) {
    if (taken) taken = take_field(f, r.*sent, s.*used, m);
  });
  if (taken && s.no_repeat_ngram_size == 1)
    return bad_param("no_repeat_ngram_size", "no_repeat_ngram_size must be 0 or at least 2, not 1");
  return taken;
}

result<void> take_sampling(const core::sampling_request& r, const served_model& m, core::sampling_params& s) {
  s = m.defaults;
  if (!r.seed) s.seed = fresh_seed();
  if (auto taken = take_fields(r, &m, s); !taken) return taken;
  if (r.top_p == 0) {  // no share at all: the likeliest token alone
    s.temperature = 0;
    s.top_p = 1;
  }
  take_neutral(s);
  move_single_words(s);
  take_breakers(r, m, s);
  return {};
}

result<void> take_stop_ids(const request& r, const served_model& m, core::job& j) {
  std::vector<token_id> ids;
  ids.reserve(r.stop_token_ids.size());
  for (auto id : r.stop_token_ids) {
    if (auto ok = check_id("stop_token_ids", id, &m); !ok) return ok;
    ids.push_back(static_cast<token_id>(id));
  }
  const core::token_set own(std::move(ids));
  j.ignore_eos = r.ignore_eos;
  j.stop_token_ids = r.ignore_eos ? own : own.with(m.info.stop_ids);
  if (j.min_tokens > 0 && j.stop_token_ids.below(m.info.vocab_size).size() == m.info.vocab_size)
    return bad_param("stop_token_ids",
                     "stop_token_ids and the model's own stop ids are all {} tokens of {}, and min_tokens "
                     "forbids them until there are {}: no token is left",
                     m.info.vocab_size, m.name, j.min_tokens);
  if (own.size() > most_listed_tokens)
    return bad_param("stop_token_ids", "stop_token_ids has {} different tokens; at most {} are taken",
                     own.size(), most_listed_tokens);
  return {};
}

result<void> take_stop_strings(const request& r, core::job& j) {
  const std::string stop(r.stop_param);
  if (r.stop.size() > most_stop_strings)
    return bad_param(stop, "{} has {} strings; at most {} are taken", stop, r.stop.size(), most_stop_strings);
  for (const auto& s : r.stop)
    if (s.empty() || s.size() > longest_stop_string)
      return bad_param(stop, "a string of {} must have 1 to {} bytes, not {}", stop, longest_stop_string,
                       s.size());
  j.stop = r.stop;
  j.shows_stop = r.shows_stop;
  return {};
}

result<void> take_banned_strings(const request& r, core::job& j) {
  if (!r.banned_strings) return {};
  auto all = banned_strings_of(*r.banned_strings);
  if (!all) return all.error();
  j.banned = *all;
  return {};
}

result<void> take_endings(const request& r, const served_model& m, core::job& j) {
  constexpr double most = std::numeric_limits<std::uint32_t>::max();
  j.max_tokens = m.max_tokens_default;
  if (auto ok = take("max_tokens", {1, most}, r.max_tokens, j.max_tokens); !ok) return ok;
  if (m.max_tokens && j.max_tokens > *m.max_tokens)
    return bad_param("max_tokens", "max_tokens must be at most {} with this model, not {}", *m.max_tokens,
                     j.max_tokens);
  if (auto ok = take("min_tokens", {0, most}, r.min_tokens, j.min_tokens); !ok) return ok;
  if (auto ok = take("max_repeats", {2, 1000}, r.max_repeats, j.max_repeats); !ok) return ok;
  if (j.min_tokens > j.max_tokens)
    return bad_param("min_tokens", "min_tokens is {}, more than max_tokens, {}", j.min_tokens, j.max_tokens);
  if (r.deadline && (r.deadline->count() <= 0 || *r.deadline > longest_deadline))
    return bad_param("deadline_ms", "deadline_ms must be in [1, {}], not {}", longest_deadline.count(),
                     r.deadline->count());
  if (auto ok = take_stop_ids(r, m, j); !ok) return ok;
  if (auto ok = take_stop_strings(r, j); !ok) return ok;
  return take_banned_strings(r, j);
}

result<void> take_overflow(const request& r, const served_model& m, core::job& j) {
  j.shifts = r.shifts;
  if (!r.shifts) return {};
  if (core::tokens_that_leave(m.context, 0) == 0)
    return bad_param("context_overflow",
                     "context_overflow: {}'s context of {} tokens is too small for \"shift\"", m.name,
                     m.context);
  if (j.max_tokens > most_shifted_output)
    return bad_param("max_tokens", "max_tokens must be at most {} with context_overflow \"shift\", not {}",
                     most_shifted_output, j.max_tokens);
  return {};
}

result<void> take_logprobs(const request& r, const served_model& m, core::job& j) {
  const core::number_range range{0, core::most_top_logprobs};
  if (r.top_logprobs) {
    j.top_logprobs = 0;
    if (auto ok = take(r.top_logprobs_param, range, r.top_logprobs, *j.top_logprobs); !ok) return ok;
  }
  if (!r.prompt_logprobs) return {};
  if (r.shifts)
    return bad_param("context_overflow", "context_overflow \"shift\" does not go with {}",
                     r.prompt_logprobs_param);
  j.prompt_logprobs = 0;
  if (auto ok = take(r.prompt_logprobs_param, range, r.prompt_logprobs, *j.prompt_logprobs); !ok) return ok;
  if (std::ranges::any_of(m.places, [](const auto& p) { return p->device == "sim"; }))
    return bad_param(r.prompt_logprobs_param, "{}: {} is simulated, and gives a prompt no probability",
                     r.prompt_logprobs_param, m.name);
  return {};
}

// What is asked of an answer beside its text: calls, and an end of reasoning. Empty where nothing is. `unmet`
// gets what cannot be done.
result<core::grammar::call_rules> rules_of(const request& r, const served_model& m, bool separate,
                                           constraint_warnings& unmet) {
  core::grammar::call_rules out;
  const auto& format = m.answers[r.tools.any()]->format();
  if (r.max_reasoning_tokens) {
    constexpr double most = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t tokens = 0;
    const auto name = r.max_reasoning_param.c_str();
    if (auto ok = take(name, {0, most}, r.max_reasoning_tokens, tokens); !ok) return ok.error();
    if (tokens < m.context || r.shifts) out.max_reasoning_tokens = tokens;  // else the context ends first
    if (!format.has_reasoning())
      unmet.push_back({name, fmt::format("no reasoning can be told from the answers of {}", m.name)});
  }
  // A constraint on the text alone needs no rules: the constraint is the whole answer.
  if (!r.tools.any() && !separate && !out.max_reasoning_tokens) return out;
  out.format = r.tools.any() ? format.calls.name : std::string_view();
  out.reasoning = format.reasoning;
  out.messages = format.messages;
  out.tools = r.tools;
  out.text = r.constraint;
  out.text_param = r.constraint_param;
  out.budget_param = r.max_reasoning_param;
  return out;
}

std::shared_ptr<const core::answer_plan> plan_of(const request& r,
                                                 std::shared_ptr<const core::known_format> format, bool calls,
                                                 bool begins_in_reasoning) {
  auto plan = std::make_shared<core::answer_plan>();
  plan->format = std::move(format);
  if (calls) plan->tools = r.tools.tools;
  plan->separate_reasoning = r.separate_reasoning;
  plan->begins_in_reasoning = begins_in_reasoning;
  plan->calls_only = r.tools.how == core::tool_wishes::choice::required;
  return plan;
}

}  // namespace

std::chrono::local_seconds local_now() {
  const std::time_t at = std::time(nullptr);
  std::tm there{};
  localtime_r(&at, &there);
  return std::chrono::local_seconds(std::chrono::seconds(at + there.tm_gmtoff));
}

result<prepared_request> prepare(const request& r, const served_model& m, core::turn& at,
                                 std::chrono::local_seconds now) {
  prepared_request out;
  const auto* said = std::get_if<core::conversation>(&r.input);
  if (!said) {
    if (!r.max_reasoning_tokens) return out;
    return bad_param(r.max_reasoning_param, "{} goes with messages, not with a raw prompt",
                     r.max_reasoning_param);
  }
  const bool calls = r.tools.any() && r.tools.how != core::tool_wishes::choice::none;
  const auto& known = m.answers[calls];
  if (!known || m.chat->fault()) return out;
  const auto& format = known->format();
  if (calls && !format.has_calls())
    return bad_param(r.tools_param, "{}: the chat template of {} has no known tool format", r.tools_param,
                     m.name);
  const bool separate = r.separate_reasoning && format.has_reasoning();
  if (separate && !r.show_reasoning)
    return bad_param("include_reasoning", "include_reasoning false is not supported yet");
  auto rules = rules_of(r, m, separate, out.unmet);
  if (!rules) return rules.error();
  const bool constrained = core::grammar::needs_constraint(*rules);
  if (!calls && !separate && !constrained) return out;
  auto made = m.chat->render(*said, now, limits_of_a_rendering(at), &out.notes);
  if (!made) return blaming(made.error(), r);
  rules->begins_in_reasoning = core::ends_in_reasoning(*made, format);
  if (calls || separate) out.answer = plan_of(r, known, calls, rules->begins_in_reasoning);
  if (constrained) {
    auto& whole = out.constraint.emplace();
    whole.what = core::grammar::constraint_text::kind::answer;
    whole.answer = std::make_shared<const core::grammar::call_rules>(std::move(*rules));
  }
  out.prompt = std::move(*made);
  return out;
}

result<void> check_sampling(const core::sampling_request& r) {
  core::sampling_params s;
  return take_fields(r, nullptr, s);
}

result<std::vector<std::string>> banned_strings_of(const std::vector<std::string>& asked) {
  constexpr const char* name = "banned_strings";
  if (asked.size() > most_banned_strings)
    return bad_param(name, "{} has {} strings; at most {} are taken", name, asked.size(),
                     most_banned_strings);
  std::vector<std::string> all = asked;
  std::size_t bytes = 0;
  for (std::string& s : all) {
    if (s.empty() || s.size() > longest_stop_string)
      return bad_param(name, "a string of {} must have 1 to {} bytes, not {}", name, longest_stop_string,
                       s.size());
    bytes += s.size();
    for (char& c : s)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (bytes > most_banned_bytes)
    return bad_param(name, "{} has {} bytes; at most {} are taken", name, bytes, most_banned_bytes);
  return all;
}

namespace {

// The number of tokens at the beginning of `prompt` that stay in a shifting context. A conversation is
// rendered again where prepare() did not keep its rendering.
result<std::uint32_t> kept_of(const request& r, const prepared_request& known,
                              const std::vector<token_id>& prompt, const served_model& m, core::turn& at,
                              std::chrono::local_seconds now) {
  const auto most = limits_of_a_rendering(at);
  const auto* said = std::get_if<core::conversation>(&r.input);
  if (!said) return kept_tokens(r, nullptr, prompt, m, most, now);
  if (known.prompt) return kept_tokens(r, &*known.prompt, prompt, m, most, now);
  const auto made = m.chat->render(*said, now, most);
  if (!made) return blaming(made.error(), r);
  return kept_tokens(r, &*made, prompt, m, most, now);
}

}  // namespace

core::error unwanted() { return core::make_error(core::errc::unavailable, "nobody waits for this any more"); }

result<std::vector<token_id>> prompt_of(const request& r, const prepared_request& known,
                                        const served_model& m, core::turn& at, std::chrono::local_seconds now,
                                        std::vector<std::string>* notes) {
  std::vector<token_id> ids;
  if (const auto* text = std::get_if<std::string>(&r.input)) {
    if (!text->empty())
      ids =
          m.tokenizer->encode(*text, {.add_special = r.add_special_tokens, .parse_special = true, .at = &at});
  } else if (const auto* said = std::get_if<core::conversation>(&r.input)) {
    auto made = known.prompt ? result<core::jinja::rendering>(*known.prompt)
                             : m.chat->render(*said, now, limits_of_a_rendering(at), notes);
    if (!made) return blaming(made.error(), r);
    if (known.prompt && notes) notes->insert(notes->end(), known.notes.begin(), known.notes.end());
    ids = m.tokenizer->encode_parts(core::parts_of(*made), &at);
  } else {
    ids = std::get<prompt_ids>(r.input);
    for (auto id : ids)
      if (auto ok = check_id(r.input_param.c_str(), id, &m); !ok) return ok.error();
  }
  if (!at.go_on()) return unwanted();
  if (ids.empty()) {
    if (!m.tokenizer->bos())
      return bad_param(r.input_param, "{} is empty, and {} has no BOS token to begin with", r.input_param,
                       m.name);
    ids.push_back(*m.tokenizer->bos());
  }
  for (auto id : ids)  // a tokenizer may know more ids than the model has rows for
    if (auto ok = check_id(r.input_param.c_str(), id, &m); !ok) return ok.error();
  return ids;
}

result<core::job> job_without_prompt(const request& r, const served_model& m) {
  core::job j;
  if (auto ok = take_sampling(r.sampling, m, j.sampling); !ok) return ok.error();
  if (auto ok = take_endings(r, m, j); !ok) return ok.error();
  if (auto ok = take_overflow(r, m, j); !ok) return ok.error();
  if (auto ok = take_logprobs(r, m, j); !ok) return ok.error();
  if (r.cache_salt.size() > longest_cache_salt)
    return bad_param("cache_salt", "cache_salt must have at most {} bytes, not {}", longest_cache_salt,
                     r.cache_salt.size());
  j.cache_salt = r.cache_salt;
  j.priority = r.priority.value_or(0);
  j.key = r.who.key;
  return j;
}

result<void> take_prompt(core::job& j, const request& r, const prepared_request& known, const served_model& m,
                         core::turn& at, std::chrono::local_seconds now, std::vector<std::string>* notes) {
  auto prompt = prompt_of(r, known, m, at, now, notes);
  if (!prompt) return prompt.error();
  if (auto ok = check_room(r, prompt->size(), m); !ok) return ok;
  if (r.token_healing.value_or(false) && prompt->size() > 1) {
    j.healing = core::healing_of(prompt->back(), *m.tokenizer, m.info.vocab_size);
    if (j.healing) prompt->pop_back();
  }
  j.prompt_ids = j.sampling.repetition_penalty != 1 ? core::token_set(*prompt) : core::token_set();
  if (r.shifts) {
    if (auto kept = kept_of(r, known, *prompt, m, at, now); kept)
      j.kept = *kept;
    else
      return kept.error();
  }
  j.prompt = std::move(*prompt);
  return {};
}

core::job choice_of(const core::job& all, const request& r, std::uint32_t index) {
  core::job j = all;
  j.sampling.choice = index;
  if (!r.sampling.seed) j.sampling.seed = fresh_seed();
  return j;
}

std::string prefix_salt(std::uint64_t owner, std::string_view chosen) {
  // All owners have the same length, so two different pairs cannot give the same salt.
  std::string salt(reinterpret_cast<const char*>(&owner), sizeof owner);
  return salt += chosen;
}

}  // namespace weir::actors
