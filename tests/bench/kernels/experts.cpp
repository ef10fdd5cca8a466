// The products of a mixture's experts beside the limits of the same run, and beside dense products that read
// as many weights as one row's experts have: the same memory, which is larger than the caches.
//
//   bench_kernels_experts [THREADS] [HIDDEN INTER EXPERTS CHOSEN] [TYPE...]
#include <cstring>
#include <string>
#include <utility>

#include "kernels/blocks.h"
#include "kernels/traffic.h"
#include "tests/bench/kernels/measure.h"

using namespace weir;
using namespace weir::kernels;
using weir::bench::floats;

namespace {

struct mixture {
  std::uint32_t hidden = 2048, inter = 768, experts = 128, chosen = 8;
};

// Matrices of all experts, which are copies of one. A matrix has a whole number of panels and of 256 bytes,
// so that the matrices of `chosen` experts that follow each other are one dense matrix, too.
struct weights {
  floats memory;
  expert_matrices all;

  weights(const backend& b, dtype type, std::uint32_t n, std::uint32_t k, std::uint32_t count)
      : memory(count * b.weight_bytes(b.self, type, n, k) / sizeof(float)),
        all{{memory.data(), type, n, k, layout::packed}, count, b.weight_bytes(b.self, type, n, k)} {
    std::vector<std::byte> rows(bytes_of(type, std::uint64_t{n} * k));
    if (is_plain(type))
      for (std::size_t i = 0; i < rows.size() / 2; ++i)  // bf16 and f16 near 1, and f32 of some size
        reinterpret_cast<std::uint16_t*>(rows.data())[i] =
            static_cast<std::uint16_t>(0x3c00 | (i * 40503 >> 4 & 0xff));
    else
      fill_random_blocks(rows.data(), type, std::uint64_t{n} * k, 1);
    auto* at = reinterpret_cast<std::byte*>(memory.data());
    b.do_pack(b.self, {rows.data(), type, n, k}, at);
    for (std::uint32_t e = 1; e < count; ++e) std::memcpy(at + e * all.stride, at, all.stride);
  }
  std::uint64_t bytes() const { return all.count * all.stride; }
};

// A layer's feed-forward, with room for `rows` rows.
struct layer {
  const backend& b;
  const mixture m;
  const weights gate_up, down;
  const std::uint32_t routers;  // as a model has one in each layer, and they are in no cache together
  floats router, x, wide, inner, made, out, weight;
  std::vector<std::int32_t> ids;
  std::minstd_rand random{7};

  layer(const backend& on, const mixture& of, dtype type, std::uint32_t rows)
      : b(on),
        m(of),
        gate_up(on, type, 2 * of.inter, of.hidden, of.experts),
        down(on, type, of.hidden, of.inter, of.experts),
        routers(64),
        router(std::size_t{routers} * of.experts * of.hidden),
        x(std::size_t{rows} * of.hidden),
        wide(std::size_t{rows} * of.chosen * 2 * of.inter),
        inner(std::size_t{rows} * of.chosen * of.inter),
        made(std::size_t{rows} * of.chosen * of.hidden),
        out(std::size_t{rows} * of.hidden),
        weight(std::size_t{rows} * of.chosen),
        ids(std::size_t{rows} * of.chosen) {
    router.randomise();
    x.randomise();
    inner.randomise();
  }

  // Chooses experts at random, and returns how many there are.
  std::uint32_t choose(std::uint32_t rows) {
    std::vector<bool> used(m.experts);
    for (std::uint32_t s = 0; s < rows * m.chosen;) {
      const auto id = static_cast<std::int32_t>(random() / 7 % m.experts);
      const auto row = ids.begin() + s / m.chosen * m.chosen;
      if (std::find(row, ids.begin() + s, id) != ids.begin() + s) continue;
      ids[s++] = id;
      used[static_cast<std::size_t>(id)] = true;
    }
    return static_cast<std::uint32_t>(std::count(used.begin(), used.end(), true));
  }

  expert_linear first(std::uint32_t rows) const {
    return {gate_up.all, nullptr, x.data(), ids.data(), wide.data(), rows * m.chosen, m.chosen};
  }
  expert_linear second(std::uint32_t rows) const {
    return {down.all, nullptr, inner.data(), ids.data(), made.data(), rows * m.chosen, 1};
  }
  route choice(std::uint32_t rows, std::int32_t* to) {
    const float* one = router.data() + std::size_t{random() / 7 % routers} * m.experts * m.hidden;
    route r{x.data(), one, nullptr, nullptr, {}, to, weight.data(), nullptr, rows, m.hidden};
    r.how.experts = m.experts, r.how.chosen = m.chosen;
    return r;
  }
  mix_experts sum(std::uint32_t rows) const {
    return {made.data(), weight.data(), nullptr, nullptr, out.data(), rows, m.hidden, m.chosen};
  }
  activate between(std::uint32_t rows) const { return {wide.data(), inner.data(), rows * m.chosen, m.inter}; }

