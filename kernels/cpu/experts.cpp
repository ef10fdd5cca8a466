#include "kernels/cpu/experts.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/cpu/backend.h"
#include "kernels/cpu/division.h"
#include "kernels/cpu/packing.h"

namespace weir::kernels {
namespace {

constexpr std::size_t most_prepared = 32u << 20;  // bytes of a wave's activations
constexpr std::size_t units_a_thread = 4;         // at least, where experts are large enough
constexpr std::size_t line_bytes = 64;
constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

std::size_t whole_lines(std::size_t bytes) { return divide_up(bytes, line_bytes) * line_bytes; }

}  // namespace

struct expert_products::job {
  const expert_linear& op;
  const product_path& path;
  const std::size_t n = op.w.first.rows, k = op.w.first.cols;
  const std::size_t panels = panels_of(n), panel_size = panel_bytes(op.w.first.type, k);
  const bool packed = op.w.first.order == layout::packed;

  job(const expert_linear& o, const product_path& p) : op(o), path(p) {}

  const float* row(std::uint32_t slot) const { return op.x + slot / op.share * k; }
  const std::byte* panel(std::uint32_t expert, std::size_t i) const {
    return static_cast<const std::byte*>(op.w.of(expert).data) + i * panel_size;
  }
  std::size_t most_chunk() const { return packed ? panels_that_fit(panel_size) : 1; }
};

void expert_products::multiply(const expert_linear& op, const product_path& path, team& workers) {
  if (op.slots == 0) return;
  const job j(op, path);
  sort_slots(op);
  cut_into_blocks(j);
  remember(op);
  for (worker& w : workers_) {
    w.sums.room_for(j.most_chunk() * path.most_rows * panel_rows);
    w.rows.room_for(path.most_rows * j.k);
    if (!j.packed) w.panel.room_for(j.panel_size);
  }
  for (std::size_t first = 0; first < blocks_.size();) {
    const wave w = place_wave(j, first);
    run_wave(j, w, workers);
    first = w.last;
  }
}

// Sorts the slots by expert; those of one expert stay in their order.
void expert_products::sort_slots(const expert_linear& op) {
  ends_.assign(op.w.count + 1, 0);
  order_.resize(op.slots);
  for (std::uint32_t s = 0; s < op.slots; ++s) ++ends_[static_cast<std::uint32_t>(op.ids[s]) + 1];
  std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
  for (std::uint32_t s = 0; s < op.slots; ++s) order_[ends_[static_cast<std::uint32_t>(op.ids[s])]++] = s;
}

void expert_products::cut_into_blocks(const job& j) {
  blocks_.clear();
  std::uint32_t first = 0;
  for (std::uint32_t e = 0; e < j.op.w.count; ++e) {
    const std::uint32_t rows = ends_[e] - first;
    const std::size_t blocks = divide_up(rows, j.path.most_rows);
    for (std::size_t b = 0; b < blocks; ++b) {
      const auto from = static_cast<std::uint32_t>(first_row_of(b, rows, j.path, j.op.w.first.type));
      const auto to = static_cast<std::uint32_t>(first_row_of(b + 1, rows, j.path, j.op.w.first.type));
      blocks_.push_back({e, first + from, to - from});
    }
    first = ends_[e];
  }
}

// Gives the blocks from `first` on their places in prepared_, as many as a wave has. A row that several
// experts have by itself is prepared once.
expert_products::wave expert_products::place_wave(const job& j, std::size_t first) {
  const bool several = j.op.share > 1;
  if (several) alone_.assign(j.op.slots / j.op.share, nowhere);
  std::size_t bytes = 0, last = first;
  for (; last < blocks_.size(); ++last) {
    block& b = blocks_[last];
    std::size_t* alone = several && b.rows == 1 ? &alone_[order_[b.first] / j.op.share] : nullptr;
    b.shared = alone && *alone != nowhere;
    b.prepared = b.shared ? *alone : bytes;
    if (b.shared) continue;
    const std::size_t size = whole_lines(j.path.prepared_bytes(b.rows, j.k));
    if (last > first && bytes + size > most_prepared) break;
    if (alone) *alone = bytes;
    bytes += size;
  }
  prepared_.room_for(bytes);
  return {first, last, bytes};
}

void expert_products::run_wave(const job& j, const wave& w, team& workers) {
  const auto count = static_cast<std::uint32_t>(w.last - w.first);
  const auto one = [&](std::uint32_t i, unsigned by) { prepare(j, blocks_[w.first + i], workers_[by]); };
  if (w.bytes < worth_sharing_bytes)
    workers.run_here(count, one);
  else
    workers.run(count, one);
  make_pieces(j, w.first, w.last, workers.size());
  const std::size_t parts = share_out(j, workers.size());
  if (parts == 1) return work(j, 1, 0);
  workers.run(static_cast<std::uint32_t>(parts), [&](std::uint32_t, unsigned by) { work(j, parts, by); });
}

void expert_products::prepare(const job& j, const block& b, worker& at) {
  if (b.shared) return;
  const float* x = j.row(order_[b.first]);
  if (b.rows > 1) {
    for (std::uint32_t r = 0; r < b.rows; ++r)
      std::copy_n(j.row(order_[b.first + r]), j.k, at.rows.data() + r * j.k);
    x = at.rows.data();
  }
  j.path.prepare(x, b.rows, j.k, prepared_.data() + b.prepared);
}

// Makes pieces of the blocks [first, last). Where an expert has several blocks, its chunks stay in the L2
// cache for all of them; they are smaller where there would else be few units.
void expert_products::make_pieces(const job& j, std::size_t first, std::size_t last, std::size_t threads) {
  const std::size_t even = divide_up((last - first) * j.panels, units_a_thread * threads);
  pieces_.clear();
  units_ = 0;
  for (std::size_t at = first; at < last;) {
    piece p{blocks_[at].expert, static_cast<std::uint32_t>(at)};
    p.work_before = (at - first) * j.panels;
    p.first_unit = units_;
    for (; at < last && blocks_[at].expert == p.expert; ++at) ++p.blocks;
    const std::size_t most = std::min(j.most_chunk(), std::max<std::size_t>(1, even / p.blocks));
    if (p.blocks > 1) p.chunk = static_cast<std::uint32_t>(divide_up(j.panels, divide_up(j.panels, most)));
    units_ += static_cast<std::uint32_t>(divide_up(j.panels, p.chunk));
    pieces_.push_back(p);
  }
}

// Divides the units into shares of equal work, and returns their number.
std::size_t expert_products::share_out(const job& j, std::size_t threads) {
  const piece& end = pieces_.back();
  const std::size_t work = end.work_before + end.blocks * j.panels;
  const std::size_t parts =
      work * j.panel_size < worth_sharing_bytes ? 1 : std::min<std::size_t>(threads, units_);
  std::size_t i = 0;
  std::uint32_t first = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t until = start_of(part + 1, work, parts);
    while (i + 1 < pieces_.size() && pieces_[i + 1].work_before <= until) ++i;
    const piece& p = pieces_[i];
    const std::size_t panel = (until - p.work_before) / p.blocks;
    share& s = shares_[part];
    s.last = part + 1 == parts ? units_ : p.first_unit + static_cast<std::uint32_t>(panel / p.chunk);
    s.then = start_of_next(j, part, parts);
    s.next.store(first, std::memory_order_relaxed);  // team::run() publishes it
    first = s.last;
  }
  return parts;
}

