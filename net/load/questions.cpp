#include "net/load/questions.h"

namespace weir::load {
namespace {

constexpr std::string_view words[] = {"the",  "a",    "to",   "of",   "and",  "in",    "is",   "it",  "you",
                                      "that", "he",   "was",  "for",  "on",   "are",   "with", "as",  "his",
                                      "they", "be",   "at",   "one",  "have", "this",  "from", "or",  "had",
                                      "by",   "not",  "but",  "some", "what", "there", "we",   "can", "out",
                                      "all",  "your", "when", "up",   "use",  "how",   "said", "an"};

// All words are random, also the first ones. Different prompts therefore share hardly any prefix, and a
// prefix cache does not help with a prompt that is new.
std::string made_prompt(std::uint64_t seed, std::uint32_t length) {
  std::mt19937_64 random(seed);
  std::string out;
  for (std::uint32_t i = 0; i < length; ++i) {
    if (i > 0) out += ' ';
    out += words[random() % std::size(words)];
  }
  return out;
}

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9E3779B97F4A7C15 + b;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace

std::optional<std::size_t> questions::prompt_of(std::uint64_t index) const {
  if (!o_.prompts.empty()) return index % o_.prompts.size();
  if (o_.distinct) return index % o_.distinct;
  return std::nullopt;
}

question questions::ask(std::uint64_t index) const {
  std::mt19937_64 random(mixed(o_.seed, index));
  question q;
  q.id = fmt::format("r{}", index);
  q.max_tokens = o_.max_tokens.draw(random);
  const auto shared = prompt_of(index);
  std::mt19937_64 of_prompt(mixed(o_.seed + 1, shared.value_or(index)));
  std::uint32_t length = o_.prompt_tokens.draw(of_prompt);
  if (!o_.lengths.requests.empty()) {
    const auto& r = o_.lengths.requests[index % o_.lengths.requests.size()];
    q.max_tokens = r.out;
    length = r.in;
  }
  q.prompt = o_.prompts.empty() ? made_prompt(of_prompt(), length) : o_.prompts[*shared];
  return q;
}

}  // namespace weir::load
