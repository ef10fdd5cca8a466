// Keys, values and attention on the team. Slices are cut into blocks of rows, and each item of the team is
// one block with one tile of heads.
#include <algorithm>

#include "kernels/cpu/backend.h"

namespace weir::kernels {
namespace {

constexpr std::uint64_t worth_sharing = 1u << 14;  // workers share work that moves or reads this many bytes
constexpr std::uint32_t write_rows = 32;           // most rows of one item of kv_write

// The pages of a part. Attention is computed for each part by itself, and the parts are merged in order.
// Every row is computed so, alone or beside others, on one thread or on many; the parts may therefore go to
// different workers without changing a bit.
constexpr std::uint32_t part_pages = 8;

// Cuts every slice into blocks of at most `most` rows.
void cut_into_blocks(std::span<const kv_slice> slices, std::uint32_t most, std::vector<row_block>& blocks) {
  blocks.clear();
  for (std::uint32_t s = 0; s < slices.size(); ++s)
    for (std::uint32_t r = 0; r < slices[s].rows; r += most)
      blocks.push_back({s, r, std::min(most, slices[s].rows - r)});
}

// Writes the keys and values of a block's rows, of all heads. Inside a page, consecutive tokens of one head
// are consecutive in memory.
void write_block(const simd_kernels& simd, const kv_write& op, const row_block& block) {
  const kv_slice& slice = op.slices[block.slice];
  const std::uint32_t width = op.to.head_dim, tokens = op.to.page_tokens;
  auto *keys = static_cast<std::byte*>(op.to.keys), *values = static_cast<std::byte*>(op.to.values);
  for (std::size_t r = block.first; r < block.first + block.rows; ++r) {
    const std::size_t position = slice.position + r, from = (slice.first_row + r) * op.stride;
    const auto page = static_cast<std::size_t>(slice.pages[position / tokens]);
    const auto token = static_cast<std::uint32_t>(position % tokens);
    for (std::uint32_t head = 0; head < op.to.heads; ++head) {
      const std::uint64_t to = op.to.place(page, head);
      simd.store_kv(op.to, op.k + from + head * width, keys + to, token);
      simd.store_kv(op.to, op.v + from + head * width, values + to, token);
    }
  }
}

// One operation and its division into tiles and parts.
struct attention_job {
  cpu_state& cpu;
  const attention& op;
  std::uint32_t group;       // query heads of a key head
  std::uint32_t at_once;     // query heads of a group in one tile
  std::uint32_t tile_heads;  // tiles of a block: for each key head as many as its group needs
  std::uint32_t most_parts;  // the most parts of any block

  std::uint32_t parts_of(const row_block& block) const {
    const std::uint32_t tokens = op.kv.page_tokens * part_pages;
    return (op.slices[block.slice].position + block.first + block.rows + tokens - 1) / tokens;
  }

  // The tile of a block's rows and some query heads of one key head. Its queries are put into `list`.
  attention_tile tile(const row_block& block, std::uint32_t tile_head, attention_query* list,
                      float* scratch) const {
    const kv_slice& slice = op.slices[block.slice];
    const std::size_t width = op.kv.head_dim;
    const std::uint32_t tiles = tile_heads / op.kv.heads, head = tile_head / tiles;
    const std::uint32_t first = tile_head % tiles * at_once, some = std::min(at_once, group - first);
    attention_tile t;
    t.queries = list;
    t.count = std::size_t{block.rows} * some;
    t.kv = op.kv;
    t.pages = slice.pages;
    t.head = head;
    t.rule = op.rule;
    t.scratch = scratch;
    for (std::uint32_t i = 0; i < t.count; ++i) {
      const std::uint32_t r = block.first + i / some, query_head = head * group + first + i % some;
      const std::size_t row = slice.first_row + r;
      const std::uint32_t to = slice.position + r + 1;
      list[i] = {op.q + row * op.stride + query_head * width,
                 op.out + (row * op.heads + query_head) * width,
                 op.rule.first_seen(to - 1),
                 to,
                 op.rule.scale_at(to - 1),
                 op.sinks ? op.sinks + query_head : nullptr};
    }
    return t;
  }

  void attend_part(attention_tile& t, std::uint32_t part) const {
    const std::uint32_t pages = (t.queries[t.count - 1].to + t.kv.page_tokens - 1) / t.kv.page_tokens;
    t.first_page = part * part_pages;
    t.last_page = std::min(t.first_page + part_pages, pages);
    cpu.simd.attend(t);
  }

