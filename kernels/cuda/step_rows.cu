#include "kernels/cuda/step_rows.h"

#include <algorithm>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/spin.h"

namespace weir::kernels::cuda {
namespace {

constexpr unsigned copy_threads = 1024;  // of a block; enough reads at once to fill the link

__global__ void __launch_bounds__(copy_threads)
    copy_rows_kernel(const uint4* host, uint4* there, std::uint32_t* taken) {
  __shared__ uint4 head;
  if (threadIdx.x == 0) head = __ldcv(host);  // one thread: reads of one line wait for one another
  __syncthreads();
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x; i < head.x; i += copy_threads) there[i] = __ldcv(host + i);
  wait_for_previous();  // for the draws beside this kernel: they read their orders from pinned memory, too
  __syncthreads();
  if (threadIdx.x == 0) __stwt(taken, head.y);
}

// The number of pages of the slice's sequence up to its last row.
std::uint32_t pages_of(const kv_slice& s) { return (s.position + s.rows + page_tokens - 1) / page_tokens; }

}  // namespace

// The place of each array, in words from the head on. Arrays that are read as 16 bytes come first.
struct step_rows::places {
  std::size_t decode_rows, blocks, tokens, positions, pages_at, logits_from, listed, pages, end;

  places(const step_extent& e, std::size_t all_pages) {
    std::size_t at = sizeof(rows_head) / 4;
    const auto take = [&](std::size_t count) {
      at += count;
      return at - count;
    };
    decode_rows = take(std::size_t{e.entries} * 4);
    blocks = take(std::size_t{e.blocks} * 4);
    tokens = take(e.rows);
    positions = take(e.rows);
    pages_at = take(e.rows);
    logits_from = take(e.logits);
    listed = take(1);
    pages = take(all_pages);
    end = (at + 3) / 4 * 4;
  }
};

step_rows::step_rows(device& d, const head_shape& heads)
    : d_(d), heads_(heads), there_(d), host_(d, true), taken_(d, true) {
  taken_.reserve(sizeof(number_));
  if (taken_.holds(sizeof(number_))) *taken_.as<std::uint32_t>() = number_;
}

// Rows that are alone in their slice have a kernel of their own. On a deterministic device one kernel
// computes all rows, and the rows of products are padded to whole units.
step_extent step_rows::extent_of(const decoder_step& step, bool decoding) const {
  step_extent e;
  e.rows = static_cast<std::uint32_t>(step.tokens.size());
  e.logits = static_cast<std::uint32_t>(step.logits_from.size());
  e.block_lines = d_.deterministic && decoding ? 16 : 128;
  const std::uint32_t most = prefill_tokens(heads_, e.block_lines);
  std::uint64_t longest = 0, all = 0;  // of the contexts of decoding rows
  for (const kv_slice& s : step.slices) {
    if (s.rows == 1 && !d_.deterministic) {
      ++e.decodes;
      longest = std::max<std::uint64_t>(longest, s.position + 1);
      all += s.position + 1;
    } else {
      e.blocks += (s.rows + most - 1) / most;
    }
  }
  e.listed = lists_pay(d_, heads_, e.decodes, longest, all);
  if (d_.deterministic) {
    e.rows = whole_units(e.rows);
    e.logits = whole_units(e.logits);
    if (decoding) e.blocks = e.rows;
  } else if (decoding) {
    e.rows = e.logits = e.decodes = class_of_rows(e.rows);
  }
  e.entries = e.listed ? most_listed(d_, heads_, e.decodes) : e.decodes;
  return e;
}

