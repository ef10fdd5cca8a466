// prefix_trace.cpp — how many of a trace's prompt tokens the prefix cache would have found, by the size of
// the pool.
//
//   bench_engine_prefix_trace TRACE.jsonl
//
// The trace is Mooncake's (FAST'25): lines {"timestamp","input_length","output_length","hash_ids":[…]}, where
// each id stands for 512 tokens of the prompt. It goes through the pool and the tree that the engine uses,
// one request after the other; an infinite pool is the last line. Output: CSV, pages of 64 tokens and the
// share of tokens found.
#include <array>
#include <boost/json.hpp>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "core/cache/page_pool.h"

using namespace weir::core;

namespace {

constexpr std::uint32_t block_tokens = 512, pages_a_block = block_tokens / page_tokens;

std::vector<std::vector<std::int64_t>> read_trace(const char* path) {
  std::ifstream in(path);
  std::vector<std::vector<std::int64_t>> all;
  for (std::string line; std::getline(in, line);) {
    const auto request = boost::json::parse(line);
    auto& ids = all.emplace_back();
    for (const auto& id : request.at("hash_ids").as_array()) ids.push_back(id.to_number<std::int64_t>());
  }
  return all;
}

struct found {
  std::uint64_t pages = 0, of = 0, refused = 0;
};

found replay(const std::vector<std::vector<std::int64_t>>& trace, std::uint32_t pages) {
  page_pool pool(pages);
  found f;
  std::vector<page_id> table;
  std::array<token_id, page_tokens> ids;
  for (const auto& blocks : trace) {
    const std::uint32_t wanted = static_cast<std::uint32_t>(blocks.size()) * pages_a_block;
    if (wanted > pages) {
      ++f.refused;
      continue;
    }
    page_name last = root_name("", "f32");
    for (std::uint32_t i = 0; i < wanted; ++i) {
      ids.fill(static_cast<token_id>(blocks[i / pages_a_block]));
      ids[0] = static_cast<token_id>(i % pages_a_block);
      const page_name name = name_of(last, ids);
      page_id p = pool.names().find(name, ids);
      if (p == no_page) {
        p = pool.take();
        pool.name(p, table.empty() ? no_page : table.back(), last, name, ids);
      } else {
        pool.share(p);
        ++f.pages;
      }
      ++f.of;
      table.push_back(p);
      last = name;
    }
    for (; !table.empty(); table.pop_back()) pool.release(table.back());
  }
  return f;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: %s TRACE.jsonl\n", argv[0]), 2;
  const auto trace = read_trace(argv[1]);
  if (trace.empty()) return std::fprintf(stderr, "%s: no requests\n", argv[1]), 2;
  std::int64_t blocks = 0;
  for (const auto& ids : trace)
    for (const auto id : ids) blocks = std::max(blocks, id + 1);
  std::printf("pages,found,refused\n");
  const auto all = static_cast<std::uint32_t>(blocks) * pages_a_block;
  for (std::uint32_t pages = 2048; pages < all; pages *= 2) {
    const auto f = replay(trace, pages);
    std::printf("%u,%.4f,%llu\n", pages, double(f.pages) / double(f.of),
                static_cast<unsigned long long>(f.refused));
    std::fflush(stdout);
  }
  const auto f = replay(trace, all);
  std::printf("%u,%.4f,0\n", all, double(f.pages) / double(f.of));
}
