// sample.cpp — one token from a row of logits, for each way of choosing it.
//
//   bench_sample
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

#include "core/sample/pipeline.h"

using namespace weir::core;

namespace {

// A few tokens stand out, as they do where a model knows its text.
std::vector<float> logits_of(std::uint32_t vocab, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> l(vocab);
  for (float& x : l) x = normal(random);
  for (int i = 0; i < 20; ++i) l[random() % vocab] += 12.0f + normal(random);
  return l;
}

// The time that one in ten picks stays below, in microseconds.
double pick_time(const sampling_params& p, std::uint32_t vocab) {
  std::mt19937 random(1);
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < 16; ++i) rows.push_back(logits_of(vocab, random));
  sample_scratch scratch(vocab);
  const sampler s(p, vocab, {}, {.max_tokens = 100});
  std::vector<double> took;
  for (std::uint32_t i = 0; i < 400; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (!s.pick(rows[i % rows.size()], i, scratch)) std::abort();
    took.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(took.begin(), took.begin() + 40, took.end());
  return took[40];
}

}  // namespace

int main() {
  const struct {
    const char* name;
    sampling_params p;
  } ways[] = {{"greedy", {.temperature = 0}},
              {"temperature 1", {}},
              {"top_k 40", {.top_k = 40}},
              {"top_p 0.95", {.top_p = 0.95f}},
              {"min_p 0.05", {.min_p = 0.05f}},
              {"0.7, top_k 40, top_p 0.95, min_p 0.05",
               {.temperature = 0.7f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f}},
              {"2, top_p 0.999", {.temperature = 2, .top_p = 0.999f}}};
  std::printf("%-40s %12s %12s\n", "us a token", "32000", "128256");
  for (const auto& w : ways)
    std::printf("%-40s %12.1f %12.1f\n", w.name, pick_time(w.p, 32000), pick_time(w.p, 128256));
}
