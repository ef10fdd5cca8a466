#include "kernels/cuda/step_rows.h"

#include <algorithm>
#include <iterator>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/spin.h"

namespace weir::kernels::cuda {
namespace {

constexpr std::uint32_t bringers = 1024;  // threads

constexpr std::uint32_t order_units = sizeof(draw_order) / 16;
static_assert(sizeof(draw_order) % 16 == 0 && sizeof(rows_head) == 16);

// One block whose threads ask the host for everything at once: for the first part of it before they know how much it is.
// The kernels of a step read their rows before they wait for each other: none of them may start until all of it is here.
__global__ void __launch_bounds__(bringers)
    bring_kernel(const int4* host_rows, int4* rows, const int4* host_orders, int4* orders, volatile std::uint32_t* taken) {
  const std::uint32_t t = threadIdx.x;
  const int4 head = __ldcv(host_rows), row = __ldcv(host_rows + t), order = __ldcv(host_orders + t);
  const auto row_units = static_cast<std::uint32_t>(head.x), all_orders = static_cast<std::uint32_t>(head.y) * order_units;
  wait_for_previous();
  if (t < row_units) rows[t] = row;
  if (t < all_orders) orders[t] = order;
#pragma unroll 4
  for (std::uint32_t i = t + bringers; i < row_units; i += bringers) rows[i] = __ldcv(host_rows + i);
  for (std::uint32_t i = t + bringers; i < all_orders; i += bringers) orders[i] = __ldcv(host_orders + i);
  __threadfence();
  __syncthreads();
  let_next_start();
  if (t == 0) *taken = static_cast<std::uint32_t>(head.z);
}

}  // namespace

step_rows::step_rows(device& d, const head_shape& heads)
    : d_(d), heads_(heads), there_(d), host_(d, true), taken_(d, true) {
  taken_.reserve(sizeof(std::uint32_t));
  if (taken_.as<std::uint32_t>()) *taken_.as<std::uint32_t>() = number_;
}

// Single rows have a kernel of their own, unless all rows must have the same bits in every company: then there is one
// kernel for all of them, and products of whole units.
step_extent step_rows::extent_of(const decoder_step& step, bool decoding) const {
  const auto up = [](std::size_t n) {
    return static_cast<std::uint32_t>((n + products::unit - 1) / products::unit * products::unit);
  };
  step_extent e;
  e.rows = static_cast<std::uint32_t>(step.tokens.size());
  e.logits = static_cast<std::uint32_t>(step.logits_from.size());
  e.block_lines = d_.deterministic && decoding ? 16 : 128;
  if (decoding && !d_.deterministic) {
    e.rows = e.logits = e.decodes = *std::lower_bound(std::begin(classes), std::end(classes), e.rows);
    return e;
  }
  const std::uint32_t most = prefill_tokens(heads_, e.block_lines);
  for (const kv_slice& s : step.slices) {
    if (s.rows == 1 && !d_.deterministic)
      ++e.decodes;
    else
      e.blocks += (s.rows + most - 1) / most;
  }
  if (d_.deterministic) {
    e.rows = up(e.rows);
    e.logits = up(e.logits);
    if (decoding) e.blocks = e.rows;
  }
  return e;
}

rows_view step_rows::write(const decoder_step& step, const step_extent& e, std::uint32_t draws, bool& moved) {
  std::size_t pages = 0;
  for (const kv_slice& s : step.slices) pages += (s.position + s.rows + page_tokens - 1) / page_tokens;
  const std::size_t fixed = 4 + std::size_t{e.rows} * 3 + std::size_t{e.decodes} * 4 + e.logits + std::size_t{e.blocks} * 4;
  // Twice what is needed: contexts grow. At least what is asked for unseen.
  moved = reserve(std::max<std::size_t>(2 * (fixed + pages + 3), 4 * bringers));
  const volatile auto* taken = taken_.as<std::uint32_t>();
  if (d_.failed() || !spin_until(d_, [&] { return *taken == number_; })) return {};

  auto* host = host_.as<std::int32_t>();
  std::size_t at = 4;
  const auto take = [&](std::size_t count) {
    at += count;
    return at - count;
  };
  // Those that are read as fours first.
  const std::size_t decode_at = take(std::size_t{e.decodes} * 4), blocks_at = take(std::size_t{e.blocks} * 4),
                    tokens_at = take(e.rows), positions_at = take(e.rows), row_pages_at = take(e.rows),
                    logits_at = take(e.logits), pages_at = take(pages);
  *host_.as<rows_head>() = {static_cast<std::uint32_t>((at + 3) / 4), draws, ++number_, 0};
  const auto view = [&](std::int32_t* base) {
    rows_view v{};
    v.tokens = base + tokens_at;
    v.positions = reinterpret_cast<const std::uint32_t*>(base + positions_at);
    v.pages_at = base + row_pages_at;
    v.decode_rows = reinterpret_cast<const decode_row*>(base + decode_at);
    v.logits_from = base + logits_at;
    v.blocks = reinterpret_cast<const prefill_block*>(base + blocks_at);
    v.pages = base + pages_at;
    v.rows = e.rows;
    v.decodes = e.decodes;
    v.logits = e.logits;
    v.block_count = e.blocks;
    v.block_lines = e.block_lines;
    return v;
  };
  fill(step, view(host));
  rows_view v = view(there_.as<std::int32_t>());
  for (const kv_slice& s : step.slices)
    if (s.rows > 1 || e.decodes == 0) v.context = std::max(v.context, s.position + s.rows);
  return v;
}

// What `host` points to is the host's own copy.
void step_rows::fill(const decoder_step& step, const rows_view& host) const {
  auto* tokens = const_cast<std::int32_t*>(host.tokens);
  auto* positions = const_cast<std::uint32_t*>(host.positions);
  auto* row_pages = const_cast<std::int32_t*>(host.pages_at);
  auto* pages = const_cast<std::int32_t*>(host.pages);
  auto* logits = const_cast<std::int32_t*>(host.logits_from);
  auto* single = const_cast<decode_row*>(host.decode_rows);
  auto* block = const_cast<prefill_block*>(host.blocks);
  const auto* singles = single;
  auto* first = block;
  const std::uint32_t most = prefill_tokens(heads_, host.block_lines);
  const std::size_t real = step.tokens.size();
  std::copy(step.tokens.begin(), step.tokens.end(), tokens);
  std::copy(step.positions.begin(), step.positions.end(), positions);
  std::fill(tokens + real, tokens + host.rows, 0);
  std::fill(positions + real, positions + host.rows, 0);
  std::fill(row_pages + real, row_pages + host.rows, -1);
  std::int32_t page = 0;
  for (const kv_slice& s : step.slices) {
    const std::uint32_t count = (s.position + s.rows + page_tokens - 1) / page_tokens;
    for (std::uint32_t i = 0; i < count; ++i) pages[i] = s.pages[i];
    pages += count;
    for (std::uint32_t i = 0; i < s.rows; ++i) row_pages[s.first_row + i] = page;
    if (s.rows == 1 && host.decodes > 0) {
      *single++ = {static_cast<std::int32_t>(s.first_row), static_cast<std::int32_t>(s.position), page, 0};
    } else {
      for (std::uint32_t i = 0; i < s.rows; i += most)
        *block++ = {static_cast<std::int32_t>(s.first_row + i), static_cast<std::int32_t>(std::min(most, s.rows - i)),
                    static_cast<std::int32_t>(s.position + i), page};
    }
    page += static_cast<std::int32_t>(count);
  }
  while (single < singles + host.decodes) *single = {static_cast<std::int32_t>(single - singles), 0, -1, 0}, ++single;
  // Long contexts first, so that the last blocks to run are short ones.
  while (block < first + host.block_count) *block++ = {0, 0, -1, 0};
  std::sort(first, block, [](const auto& a, const auto& b) { return a.position > b.position; });
  const std::size_t wanted = step.logits_from.size();
  std::copy(step.logits_from.begin(), step.logits_from.end(), logits);
  for (std::size_t i = wanted; i < host.logits; ++i) logits[i] = static_cast<std::int32_t>(i);
}

void step_rows::bring(const draw_order* host_orders, draw_order* orders) const {
  launch(d_, bring_kernel, dim3(1), bringers, 0, host_.as<const int4>(), there_.as<int4>(),
         reinterpret_cast<const int4*>(host_orders), reinterpret_cast<int4*>(orders), taken_.as<volatile std::uint32_t>());
}

}  // namespace weir::kernels::cuda