  // Computes the parts of a block one after the other.
  void attend_whole(std::uint32_t item, unsigned worker) const {
    const row_block& block = cpu.blocks[item / tile_heads];
    attention_query list[attention_tile::most_queries];
    float* scratch = cpu.attention_scratch[worker].data();
    attention_tile t = tile(block, item % tile_heads, list, scratch + 2 * sums_floats());
    const attention_sums all = sums_at(scratch), more = sums_at(scratch + sums_floats());
    std::uint32_t part = t.queries[0].from / (op.kv.page_tokens * part_pages);
    t.into = all;
    attend_part(t, part);
    for (t.into = more; ++part < parts_of(block);) {
      attend_part(t, part);
      cpu.simd.merge(all, more, t.count, op.kv.head_dim);
    }
    t.into = all;
    cpu.simd.finish(t);
  }

  // Computes one part of a block and keeps its sums in attention_parts.
  void attend_one(std::uint32_t item, unsigned worker) const {
    const row_block& block = cpu.blocks[item / most_parts / tile_heads];
    if (item % most_parts >= parts_of(block)) return;
    attention_query list[attention_tile::most_queries];
    attention_tile t =
        tile(block, item / most_parts % tile_heads, list, cpu.attention_scratch[worker].data());
    t.into = sums_at(cpu.attention_parts.data() + item * sums_floats());
    attend_part(t, item % most_parts);
  }

  void merge_parts(std::uint32_t item) const {
    const row_block& block = cpu.blocks[item / tile_heads];
    attention_query list[attention_tile::most_queries];
    attention_tile t = tile(block, item % tile_heads, list, nullptr);
    float* first = cpu.attention_parts.data() + std::size_t{item} * most_parts * sums_floats();
    t.into = sums_at(first);
    for (std::uint32_t part = 1; part < parts_of(block); ++part)
      cpu.simd.merge(t.into, sums_at(first + part * sums_floats()), t.count, op.kv.head_dim);
    cpu.simd.finish(t);
  }

  std::size_t sums_floats() const { return attention_tile::most_queries * (std::size_t{op.kv.head_dim} + 2); }
  attention_sums sums_at(float* place) const {
    float* largest = place + attention_tile::most_queries * std::size_t{op.kv.head_dim};
    return {place, largest, largest + attention_tile::most_queries};
  }

  // Runs the items. The items with the most work are usually the last ones, and the team takes the last ones
  // first.
  void run(bool shared) {
    const std::size_t floats = 2 * sums_floats() + attention_tile::scratch_floats(op.kv);
    for (auto& room : cpu.attention_scratch) room.room_for(floats);
    const auto items = static_cast<std::uint32_t>(cpu.blocks.size()) * tile_heads;
    const auto whole = [&](std::uint32_t item, unsigned worker) { attend_whole(item, worker); };
    if (!shared) return cpu.workers.run_here(items, whole);
    if (items >= 4 * cpu.workers.size() || most_parts == 1) return cpu.workers.run(items, whole);

    cpu.attention_parts.room_for(items * most_parts * sums_floats());
    cpu.workers.run(items * most_parts,
                    [&](std::uint32_t item, unsigned worker) { attend_one(item, worker); });
    cpu.workers.run(items, [&](std::uint32_t item, unsigned) { merge_parts(item); });
  }
};

}  // namespace

void cpu_kv_write(void* self, const kv_write& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  cut_into_blocks(op.slices, write_rows, cpu.blocks);
  std::uint64_t rows = 0;
  for (const kv_slice& slice : op.slices) rows += slice.rows;
  const auto blocks = static_cast<std::uint32_t>(cpu.blocks.size());
  const auto write = [&](std::uint32_t item, unsigned) { write_block(cpu.simd, op, cpu.blocks[item]); };
  if (2 * rows * op.to.heads * op.to.head_dim * sizeof(float) < worth_sharing)
    return cpu.workers.run_here(blocks, write);
  cpu.workers.run(blocks, write);
}

void cpu_attention(void* self, const attention& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  const std::uint32_t group = op.heads / op.kv.heads, most = attention_tile::most_queries;
  const std::uint32_t at_once = std::min(group, most), tiles = (group + at_once - 1) / at_once;
  attention_job job{cpu, op, group, at_once, op.kv.heads * tiles, 1};
  cut_into_blocks(op.slices, most / at_once, cpu.blocks);
  std::uint64_t read = 0;  // tokens: for each block all of its slice up to the slice's end
  for (const row_block& block : cpu.blocks) {
    job.most_parts = std::max(job.most_parts, job.parts_of(block));
    const kv_slice& slice = op.slices[block.slice];
    read += slice.position + slice.rows;
  }
  job.run(2 * read * op.kv.heads * op.kv.head_dim * sizeof(float) >= worth_sharing);
}

}  // namespace weir::kernels
