#include "kernels/cpu/products.h"

#include <algorithm>

#include "kernels/cpu/division.h"

namespace weir::kernels {

// One product and its division into shares, chunks, blocks and slices.
struct products::job {
  const linear& op;
  const product_path& path;
  std::size_t k, rows, blocks;
  std::size_t panels, panel_size;   // of the weights
  std::size_t parts, chunk_panels;  // shares of the panels; panels of a chunk
  std::size_t slice;                // elements of k of a slice
  bool packed;

  job(const linear& l, const product_path& p, std::size_t threads) : op(l), path(p) {
    k = op.w.cols, rows = op.rows;
    packed = op.w.order == layout::packed;
    blocks = divide_up(rows, path.most_rows);
    panels = panels_of(op.w.rows);
    panel_size = panel_bytes(op.w.type, k);
    const bool small = panels * panel_size * blocks < worth_sharing_bytes;
    parts = small ? 1 : std::min(threads, panels);
    const std::size_t per_share = divide_up(panels, parts);
    const std::size_t fits = panels_that_fit(panel_size);
    chunk_panels = !packed || blocks == 1 ? 1 : divide_up(per_share, divide_up(per_share, fits));
    slice = slice_of(path, op.w.type, blocks);
  }

  std::size_t first_row(std::size_t block) const { return first_row_of(block, rows, path, op.w.type); }
  std::size_t first_panel(std::size_t share) const { return start_of(share, panels, parts); }
  const std::byte* panel(std::size_t i) const {
    return static_cast<const std::byte*>(op.w.data) + i * panel_size;
  }
};

void products::multiply(const linear& op, const product_path& path, team& workers) {
  if (op.rows == 0) return;
  const job j(op, path, workers.size());
  prepare(j, workers);
  share_out(j);
  remember(op.w);
  for (worker& w : workers_) {
    w.sums.room_for(j.chunk_panels * path.most_rows * panel_rows);
    if (!j.packed) w.panel.room_for(j.panel_size);
  }
  if (j.parts == 1) return work(j, 0);
  workers.run(static_cast<std::uint32_t>(j.parts), [&](std::uint32_t, unsigned worker) { work(j, worker); });
}

// Prepares the blocks. A block begins where the prepared rows before it end.
void products::prepare(const job& j, team& workers) {
  std::byte* to = prepared_.room_for(j.path.prepared_bytes(j.rows, j.k) + 64 * j.blocks);
  const std::uint32_t* inputs = j.op.w.inputs;
  const std::size_t width = j.op.w.width();
  float* ordered = inputs ? ordered_.room_for(j.rows * j.k) : nullptr;
  const auto one = [&](std::uint32_t block, unsigned) {
    const std::size_t first = j.first_row(block), n = j.first_row(block + 1) - first;
    const float* x = j.op.x + first * width;
    if (inputs) {
      float* rows = ordered + first * j.k;
      for (std::size_t r = 0; r < n; ++r)
        for (std::size_t c = 0; c < j.k; ++c) rows[r * j.k + c] = x[r * width + inputs[c]];
      x = rows;
    }
    j.path.prepare(x, n, j.k, to + j.path.prepared_bytes(first, j.k));
  };
  if (j.rows * j.k * sizeof(float) < worth_sharing_bytes)
    for (std::uint32_t b = 0; b < j.blocks; ++b) one(b, 0);
  else
    workers.run(static_cast<std::uint32_t>(j.blocks), one);
}

void products::share_out(const job& j) {
  const succession& s = successions_[reinterpret_cast<std::uintptr_t>(j.op.w.data) / 256 % remembered];
  const bool known = s.before == j.op.w.data && s.after.order == layout::packed;
  for (std::size_t i = 0; i < j.parts; ++i) {
    const std::size_t first = j.first_panel(i), last = j.first_panel(i + 1);
    shares_[i].last = static_cast<std::uint32_t>(divide_up(last - first, j.chunk_panels));
    shares_[i].then = nullptr;
    if (known)
      shares_[i].then =
          static_cast<const std::byte*>(s.after.data) +
          start_of(i, panels_of(s.after.rows), j.parts) * panel_bytes(s.after.type, s.after.cols);
    shares_[i].next.store(0, std::memory_order_relaxed);  // team::run() publishes it
  }
}

void products::remember(const matrix& w) {
  succession& s = successions_[reinterpret_cast<std::uintptr_t>(previous_) / 256 % remembered];
  s.before = previous_;
  s.after = w;
  previous_ = w.data;
}

// Does the worker's own share, then chunks of other shares that no worker has taken.
void products::work(const job& j, unsigned worker) {
  for (std::size_t i = 0; i < j.parts; ++i) {
    share& s = shares_[(worker + i) % j.parts];
    for (;;) {
      const std::uint32_t chunk = s.next.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= s.last) break;
      multiply_chunk(j, s, chunk, workers_[worker]);
    }
  }
}