// Where the worker with share `part` begins in the second product of these experts, if that is known and the
// experts have one block each.
const std::byte* expert_products::start_of_next(const job& j, std::size_t part, std::size_t parts) const {
  const succession& s = successions_[reinterpret_cast<std::uintptr_t>(j.op.w.first.data) / 256 % remembered];
  if (j.op.share == 1 || s.before != j.op.w.first.data) return nullptr;
  if (pieces_.size() != blocks_.size() || s.after.first.order != layout::packed) return nullptr;
  const std::size_t panels = panels_of(s.after.first.rows);
  const std::size_t at = start_of(part, pieces_.size() * panels, parts);
  return static_cast<const std::byte*>(s.after.of(pieces_[at / panels].expert).data) +
         at % panels * panel_bytes(s.after.first.type, s.after.first.cols);
}

// A product whose slots share rows of x is an expert's first one; the second has a row for each slot.
void expert_products::remember(const expert_linear& op) {
  if (op.share == 1 && previous_) {
    succession& s = successions_[reinterpret_cast<std::uintptr_t>(previous_) / 256 % remembered];
    s.before = previous_;
    s.after = op.w;
  }
  previous_ = op.share > 1 ? op.w.first.data : nullptr;
}

// Does the worker's own share, then units of other shares that no worker has taken.
void expert_products::work(const job& j, std::size_t parts, unsigned worker) {
  for (std::size_t i = 0; i < parts; ++i) {
    share& s = shares_[(worker + i) % parts];
    for (;;) {
      const std::uint32_t unit = s.next.fetch_add(1, std::memory_order_relaxed);
      if (unit >= s.last) break;
      multiply_unit(j, unit, unit + 1 < s.last ? panels_of_unit(j, unit + 1) : s.then, workers_[worker]);
    }
  }
}

