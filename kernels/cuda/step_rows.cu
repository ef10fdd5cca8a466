#include "kernels/cuda/step_rows.h"

#include <algorithm>
#include <iterator>

#include "kernels/cuda/products.h"

namespace weir::kernels::cuda {

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
  const std::uint32_t most = prefill_tokens(heads_, e.block_lines);
  std::uint64_t longest = 0, all = 0;  // tokens that those see who decode
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
    e.rows = up(e.rows);
    e.logits = up(e.logits);
    if (decoding) e.blocks = e.rows;
  } else if (decoding) {
    e.rows = e.logits = e.decodes = *std::lower_bound(std::begin(classes), std::end(classes), e.rows);
  }
  e.entries = e.listed ? most_listed(d_, heads_, e.decodes) : e.decodes;
  return e;
}

// Everything a step needs to know goes to the device in one copy.
rows_view step_rows::bring(const decoder_step& step, const step_extent& e, bool& moved) {
  const auto [rows, logits, decodes, entries, blocks, block_lines, listed] = e;
  std::size_t pages = 0;
  const std::uint32_t most = prefill_tokens(heads_, block_lines);
  for (const kv_slice& s : step.slices) pages += (s.position + s.rows + page_tokens - 1) / page_tokens;
  const std::size_t words = std::size_t{rows} * 3 + std::size_t{entries} * 4 + 1 + logits + std::size_t{blocks} * 4 + pages;
  moved = !holds(words) && reserve(2 * words);  // twice what is needed: contexts grow
  rows_view v{};
  if (!holds(words)) return v;
  // Whoever runs ahead waited for the step before the last, behind which this copy came: it is there, or will be at once.
  if (!d_.failed()) WEIR_CUDA(d_, cudaEventSynchronize(brought_));
  if (d_.failed()) return v;

  auto* host = host_.as<std::int32_t>();
  auto* there = there_.as<std::int32_t>();
  std::size_t at = 0;
  const auto take = [&](std::size_t count) {
    at += count;
    return at - count;
  };
  // Those that are read as fours first.
  const std::size_t decode_at = take(std::size_t{entries} * 4), blocks_at = take(std::size_t{blocks} * 4),
                    tokens_at = take(rows), positions_at = take(rows), row_pages_at = take(rows),
                    logits_at = take(logits), listed_at = take(1), pages_at = take(pages);
  for (std::uint32_t i = 0; i < rows; ++i) {
    const bool real = i < step.tokens.size();
    host[tokens_at + i] = real ? step.tokens[i] : 0;
    host[positions_at + i] = real ? static_cast<std::int32_t>(step.positions[i]) : 0;
    host[row_pages_at + i] = -1;
  }
  std::size_t page = 0;
  std::uint32_t context = 0;
  auto* const entry = reinterpret_cast<decode_row*>(host + decode_at);
  singles_.clear();
  auto* block = reinterpret_cast<prefill_block*>(host + blocks_at);
  for (const kv_slice& s : step.slices) {
    const std::size_t count = (s.position + s.rows + page_tokens - 1) / page_tokens;
    std::copy_n(s.pages, count, host + pages_at + page);
    for (std::uint32_t i = 0; i < s.rows; ++i)
      host[row_pages_at + s.first_row + i] = static_cast<std::int32_t>(page);
    if (s.rows == 1 && decodes > 0) {
      singles_.push_back({static_cast<std::int32_t>(s.first_row), static_cast<std::int32_t>(s.position),
                          static_cast<std::int32_t>(page)});
    } else {
      context = std::max(context, s.position + s.rows);
      for (std::uint32_t i = 0; i < s.rows; i += most)
        *block++ = {static_cast<std::int32_t>(s.first_row + i),
                    static_cast<std::int32_t>(std::min(most, s.rows - i)),
                    static_cast<std::int32_t>(s.position + i), static_cast<std::int32_t>(page)};
    }
    page += count;
  }
  if (listed) {
    host[listed_at] = static_cast<std::int32_t>(list_decodes(d_, heads_, singles_, entry));
  } else {
    std::copy(singles_.begin(), singles_.end(), entry);
    for (auto i = static_cast<std::int32_t>(singles_.size()); i < static_cast<std::int32_t>(decodes); ++i)
      entry[i] = {i, 0, -1};
  }
  // Long contexts first, so that the last blocks to run are short ones.
  auto* first = reinterpret_cast<prefill_block*>(host + blocks_at);
  while (block < first + blocks) *block++ = {0, 0, -1, 0};
  std::sort(first, block, [](const auto& a, const auto& b) { return a.position > b.position; });
  for (std::uint32_t i = 0; i < logits; ++i)
    host[logits_at + i] = i < step.logits_from.size() ? step.logits_from[i] : static_cast<std::int32_t>(i);
  WEIR_CUDA(d_, cudaMemcpyAsync(there, host, at * 4, cudaMemcpyHostToDevice, d_.stream));
  WEIR_CUDA(d_, cudaEventRecord(brought_, d_.stream));
  v.tokens = there + tokens_at;
  v.positions = reinterpret_cast<const std::uint32_t*>(there + positions_at);
  v.pages_at = there + row_pages_at;
  v.decode_rows = reinterpret_cast<const decode_row*>(there + decode_at);
  v.logits_from = there + logits_at;
  v.blocks = reinterpret_cast<const prefill_block*>(there + blocks_at);
  v.pages = there + pages_at;
  v.rows = rows;
  v.decodes = decodes;
  v.logits = logits;
  v.block_count = blocks;
  v.block_lines = block_lines;
  v.context = context;
  v.listed = listed ? there + listed_at : nullptr;
  return v;
}

}  // namespace weir::kernels::cuda
