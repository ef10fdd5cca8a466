#include <algorithm>

#include "kernels/cpu/backend.h"

namespace weir::kernels {
namespace {

constexpr std::uint32_t block_rows = 16;           // of a prefill, for one worker at a time
constexpr std::uint64_t worth_sharing = 1u << 16;  // multiplications

// Keys are written along a page, which is how they lie: the strided side is the reading one.
void write_head(const kv_write& op, const kv_slice& slice, std::size_t head) {
  const std::size_t width = op.to.head_dim, tokens = op.to.page_tokens;
  for (std::size_t r = 0; r < slice.rows;) {
    const std::size_t position = slice.position + r, at = position % tokens;
    const std::size_t count =
        std::min<std::size_t>(tokens - at, slice.rows - r);  // rows that go to this page
    const auto page = static_cast<std::size_t>(slice.pages[position / tokens]);
    const std::size_t place = (page * op.to.heads + head) * tokens * width;
    const std::size_t from = (slice.first_row + r) * op.stride + head * width;
    for (std::size_t i = 0; i < width; ++i)
      for (std::size_t j = 0; j < count; ++j)
        op.to.keys[place + i * tokens + at + j] = op.k[from + j * op.stride + i];
    for (std::size_t j = 0; j < count; ++j)
      std::copy_n(op.v + from + j * op.stride, width, op.to.values + place + (at + j) * width);
    r += count;
  }
}

// Cuts every slice into blocks and says how many multiplications they make for one key head.
std::uint64_t cut_into_blocks(const attention& op, std::vector<attention_block>& blocks) {
  std::uint64_t pairs = 0;
  blocks.clear();
  for (std::uint32_t s = 0; s < op.slices.size(); ++s) {
    const kv_slice& slice = op.slices[s];
    for (std::uint32_t r = 0; r < slice.rows; r += block_rows)
      blocks.push_back({s, r, std::min(block_rows, slice.rows - r)});
    pairs += std::uint64_t{slice.rows} * (slice.position + slice.rows);
  }
  return pairs * (op.heads / op.kv.heads) * op.kv.head_dim;
}

// All queries of a block that share one key head, a tile at a time.
void attend_block(const simd_kernels& simd, const attention& op, const attention_block& block,
                  std::uint32_t head, float* scratch) {
  const kv_slice& slice = op.slices[block.slice];
  const std::uint32_t group = op.heads / op.kv.heads, width = op.kv.head_dim;
  attention_tile tile;
  tile.kv = op.kv;
  tile.pages = slice.pages;
  tile.head = head;
  tile.scale = op.scale;
  tile.scratch = scratch;
  const std::uint32_t queries = block.rows * group;
  for (std::uint32_t i = 0; i < queries; ++i) {
    const std::uint32_t r = block.first + i / group, query_head = head * group + i % group;
    const std::size_t row = slice.first_row + r;
    const std::uint32_t to = slice.position + r + 1;
    const std::uint32_t from = op.window != 0 && to > op.window ? to - op.window : 0;
    tile.queries[tile.count++] = {op.q + row * op.stride + query_head * width,
                                  op.out + (row * op.heads + query_head) * width, from, to};
    if (tile.count < attention_tile::most_queries && i + 1 < queries) continue;
    simd.attend(tile);
    tile.count = 0;
  }
}

}  // namespace

void cpu_kv_write(void* self, const kv_write& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  std::uint64_t rows = 0;
  for (const kv_slice& slice : op.slices) rows += slice.rows;
  const auto write = [&](std::uint32_t head, unsigned) {
    for (const kv_slice& slice : op.slices) write_head(op, slice, head);
  };
  if (rows * op.to.heads * op.to.head_dim >= worth_sharing) return cpu.workers.run(op.to.heads, write);
  for (std::uint32_t head = 0; head < op.to.heads; ++head) write(head, 0);
}

void cpu_attention(void* self, const attention& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  const std::uint64_t work = cut_into_blocks(op, cpu.attention_blocks) * op.kv.heads;
  const std::size_t floats = attention_tile::scratch_floats(op.kv);
  for (auto& scratch : cpu.attention_scratch)
    if (scratch.size() < floats) scratch.resize(floats);
  const auto attend = [&](std::uint32_t item, unsigned worker) {
    const attention_block& block = cpu.attention_blocks[item / op.kv.heads];
    attend_block(cpu.simd, op, block, item % op.kv.heads, cpu.attention_scratch[worker].data());
  };
  const auto items = static_cast<std::uint32_t>(cpu.attention_blocks.size()) * op.kv.heads;
  if (work >= worth_sharing) return cpu.workers.run(items, attend);
  for (std::uint32_t item = 0; item < items; ++item) attend(item, 0);
}

}  // namespace weir::kernels