const expert_products::piece& expert_products::piece_of(std::uint32_t unit) const {
  const auto behind = std::upper_bound(pieces_.begin(), pieces_.end(), unit,
                                       [](std::uint32_t u, const piece& p) { return u < p.first_unit; });
  return *(behind - 1);
}

// The first panel of a unit; null where the weights are rows.
const std::byte* expert_products::panels_of_unit(const job& j, std::uint32_t unit) const {
  if (!j.packed) return nullptr;
  const piece& p = piece_of(unit);
  return j.panel(p.expert, std::size_t{unit - p.first_unit} * p.chunk);
}

// `ahead`: what comes next, for prefetching; or null.
void expert_products::multiply_unit(const job& j, std::uint32_t unit, const std::byte* ahead, worker& at) {
  const piece& p = piece_of(unit);
  const std::size_t first = std::size_t{unit - p.first_unit} * p.chunk;
  const std::size_t last = std::min(first + p.chunk, j.panels);
  const std::byte* panels = j.panel(p.expert, first);
  if (!j.packed) {
    pack_panel(j.op.w.of(p.expert), first, at.panel.data(), j.path.codes);
    panels = at.panel.data();
  }
  const std::size_t share = whole_lines(divide_up((last - first) * j.panel_size, p.blocks));  // of a block
  for (std::uint32_t b = 0; b < p.blocks; ++b)
    multiply_block(j, p, blocks_[p.first_block + b], panels, first, last,
                   ahead && p.blocks > 1 ? ahead + b * share : ahead, at);
}

// Multiplies a block by panels [first, last). A single block prefetches while it multiplies. Several blocks
// prefetch some lines in front of each tile, each block its share of the next chunk.
void expert_products::multiply_block(const job& j, const piece& p, const block& b, const std::byte* panels,
                                     std::size_t first, std::size_t last, const std::byte* ahead,
                                     worker& at) {
  const dtype type = j.op.w.first.type;
  const std::byte* x = prepared_.data() + b.prepared;
  const std::size_t rows = b.rows, slice = slice_of(j.path, type, p.blocks);
  const std::size_t tiles = divide_up(j.k, slice) * p.blocks;
  const std::size_t lines = divide_up(j.panel_size / line_bytes, tiles);
  if (j.path.begin) j.path.begin(rows);
  for (std::size_t k = 0; k < j.k; k += slice) {
    const std::size_t n = std::min(slice, j.k - k);
    for (std::size_t i = first; i < last; ++i) {
      product_tile t;
      t.panel = panels + (i - first) * j.panel_size + panel_bytes(type, k);
      t.type = type;
      t.x = x + j.path.prepared_bytes(rows, k);
      t.rows = rows;
      t.k = n;
      t.to = at.sums.data() + (i - first) * rows * panel_rows;
      t.from = k == 0 ? nullptr : t.to;
      t.from_stride = t.to_stride = panel_rows;
      if (p.blocks == 1)
        t.next = k + n < j.k && j.packed ? t.panel + panel_bytes(type, n) : ahead;
      else if (ahead)
        for (std::size_t line = 0; line < lines; ++line, ahead += line_bytes) __builtin_prefetch(ahead, 0, 2);
      j.path.multiply(t);
    }
  }
  if (j.path.end) j.path.end();
  finish(j, b, first, last, at.sums.data());
}

// Writes the outputs of a block's slots, which lie anywhere, with the bias.
void expert_products::finish(const job& j, const block& b, std::size_t first, std::size_t last,
                             const float* sums) const {
  const float* bias = j.op.bias ? j.op.bias + b.expert * j.n : nullptr;
  for (std::size_t i = first; i < last; ++i) {
    const std::size_t column = i * panel_rows, width = std::min(panel_rows, j.n - column);
    for (std::size_t r = 0; r < b.rows; ++r) {
      const float* from = sums + ((i - first) * b.rows + r) * panel_rows;
      float* out = j.op.out + order_[b.first + r] * j.n + column;
      std::copy_n(from, width, out);
      if (bias)
        for (std::size_t c = 0; c < width; ++c) out[c] += bias[column + c];
    }
  }
}

void cpu_expert_linear(void* self, const expert_linear& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  cpu.experts.multiply(op, cpu.path_of(op.w.first.type), cpu.workers);
}

}  // namespace weir::kernels
