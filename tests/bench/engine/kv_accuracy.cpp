// kv_accuracy.cpp — what storing keys and values in a smaller type does to a model: the perplexity of a text,
// how far each distribution of the next token is from the one with f32, and how many questions about
// something far back are answered right.
//
//   bench_engine_kv_accuracy MODEL TEXT [QUESTIONS]      (kv_texts.py makes such files)
//
// The text is cut into windows of 1,024 tokens, or of the model's context. Every type reads the same windows,
// 64 rows a step. A line of QUESTIONS is a prompt, a tab, and the answer; \n stands for a newline.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/model/load.h"
#include "core/text/tokenizer/tokenizer.h"

using namespace weir;
using namespace weir::core;

namespace {

constexpr std::uint32_t longest = 1024, rows = page_tokens;

struct account {
  std::unique_ptr<model> runs;
  const char* type;
  double loss = 0, divergence = 0, worst = 0;  // in nats: two sums over tokens, and the largest divergence
  std::uint64_t tokens = 0, same_best = 0, right = 0;
};

// log p of every token of the vocabulary.
std::vector<double> distribution(std::span<const float> logits) {
  double largest = logits[0], total = 0;
  for (const float x : logits) largest = std::max(largest, double{x});
  for (const float x : logits) total += std::exp(x - largest);
  std::vector<double> out;
  for (const float x : logits) out.push_back(x - largest - std::log(total));
  return out;
}

std::size_t best(const std::vector<double>& p) {
  return static_cast<std::size_t>(std::max_element(p.begin(), p.end()) - p.begin());
}

// Computes rows [at, at + count) of a window, all with logits.
void feed(model& m, std::span<const token_id> window, std::uint32_t at, std::uint32_t count) {
  std::vector<page_id> pages(pages_for(at + count));
  for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<page_id>(i);
  batch b;
  b.tokens.assign(window.begin() + at, window.begin() + at + count);
  b.slices.push_back({.rows = count, .position = at, .pages = pages, .scored = count});
  b.logits_rows = count;
  m.forward(b).value();
}

void judge(account& a, const std::vector<double>& p, const std::vector<double>& exact, token_id next) {
  double divergence = 0;
  for (std::size_t i = 0; i < p.size(); ++i) divergence += std::exp(exact[i]) * (exact[i] - p[i]);
  a.loss -= p[static_cast<std::size_t>(next)];
  a.divergence += divergence;
  a.worst = std::max(a.worst, divergence);
  a.same_best += best(p) == best(exact);
  ++a.tokens;
}

void read_window(std::vector<account>& all, std::span<const token_id> window) {
  const auto length = static_cast<std::uint32_t>(window.size()) - 1;  // nothing follows the last token
  for (std::uint32_t at = 0; at < length; at += rows) {
    const std::uint32_t count = std::min(rows, length - at);
    for (account& a : all) feed(*a.runs, window, at, count);
    for (std::uint32_t r = 0; r < count; ++r) {
      const auto exact = distribution(all.front().runs->logits(r));
      for (account& a : all) judge(a, distribution(a.runs->logits(r)), exact, window[at + r + 1]);
    }
  }
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool newline = text.substr(i, 2) == "\\n";
    out += newline ? '\n' : text[i];
    i += newline ? 1 : 0;
  }
  return out;
}

// The likeliest tokens behind `ids` until a stop id, as text. Empty where the prompt is too long.
std::string answer(model& m, const tokenizer& words, std::vector<token_id> ids) {
  constexpr std::size_t most = 48;
  const std::size_t prompt = ids.size();
  if (prompt + most > m.info().context) return {};
  std::string out;
  for (std::uint32_t at = 0; ids.size() < prompt + most;) {
    const auto count = std::min(rows, static_cast<std::uint32_t>(ids.size()) - at);
    feed(m, ids, at, count);
    at += count;
    if (at < ids.size()) continue;
    const auto next = static_cast<token_id>(best(distribution(m.logits(count - 1))));
    if (std::ranges::count(m.info().stop_ids, next)) break;
    ids.push_back(next);
    out += words.token_bytes(next);
  }
  return out;
}

std::uint64_t ask(std::vector<account>& all, const tokenizer& words, const char* file) {
  std::ifstream in(file);
  std::uint64_t asked = 0;
  for (std::string line; std::getline(in, line); ++asked) {
    const auto tab = line.find('\t');
    const auto ids = words.encode(unescaped(std::string_view(line).substr(0, tab)), {});
    for (account& a : all)
      a.right += answer(*a.runs, words, ids) == unescaped(std::string_view(line).substr(tab + 1));
  }
  return asked;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "bench_engine_kv_accuracy MODEL TEXT [QUESTIONS]\n"), 2;
  const std::string path = argv[1];
  const auto words = load_tokenizer(path).value();
  std::ifstream in(argv[2]);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const auto ids = words->encode(text, {});
  std::vector<account> all;
  for (const char* type : {"f32", "bf16", "fp8", "q8"}) {
    auto m = load_model(path, make_backend("cpu", 2).value(), {}, parse_kv_type(type).value()).value();
    all.push_back({std::move(m.weights), type});
    all.back().runs->allocate_pages(pages_for(all.back().runs->info().context)).value();
  }
  const std::size_t window = std::min(longest, all.front().runs->info().context);
  for (std::size_t at = 0; at + 1 < ids.size(); at += window)
    read_window(all, std::span(ids).subspan(at, std::min(window, ids.size() - at)));
  const std::uint64_t asked = argc > 3 ? ask(all, *words, argv[3]) : 0;
  std::printf("%-6s %12s %12s %12s %12s %10s %8s\n", "type", "bytes/token", "perplexity", "mean KL",
              "largest KL", "same best", "right");
  for (const account& a : all) {
    const auto n = static_cast<double>(a.tokens);
    std::printf("%-6s %12.1f %12.5f %12.3e %12.3e %9.2f%% %8llu\n", a.type,
                static_cast<double>(a.runs->info().page_bytes) / page_tokens, std::exp(a.loss / n),
                a.divergence / n, a.worst, 100 * static_cast<double>(a.same_best) / n,
                static_cast<unsigned long long>(a.right));
  }
  std::printf("%llu tokens, %llu questions\n", static_cast<unsigned long long>(all.front().tokens),
              static_cast<unsigned long long>(asked));
}
