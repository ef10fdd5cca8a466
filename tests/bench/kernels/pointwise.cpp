// pointwise.cpp — what a step does beside products and attention, for one row and for many; and what sharing
// costs.
//
//   bench_kernels_pointwise [threads]
//
// A row is small enough to stay in the nearest cache, as it does in a model.
#include <cmath>
#include <string>
#include <thread>

#include "kernels/cpu/team.h"
#include "kernels/ops.h"
#include "tests/bench/kernels/measure.h"

using namespace weir;
using namespace weir::kernels;

namespace {

void measure_team(unsigned threads) {
  team t(threads);
  const auto empty = [](std::uint32_t, unsigned) {};
  t.begin_step();
  const double hot = bench::seconds([&](std::size_t) {
    for (int i = 0; i < 1000; ++i) t.run(threads, empty);
  });
  t.end_step();
  const auto cold = [&](bool step) {
    std::vector<double> took;
    for (int i = 0; i < 200; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const auto start = std::chrono::steady_clock::now();
      if (step) t.begin_step();
      if (!step) t.run(threads, empty);
      took.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      if (step) t.end_step();
    }
    std::nth_element(took.begin(), took.begin() + 100, took.end());
    return took[100];
  };
  std::printf(
      "an empty job inside a step %.2f us; outside, the workers asleep, %.1f us; begin_step after sleep %.1f "
      "us\n\n",
      hot * 1e3, cold(false) * 1e6, cold(true) * 1e6);
}

struct width {
  const char* name;
  std::uint32_t hidden, inter, heads, head_dim, vocab;
};
constexpr width widths[] = {{"110M", 768, 2048, 24, 64, 32000}, {"8B", 4096, 14336, 40, 128, 128256}};

template <class Op>
void measure(const backend& b, const bench::limits& l, const std::string& name, const Op& op) {
  constexpr int times = 16;
  const double took = bench::seconds([&](std::size_t) {
    for (int i = 0; i < times; ++i) b.run(op);
  }, 0.1);
  bench::print_line(name.c_str(), took / times, traffic_of(op), l);
}

void measure_rows(const backend& b, const bench::limits& l, const width& w, std::uint32_t rows) {
  bench::floats x(std::size_t{rows} * 2 * w.inter), y(std::size_t{rows} * 2 * w.inter), weight(w.hidden);
  x.randomise();
  weight.randomise();
  bench::floats table(std::size_t{1000} * w.hidden / 2), cos(rows * w.head_dim / 2),
      sin(rows * w.head_dim / 2);
  std::vector<std::int32_t> ids(rows);
  for (std::uint32_t r = 0; r < rows; ++r) ids[r] = static_cast<std::int32_t>(r * 7919 % 1000);
  std::vector<std::uint32_t> positions(rows, 1234);
  std::vector<float> frequencies(w.head_dim / 2, 0.01f);
  const std::string of =
      std::string(", ") + w.name + ", " + std::to_string(rows) + (rows == 1 ? " row" : " rows");
  measure(b, l, "row_norm" + of, row_norm{x.data(), weight.data(), y.data(), rows, w.hidden, 1e-5f});
  measure(b, l, "rotary_angles" + of, rotary_angles{positions, frequencies, cos.data(), sin.data()});
  measure(
      b, l, "rotary" + of,
      rotary{y.data(), cos.data(), sin.data(), rows, w.heads * w.head_dim, w.heads, w.head_dim, w.head_dim});
  measure(b, l, "activate, silu" + of, activate{x.data(), y.data(), rows, w.inter});
  measure(b, l, "activate, gelu" + of, activate{x.data(), y.data(), rows, w.inter, activation::gelu});
  measure(b, l, "soft_cap" + of, soft_cap{x.data(), std::size_t{rows} * w.inter, 1, 30});
  measure(b, l, "add" + of, add{y.data(), x.data(), std::size_t{rows} * w.hidden});
  measure(b, l, "gather" + of,
          gather{matrix{table.data(), dtype::bf16, 1000, w.hidden}, ids, y.data()});
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned threads = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 2;
  const auto b = cpu_backend(threads);
  const auto l = bench::measure(*b);
  bench::print_header(l, threads);
  measure_team(threads);
  for (const width& w : widths)
    for (const std::uint32_t rows : {1u, 8u, 64u, 512u}) {
      b->begin_step(b->self);
      measure_rows(*b, l, w, rows);
      b->end_step(b->self);
    }
}