void products::multiply_chunk(const job& j, const share& from, std::uint32_t chunk, worker& at) {
  const auto index = static_cast<std::size_t>(&from - shares_.data());
  const std::size_t end = j.first_panel(index + 1);
  const std::size_t first = j.first_panel(index) + chunk * j.chunk_panels;
  const std::size_t last = std::min(first + j.chunk_panels, end);
  const std::byte* w = j.panel(first);
  if (!j.packed) {
    pack_panel(j.op.w, first, at.panel.data(), j.path.codes);
    w = at.panel.data();
  }
  // With several blocks the next chunk is prefetched meanwhile, some lines before each tile.
  const bool more = last < end;
  const std::size_t slices = divide_up(j.k, j.slice);
  const std::byte* ahead = w + (last - first) * j.panel_size;
  const std::size_t lines = divide_up(j.panel_size / 64, j.blocks * slices) + 1;

  for (std::size_t b = 0; b < j.blocks; ++b) {
    const std::size_t row = j.first_row(b), rows = j.first_row(b + 1) - row;
    const std::byte* x = prepared_.data() + j.path.prepared_bytes(row, j.k);
    if (j.path.begin) j.path.begin(rows);
    for (std::size_t k = 0; k < j.k; k += j.slice) {
      const std::size_t n = std::min(j.slice, j.k - k);
      for (std::size_t p = first; p < last; ++p) {
        const std::size_t column = p * panel_rows;
        product_tile t;
        t.panel = w + (p - first) * j.panel_size + panel_bytes(j.op.w.type, k);
        t.type = j.op.w.type;
        t.x = x + j.path.prepared_bytes(rows, k);
        t.rows = rows;
        t.k = n;
        float* sums = at.sums.data() + (p - first) * rows * panel_rows;
        t.from = k == 0 ? nullptr : sums;
        t.to = sums;
        t.from_stride = t.to_stride = panel_rows;
        if (k + n == j.k && column + panel_rows <= j.op.w.rows) {
          t.to = j.op.out + row * j.op.stride() + column;
          t.to_stride = j.op.stride();
        }
        if (j.blocks == 1 && j.packed)
          t.next = more || k + n < j.k ? t.panel + panel_bytes(j.op.w.type, n) : from.then;
        else if (more && j.packed)
          for (std::size_t line = 0; line < lines; ++line, ahead += 64) __builtin_prefetch(ahead, 0, 2);
        j.path.multiply(t);
      }
    }
    if (j.path.end) j.path.end();
    finish(j, first, last, row, rows, at.sums.data());
  }
}

// Does what is left after all slices: copies outputs that do not fill a panel, and adds the bias.
void products::finish(const job& j, std::size_t first, std::size_t last, std::size_t row, std::size_t rows,
                      const float* sums) {
  for (std::size_t p = first; p < last; ++p) {
    const std::size_t column = p * panel_rows,
                      width = std::min<std::size_t>(panel_rows, j.op.w.rows - column);
    if (width == panel_rows && !j.op.bias) continue;
    for (std::size_t r = 0; r < rows; ++r) {
      float* out = j.op.out + (row + r) * j.op.stride() + column;
      if (width < panel_rows) std::copy_n(sums + ((p - first) * rows + r) * panel_rows, width, out);
      if (j.op.bias)
        for (std::size_t i = 0; i < width; ++i) out[i] += j.op.bias[column + i];
    }
  }
}

}  // namespace weir::kernels
