#if defined(WEIR_ONEDNN)

#include <omp.h>

#include <algorithm>
#include <array>
#include <dnnl.hpp>
#include <map>
#include <optional>
#include <vector>

#include "kernels/cpu/products.h"

namespace weir::kernels {
namespace {

// A batch is cut into blocks of these many rows; fewer than the last are not worth the library's
// preparations.
constexpr std::array<std::uint32_t, 3> block_sizes{128, 32, 16};
constexpr std::uint32_t piece_rows =
    128;  // of the weights: some hundred kilobytes, which stay in a core's cache
constexpr std::size_t alignment = 64;

// The library asks OpenMP how many threads to use; while this lives the answer on this thread is one.
class one_openmp_thread {
 public:
  one_openmp_thread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~one_openmp_thread() { omp_set_num_threads(before_); }
  one_openmp_thread(const one_openmp_thread&) = delete;
  one_openmp_thread& operator=(const one_openmp_thread&) = delete;

 private:
  int before_;
};

struct shape {
  std::uint32_t rows, k, n, out_stride;
  dtype type;  // of both inputs; the output is f32
  auto operator<=>(const shape&) const = default;
};

struct primitive {
  dnnl::matmul run;
  dnnl::memory::desc x, w, out, scratchpad;
};

std::optional<primitive> make_primitive(const shape& s, const dnnl::engine& engine) {
  using dnnl::memory;
  const auto in = s.type == dtype::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
  const memory::dim m = s.rows, k = s.k, n = s.n;
  const memory::desc x({m, k}, in, memory::dims{k, 1}), w({k, n}, in, memory::dims{1, k});
  const memory::desc out({m, n}, memory::data_type::f32, memory::dims{s.out_stride, 1});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // workers share primitives, not scratch
  try {
    const dnnl::matmul::primitive_desc d(dnnl::matmul::desc(x, w, out), attributes, engine);
    return primitive{dnnl::matmul(d), x, w, out, d.scratchpad_desc()};
  } catch (const dnnl::error&) {
    return std::nullopt;  // the library has no such product on this machine
  }
}

struct block {
  std::uint32_t first, rows;
};

template <class T>
void make_room(std::vector<T>& v, std::size_t count) {
  if (v.size() < count) v.resize(count);
}

// One worker's memory, and its own stream.
struct workplace {
  explicit workplace(const dnnl::engine& engine) : stream(engine) {}

  dnnl::stream stream;
  std::vector<float> widened;  // [piece_rows, k] weights that the library cannot read as they are
  std::vector<float> doubled;  // [2 * block, piece_rows] products with the high halves, then with the low
  std::vector<std::byte> scratchpad;
};

}  // namespace

struct products::impl {
  const dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  const bool fast_bf16 = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_bf16;
  std::map<shape, std::optional<primitive>> primitives;
  std::vector<workplace> workplaces;  // one a worker
  std::vector<std::uint16_t> halves;  // of x: for each block [high then low, rows, k]
  std::vector<block> blocks;

  // Null where the library has no such product. Found before the workers start: the map is the caller's
  // alone.
  const primitive* find(const shape& s) {
    auto at = primitives.find(s);
    if (at == primitives.end()) at = primitives.emplace(s, make_primitive(s, engine)).first;
    return at->second ? &*at->second : nullptr;
  }

  void execute(const primitive& p, const void* x, const void* w, float* out, workplace& at) const {
    make_room(at.scratchpad, p.scratchpad.get_size() + alignment);
    const auto address = reinterpret_cast<std::uintptr_t>(at.scratchpad.data());
    auto* scratch = reinterpret_cast<void*>((address + alignment - 1) / alignment * alignment);
    p.run.execute(at.stream, {{DNNL_ARG_SRC, {p.x, engine, const_cast<void*>(x)}},
                              {DNNL_ARG_WEIGHTS, {p.w, engine, const_cast<void*>(w)}},
                              {DNNL_ARG_DST, {p.out, engine, out}},
                              {DNNL_ARG_SCRATCHPAD, {p.scratchpad, engine, scratch}}});
  }

  std::uint32_t cut_into_blocks(std::uint32_t rows) {
    blocks.clear();
    std::uint32_t done = 0;
    for (const std::uint32_t size : block_sizes)
      for (; rows - done >= size; done += size) blocks.push_back({done, size});
    return done;
  }

