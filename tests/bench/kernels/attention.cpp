// attention.cpp — kv_write and attention over pages: prefills, decoding batches, and long contexts with pages
// of every type.
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
  attention_rule rule{0, 0.125f};
};
constexpr shape small{"12/12 heads of 64", 12, 12, 64}, one_b{"32/8 heads of 64", 32, 8, 64},
    eight_b{"32/8 heads of 128", 32, 8, 128}, large{"16/8 heads of 256", 16, 8, 256},
    capped{"16/8 heads of 256, capped", 16, 8, 256, {0, 0.125f, 50}};

std::string name_of(const shape& s, std::uint32_t sequences, std::uint32_t rows, std::uint32_t before) {
  return std::to_string(sequences) + " x " + std::to_string(rows) + " at " + std::to_string(before) + ", " +
         s.name;
}

// `sequences` of `rows` new tokens each behind `before` old ones.
class scene {
 public:
  scene(const backend& b, const shape& s, std::uint32_t sequences, std::uint32_t rows, std::uint32_t before,
        kv_type type)
      : shape_(s),
        type_(type),
        stride_((s.heads + 2 * s.kv_heads) * s.head_dim),
        pages_((before + rows + page_tokens - 1) / page_tokens * sequences),
        half_(std::size_t{pages_} * page_tokens * s.kv_heads * kv_row_bytes(type, s.head_dim)),
        layers_(std::clamp<std::size_t>((std::size_t{1} << 28) / (2 * half_), 1, 256)),
        memory_(layers_ * 2 * half_ / sizeof(float)),
        qkv_(std::size_t{sequences} * rows * stride_),
        out_(std::size_t{sequences} * rows * s.heads * s.head_dim),
        ids_(pages_) {
    qkv_.randomise();
    std::iota(ids_.begin(), ids_.end(), 0);
    std::shuffle(ids_.begin(), ids_.end(), std::minstd_rand(2));
    for (std::uint32_t i = 0; i < sequences; ++i)
      slices_.push_back({i * rows, rows, before, ids_.data() + pages_ / sequences * i});
    for (std::size_t layer = 0; layer < layers_; ++layer) fill(b, layer);
  }

  kernels::attention attention(std::size_t call) {
    return {qkv_.data(), stride_, shape_.heads, pages(call), slices_, shape_.rule, out_.data()};
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
    std::byte* keys = reinterpret_cast<std::byte*>(memory_.data()) + call % layers_ * 2 * half_;
    return {keys, keys + half_, shape_.kv_heads, shape_.head_dim, page_tokens, type_};
  }

  // Writes the same random rows to all pages of a layer.
  void fill(const backend& b, std::size_t layer) {
    const std::uint32_t width = shape_.kv_heads * shape_.head_dim;
    bench::floats rows(std::size_t{page_tokens} * width);
    rows.randomise();
    for (std::uint32_t page = 0; page < pages_; ++page) {
      const kv_slice slice{0, page_tokens, page * page_tokens, ids_.data()};
      b.run(kernels::kv_write{rows.data(), rows.data(), width, pages(layer), {&slice, 1}});
    }
  }

  shape shape_;
  kv_type type_;
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
  } scenes[] = {{small, 1, 512, 0},     {small, 1, 512, 3584}, {one_b, 1, 512, 0},    {eight_b, 1, 512, 1536},
                {small, 64, 1, 300},    {small, 8, 1, 300},    {one_b, 16, 1, 1000},  {small, 1, 1, 128},
                {small, 1, 1, 1000},    {eight_b, 1, 1, 4000}, {large, 1, 512, 1536}, {large, 1, 1, 4000},
                {capped, 1, 512, 1536}, {capped, 1, 1, 4000}};
  const auto run = [&](const shape& s, std::uint32_t sequences, std::uint32_t rows, std::uint32_t before,
                       kv_type type) {
    const std::string title = name_of(s, sequences, rows, before) + ", " + name(type);
    if (argc < 3 || title.find(argv[2]) != title.npos)
      scene(*b, s, sequences, rows, before, type).measure(*b, l, title);
  };
  for (const auto& c : scenes) run(c.s, c.sequences, c.rows, c.before, kv_type::f32);
  for (const std::uint32_t before : {2047u, 8191u})
    for (const shape& s : {small, eight_b})
      for (const kv_type type : {kv_type::f32, kv_type::bf16, kv_type::fp8, kv_type::q8})
        run(s, 1, 1, before, type);
  for (const kv_type type : {kv_type::f32, kv_type::bf16, kv_type::fp8, kv_type::q8})
    run(eight_b, 1, 512, 1536, type);
}
