// draws.cpp — the draws of one step on a cuda device, for each way of choosing tokens: from the begin of the
// draws to their results on the host.
//
//   bench_draws [draws [vocabulary [microseconds of a step]]]
//
// Each line has the median, and its share of a step of that time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "core/model/device_draws.h"
#include "core/sample/pipeline.h"
#include "kernels/cuda/backend.h"
#include "tests/draws/launched_draws.h"

using namespace weir::core;

namespace {

// Rows in which a few tokens stand out, as they do where a model knows its text.
std::vector<float> rows_of(std::uint32_t count, std::uint32_t vocab) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> l(std::size_t{count} * vocab);
  for (std::size_t i = 0; i < std::size_t{32} * vocab && i < l.size(); ++i) l[i] = normal(random);
  for (std::size_t i = std::size_t{32} * vocab; i < l.size(); ++i) l[i] = l[i - std::size_t{32} * vocab];
  for (std::uint32_t row = 0; row < count; ++row)
    for (int i = 0; i < 20; ++i) l[std::size_t{row} * vocab + random() % vocab] += 12 + normal(random);
  return l;
}

double median_time(const sampling_params& p, std::uint32_t count, std::uint32_t vocab,
                   weir::tests::launched_draws& on) {
  sampler s(p, vocab, token_set(), {});
  device_draws conversion;
  std::vector<drawn> out(count);
  std::vector<double> took;
  for (std::uint32_t step = 0; step < 60; ++step) {
    std::vector<draw> draws;
    for (std::uint32_t i = 0; i < count; ++i)
      draws.push_back({.from = &s, .logits_row = i, .position = step * count + i});
    const auto start = std::chrono::steady_clock::now();
    if (!conversion.begin(on, draws) || !conversion.collect(on, out)) std::abort();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    if (step >= 10) took.push_back(time.count());
  }
  std::nth_element(took.begin(), took.begin() + 25, took.end());
  return took[25];
}

std::uint32_t number(int argc, char** argv, int at, std::uint32_t otherwise) {
  return argc > at ? static_cast<std::uint32_t>(std::atoi(argv[at])) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint32_t count = std::max(1u, number(argc, argv, 1, 256));
  const std::uint32_t vocab = std::max(100u, number(argc, argv, 2, 128256));
  const std::uint32_t step = number(argc, argv, 3, 0);
  std::string why;
  const auto b = weir::kernels::cuda_backend(0, why, false);
  if (!b) return std::printf("no device: %s\n", why.c_str()), 1;
  weir::tests::launched_draws on(weir::kernels::cuda::of(b->self), count, vocab);
  on.set(rows_of(count, vocab));
  sampling_params rare;
  rare.top_n_sigma = 3;
  rare.dynatemp_range = 0.5f;
  rare.smoothing_factor = 0.2f;
  rare.top_a = 0.001f;
  rare.typical_p = 0.95f;
  rare.tfs = 0.97f;
  rare.mirostat_mode = 2;
  rare.xtc_probability = 0.5f;
  sampling_params of_few = rare, usual{.top_k = 64, .top_p = 0.95f};
  of_few.top_k = 64;
  std::vector<std::pair<const char*, sampling_params>> ways{{"greedy", {.temperature = 0}},
                                                            {"temperature 1", {}},
                                                            {"top_k 64, top_p 0.95", usual},
                                                            {"top_k 64, all rare cuts", of_few},
                                                            {"all rare cuts", rare}};
  const auto add = [&](const char* name, auto member, auto value) {
    ways.emplace_back(name, sampling_params{}).second.*member = value;
  };
  add("top_n_sigma 1", &sampling_params::top_n_sigma, 1.0f);
  add("dynatemp_range 0.5", &sampling_params::dynatemp_range, 0.5f);
  add("smoothing_factor 0.2", &sampling_params::smoothing_factor, 0.2f);
  add("top_a 0.1", &sampling_params::top_a, 0.1f);
  add("typical_p 0.95", &sampling_params::typical_p, 0.95f);
  add("tfs 0.97", &sampling_params::tfs, 0.97f);
  add("mirostat_mode 1", &sampling_params::mirostat_mode, 1u);
  add("mirostat_mode 2", &sampling_params::mirostat_mode, 2u);
  add("xtc_probability 1", &sampling_params::xtc_probability, 1.0f);
  std::printf("%u draws over %u tokens\n%-28s %12s %10s\n", count, vocab, "", "us a step", "share");
  for (const auto& [name, p] : ways) {
    const double us = median_time(p, count, vocab, on);
    std::printf("%-28s %12.1f", name, us);
    if (step > 0) std::printf(" %9.2f%%", 100 * us / step);
    std::printf("\n");
  }
}