  // A dense product that reads the matrices of `used` experts from `first` on, with `rows` rows.
  linear dense(const expert_linear& op, std::uint32_t first, std::uint32_t used, std::uint32_t rows) const {
    matrix w = op.w.of(first);
    w.rows *= used;
    return {w, nullptr, op.x, op.out, rows};
  }
  // The second product of a dense feed-forward that has the bytes of one row's experts.
  linear dense_down(std::uint32_t first) const {
    matrix w = down.all.of(first);
    w.cols *= m.chosen;
    return {w, nullptr, inner.data(), out.data(), 1};
  }
};

double timed(const auto& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The median of the speeds of experts, in units of dense products. pair(first) is the time of both, which
// follow each other; the experts from `first` on are the dense product's, of `used` in all.
template <class F>
double relative_speed(layer& l, std::uint32_t used, const F& pair) {
  std::vector<double> speeds;
  double sum = 0;
  while (speeds.size() < 5 || (speeds.size() < 400 && sum < 2)) {
    const auto first = static_cast<std::uint32_t>(l.random() / 7 % (l.m.experts - used + 1));
    l.b.begin_step(l.b.self);
    const auto [experts, dense] = pair(first);
    l.b.end_step(l.b.self);
    speeds.push_back(dense / experts);
    sum += experts + dense;
  }
  std::nth_element(speeds.begin(), speeds.begin() + std::ptrdiff_t(speeds.size() / 2), speeds.end());
  return speeds[speeds.size() / 2];
}

// Both products beside dense ones with as many bytes, each with as many rows as an expert has on average.
void against_dense(layer& l, std::uint32_t rows) {
  const std::uint32_t used = l.choose(rows), average = (rows * l.m.chosen + used / 2) / used;
  const double speed = relative_speed(l, used, [&](std::uint32_t first) {
    l.choose(rows);
    const expert_linear a = l.first(rows), b = l.second(rows);
    const double experts = timed([&] { l.b.run(a), l.b.run(b); });
    return std::pair(experts, timed([&] {
                       l.b.run(l.dense(a, first, used, average)), l.b.run(l.dense(b, first, used, average));
                     }));
  });
  std::printf("%4u rows: %3u experts of %2u rows each, %.3f of the speed of dense products\n", rows, used,
              average, speed);
}

// The whole feed-forward of one row beside a dense one with as many bytes.
void against_dense_layer(layer& l) {
  std::vector<std::int32_t> unused(l.m.chosen);
  const double speed = relative_speed(l, l.m.chosen, [&](std::uint32_t first) {
    l.choose(1);
    const double experts = timed([&] {
      l.b.run(l.choice(1, unused.data())), l.b.run(l.first(1)), l.b.run(l.between(1)), l.b.run(l.second(1)),
          l.b.run(l.sum(1));
    });
    const activate one{l.wide.data(), l.inner.data(), 1, l.m.inter * l.m.chosen};
    return std::pair(experts, timed([&] {
                       l.b.run(l.dense(l.first(1), first, l.m.chosen, 1)), l.b.run(one),
                           l.b.run(l.dense_down(first));
                     }));
  });
  std::printf("a whole layer of one row: %.3f of the speed of a dense one with as many bytes\n", speed);
}

void measure_type(const backend& b, const mixture& m, dtype type, const bench::limits& machine) {
  constexpr std::uint32_t most = 512;
  layer l(b, m, type, most);
  std::printf("\n%s: %.0f MB of experts\n", name(type), double(l.gate_up.bytes() + l.down.bytes()) * 1e-6);
  against_dense_layer(l);
  for (const std::uint32_t rows : {1u, 2u, 8u, 64u, most}) {
    against_dense(l, rows);
    const auto line = [&](const char* what, const auto& op) {
      std::uint32_t used = 0;
      const double took = bench::seconds([&](std::size_t) {
        used = l.choose(rows);
        b.run(op);
      });
      bench::print_line((std::string(what) + ", " + std::to_string(rows) + " rows").c_str(), took,
                        traffic_of(op, used), machine);
    };
    line("  gate and up", l.first(rows));
    line("  down", l.second(rows));
    bench::print_line(("  route, " + std::to_string(rows) + " rows").c_str(),
                      bench::seconds([&](std::size_t) { b.run(l.choice(rows, l.ids.data())); }, 0.1),
                      traffic_of(l.choice(rows, l.ids.data())), machine);
    bench::print_line(("  mix, " + std::to_string(rows) + " rows").c_str(),
                      bench::seconds([&](std::size_t) { b.run(l.sum(rows)); }, 0.1), traffic_of(l.sum(rows)),
                      machine);
  }
}

}  // namespace

int main(int count, char** args) {
  const auto number = [&](int i, unsigned otherwise) {
    return count > i ? static_cast<unsigned>(std::atoi(args[i])) : otherwise;
  };
  const unsigned threads = number(1, 2);
  const mixture m{number(2, 2048), number(3, 768), number(4, 128), number(5, 8)};
  const auto cpu = cpu_backend(threads);
  std::printf("%s\n", std::string(cpu->name).c_str());
  const bench::limits machine = bench::measure(*cpu);
  bench::print_header(machine, threads);
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const auto type = static_cast<dtype>(i);
    const bool asked = std::any_of(args + std::min(count, 6), args + count,
                                   [&](const char* a) { return std::strcmp(a, name(type)) == 0; });
    if (asked || (count <= 6 && type == dtype::bf16)) measure_type(*cpu, m, type, machine);
  }
}
