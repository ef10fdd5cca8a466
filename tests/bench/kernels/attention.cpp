// attention.cpp — kv_write and attention over pages: prefills, decoding batches, and one long context.
//
//   bench_kernels_attention [threads [part of a name]]
//
// Each call takes the next of several layers, so that keys and values come from memory as they do in a model.
#include <cstring>
#include <numeric>
#include <string>

#include "kernels/ops.h"
#include "tests/bench/kernels/measure.h"

using namespace weir;
using namespace weir::kernels;

namespace {

constexpr std::uint32_t page_tokens = 64;

struct shape {
  const char* name;
  std::uint32_t heads, kv_heads, head_dim;
};
constexpr shape small{"12/12 heads of 64", 12, 12, 64}, one_b{"32/8 heads of 64", 32, 8, 64},
    eight_b{"32/8 heads of 128", 32, 8, 128};

std::string name_of(const shape& s, std::uint32_t sequences, std::uint32_t rows, std::uint32_t before) {
  return std::to_string(sequences) + " x " + std::to_string(rows) + " at " + std::to_string(before) + ", " +
         s.name;
}

// `sequences` of `rows` new tokens each behind `before` old ones.
class scene {
 public:
  scene(const shape& s, std::uint32_t sequences, std::uint32_t rows, std::uint32_t before)
      : shape_(s),
        stride_((s.heads + 2 * s.kv_heads) * s.head_dim),
        pages_((before + rows + page_tokens - 1) / page_tokens * sequences),
        half_(std::size_t{pages_} * page_tokens * s.kv_heads * s.head_dim),
        layers_(std::clamp<std::size_t>((std::size_t{1} << 26) / (2 * half_), 1, 64)),
        memory_(layers_ * 2 * half_),
        qkv_(std::size_t{sequences} * rows * stride_),
        out_(std::size_t{sequences} * rows * s.heads * s.head_dim),
        ids_(pages_) {
    memory_.randomise();
    qkv_.randomise();
    std::iota(ids_.begin(), ids_.end(), 0);
    std::shuffle(ids_.begin(), ids_.end(), std::minstd_rand(2));
    for (std::uint32_t i = 0; i < sequences; ++i)
      slices_.push_back({i * rows, rows, before, ids_.data() + pages_ / sequences * i});
  }

  kernels::attention attention(std::size_t call) {
    return {qkv_.data(), stride_, shape_.heads, pages(call), slices_, 0, 0.125f, out_.data()};
  }
  kernels::kv_write kv_write(std::size_t call) {
    const float* k = qkv_.data() + shape_.heads * shape_.head_dim;
    return {k, k + shape_.kv_heads * shape_.head_dim, stride_, pages(call), slices_};
  }

  void measure(const backend& b, const bench::limits& l, const std::string& name) {
    const double wrote = bench::seconds([&](std::size_t i) { b.run(kv_write(i)); });
    bench::print_line(("kv_write  " + name).c_str(), wrote, traffic_of(kv_write(0)), l);
    const double attended = bench::seconds([&](std::size_t i) { b.run(attention(i)); }, 0.5);
    bench::print_line(("attention " + name).c_str(), attended, traffic_of(attention(0)), l);
    const double both = bench::seconds([&](std::size_t i) {
      b.run(kv_write(i));
      b.run(attention(i));
    });
    traffic sum = traffic_of(kv_write(0));
    bench::print_line("      both", both, sum += traffic_of(attention(0)), l);
  }

 private:
  kv_pages pages(std::size_t call) {
    float* keys = memory_.data() + call % layers_ * 2 * half_;
    return {keys, keys + half_, shape_.kv_heads, shape_.head_dim, page_tokens};
  }

  shape shape_;
  std::uint32_t stride_, pages_;
  std::size_t half_, layers_;
  bench::floats memory_, qkv_, out_;
  std::vector<std::int32_t> ids_;
  std::vector<kv_slice> slices_;
};

}  // namespace

int main(int argc, char** argv) {
  const unsigned threads = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 2;
  const auto b = cpu_backend(threads);
  const auto l = bench::measure(*b);
  bench::print_header(l, threads);
  const struct {
    const shape& s;
    std::uint32_t sequences, rows, before;
  } scenes[] = {{small, 1, 512, 0},   {small, 1, 512, 3584}, {one_b, 1, 512, 0},  {eight_b, 1, 512, 1536},
                {small, 64, 1, 300},  {small, 8, 1, 300},    {one_b, 16, 1, 1000}, {small, 1, 1, 128},
                {small, 1, 1, 1000}, {eight_b, 1, 1, 4000}};
  for (const auto& c : scenes) {
    const std::string name = name_of(c.s, c.sequences, c.rows, c.before);
    if (argc < 3 || name.find(argv[2]) != name.npos)
      scene(c.s, c.sequences, c.rows, c.before).measure(*b, l, name);
  }
}