void step_rows::fill(const decoder_step& step, const step_extent& e, const places& p) {
  auto* const host = host_.as<std::int32_t>();
  const std::uint32_t most = prefill_tokens(heads_, e.block_lines);
  const std::size_t real = step.tokens.size();
  std::fill_n(std::copy(step.tokens.begin(), step.tokens.end(), host + p.tokens), e.rows - real, 0);
  std::fill_n(std::copy(step.positions.begin(), step.positions.end(), host + p.positions), e.rows - real, 0);
  std::fill_n(host + p.pages_at + real, e.rows - real, -1);
  auto* const entries = reinterpret_cast<decode_row*>(host + p.decode_rows);
  auto* block = reinterpret_cast<prefill_block*>(host + p.blocks);
  singles_.clear();
  std::int32_t page = 0;
  for (const kv_slice& s : step.slices) {
    const std::uint32_t count = pages_of(s);
    std::copy_n(s.pages, count, host + p.pages + page);
    std::fill_n(host + p.pages_at + s.first_row, s.rows, page);
    const auto row = static_cast<std::int32_t>(s.first_row), position = static_cast<std::int32_t>(s.position);
    if (s.rows == 1 && e.decodes > 0) {
      singles_.push_back({row, position, page});
    } else {
      for (std::uint32_t i = 0; i < s.rows; i += most) {
        const auto begin = static_cast<std::int32_t>(i);
        *block++ = {row + begin, static_cast<std::int32_t>(std::min(most, s.rows - i)), position + begin,
                    page};
      }
    }
    page += static_cast<std::int32_t>(count);
  }
  if (e.listed) {
    host[p.listed] = static_cast<std::int32_t>(list_decodes(d_, heads_, singles_, entries));
  } else {
    std::copy(singles_.begin(), singles_.end(), entries);
    for (auto i = static_cast<std::int32_t>(singles_.size()); i < static_cast<std::int32_t>(e.decodes); ++i)
      entries[i] = {i, 0, -1};
  }
  // Long contexts first, so that the last blocks to run are short ones.
  auto* first = reinterpret_cast<prefill_block*>(host + p.blocks);
  while (block < first + e.blocks) *block++ = {0, 0, -1, 0};
  std::sort(first, block, [](const auto& a, const auto& b) { return a.position > b.position; });
  auto* from = std::copy(step.logits_from.begin(), step.logits_from.end(), host + p.logits_from);
  for (auto i = static_cast<std::int32_t>(step.logits_from.size()); i < static_cast<std::int32_t>(e.logits);
       ++i)
    *from++ = i;
}

bool step_rows::wait_taken() {
  const volatile std::uint32_t* taken = taken_.as<std::uint32_t>();
  return !d_.failed() && (!taken || spin_until(d_, [&] { return *taken == number_; }));
}

rows_view step_rows::write(const decoder_step& step, const step_extent& e, bool& moved) {
  std::size_t pages = 0;
  std::uint32_t context = 0;
  for (const kv_slice& s : step.slices) {
    pages += pages_of(s);
    if (s.rows > 1 || e.decodes == 0) context = std::max(context, s.position + s.rows);
  }
  const places p(e, pages);
  rows_view v{};
  moved = !holds(p.end) && reserve(2 * p.end);  // twice what is needed, as contexts grow
  if (!wait_taken() || !taken_.holds(sizeof(number_)) || !holds(p.end)) return v;

  fill(step, e, p);
  rows_head& head = *host_.as<rows_head>();
  head.units = static_cast<std::uint32_t>(p.end * 4 / sizeof(rows_head));
  head.number = ++number_;
  const auto* there = there_.as<std::int32_t>();
  v.tokens = there + p.tokens;
  v.positions = reinterpret_cast<const std::uint32_t*>(there + p.positions);
  v.pages_at = there + p.pages_at;
  v.decode_rows = reinterpret_cast<const decode_row*>(there + p.decode_rows);
  v.logits_from = there + p.logits_from;
  v.blocks = reinterpret_cast<const prefill_block*>(there + p.blocks);
  v.pages = there + p.pages;
  v.rows = e.rows;
  v.decodes = e.decodes;
  v.logits = e.logits;
  v.block_count = e.blocks;
  v.block_lines = e.block_lines;
  v.context = context;
  v.listed = e.listed ? there + p.listed : nullptr;
  return v;
}

// The step before reads its rows until it has ended, so the copy must start after that step. The copy waits
// for the step by itself or, with `beside`, runs beside the draws, which have waited for the step.
void step_rows::copy_in(bool beside) {
  const auto* from = host_.as<const uint4>();
  if (beside)
    return launch(d_, copy_rows_kernel, dim3(1), copy_threads, 0, from, there_.as<uint4>(),
                  taken_.as<std::uint32_t>());
  launch_after_all(d_, copy_rows_kernel, dim3(1), copy_threads, from, there_.as<uint4>(),
                   taken_.as<std::uint32_t>());
}

}  // namespace weir::kernels::cuda