  // Whether the library has every product that op needs, with inputs of `type`.
  bool prepare(const linear& op, dtype type) {
    const one_openmp_thread guard;
    const std::uint32_t n = op.w.rows, rest = n % piece_rows;
    for (const block& b : blocks)
      for (const std::uint32_t width : {std::min(n, piece_rows), rest})
        if (width != 0 && !find(shape_of(op, b, width, type))) return false;
    return true;
  }

  static shape shape_of(const linear& op, const block& b, std::uint32_t width, dtype type) {
    const bool doubled = type == dtype::bf16;
    return {doubled ? 2 * b.rows : b.rows, op.w.cols, width, doubled ? width : op.w.rows, type};
  }

  const primitive& prepared(const shape& s) const { return *primitives.at(s); }

  // A piece of the weights in f32, as stored or widened, against every block.
  void multiply_f32(const linear& op, const simd_kernels& simd, std::uint32_t first, std::uint32_t width,
                    workplace& at) const {
    const std::size_t k = op.w.cols;
    const auto* stored = static_cast<const std::byte*>(op.w.data) + first * k * size_of(op.w.type);
    const void* w = stored;
    if (op.w.type != dtype::f32) {
      make_room(at.widened, piece_rows * k);
      simd.widen(stored, op.w.type, at.widened.data(), width * k);
      w = at.widened.data();
    }
    for (const block& b : blocks) {
      float* out = op.out + std::size_t{b.first} * op.w.rows + first;
      execute(prepared(shape_of(op, b, width, dtype::f32)), op.x + b.first * k, w, out, at);
      if (!op.bias) continue;
      for (std::uint32_t r = 0; r < b.rows; ++r)
        simd.add(out + std::size_t{r} * op.w.rows, op.bias + first, width);
    }
  }

  // A piece of the weights in bf16 against both halves of every block.
  void multiply_bf16(const linear& op, const simd_kernels& simd, std::uint32_t first, std::uint32_t width,
                     workplace& at) const {
    const std::size_t k = op.w.cols;
    const auto* w = static_cast<const std::uint16_t*>(op.w.data) + first * k;
    make_room(at.doubled, 2 * block_sizes[0] * piece_rows);
    for (const block& b : blocks) {
      float* high = at.doubled.data();
      const float* low = high + std::size_t{b.rows} * width;
      execute(prepared(shape_of(op, b, width, dtype::bf16)), halves.data() + 2 * b.first * k, w, high, at);
      simd.add(high, low, std::size_t{b.rows} * width);
      for (std::uint32_t r = 0; r < b.rows; ++r) {
        float* row = high + std::size_t{r} * width;
        if (op.bias) simd.add(row, op.bias + first, width);
        std::copy_n(row, width, op.out + std::size_t{b.first + r} * op.w.rows + first);
      }
    }
  }

  void split_rows(const linear& op, std::uint32_t rows, const simd_kernels& simd, team& workers) {
    const std::size_t k = op.w.cols;
    make_room(halves, 2 * rows * k);
    workers.run(static_cast<std::uint32_t>(blocks.size()), [&](std::uint32_t item, unsigned) {
      const block& b = blocks[item];
      std::uint16_t* high = halves.data() + 2 * b.first * k;
      simd.split(op.x + b.first * k, high, high + b.rows * k, b.rows * k);
    });
  }
};

products::products(bool wanted) {
  if (!wanted) return;
  try {
    impl_ = std::make_unique<impl>();
  } catch (const dnnl::error&) {
    // No engine for this machine: every product is our own kernel's.
  }
}

products::~products() = default;

std::uint32_t products::multiply(const linear& op, const simd_kernels& simd, team& workers) {
  if (!impl_ || op.rows < block_sizes.back()) return 0;
  impl& lib = *impl_;
  const std::uint32_t rows = lib.cut_into_blocks(op.rows);
  const bool halved = op.w.type == dtype::bf16 && lib.fast_bf16 && lib.prepare(op, dtype::bf16);
  if (!halved && !lib.prepare(op, dtype::f32)) return 0;
  while (lib.workplaces.size() < workers.size()) lib.workplaces.emplace_back(lib.engine);
  if (halved) lib.split_rows(op, rows, simd, workers);
  workers.run((op.w.rows + piece_rows - 1) / piece_rows, [&](std::uint32_t item, unsigned worker) {
    const one_openmp_thread guard;
    const std::uint32_t first = item * piece_rows, width = std::min(piece_rows, op.w.rows - first);
    workplace& at = lib.workplaces[worker];
    halved ? lib.multiply_bf16(op, simd, first, width, at) : lib.multiply_f32(op, simd, first, width, at);
  });
  return rows;
}

}  // namespace weir::kernels

#endif
