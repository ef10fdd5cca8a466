#include "tests/bench/fleet/trace.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <unordered_set>

namespace weir::bench::fleet {

namespace {

constexpr std::uint32_t nothing = 0xFFFF'FFFF;

// The finaliser of splitmix64.
constexpr std::uint64_t mixed(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9;
  z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EB;
  return z ^ (z >> 31);
}

core::error wrong(const std::string& path, std::size_t line, const char* what) {
  return core::make_error(core::errc::invalid_param, "{}:{}: {}", path, line, what);
}

core::result<void> read_mooncake(const std::string& path, std::ifstream& in, trace& t) {
  std::size_t number = 0;
  std::vector<std::uint32_t> hashes;
  for (std::string line; std::getline(in, line);) {
    ++number;
    boost::system::error_code bad;
    const auto r = boost::json::parse(line, bad);
    if (bad || !r.is_object()) return wrong(path, number, "no JSON object");
    const auto at = r.at("timestamp").to_number<double>() / 1000;
    const auto input = r.at("input_length").to_number<std::uint32_t>();
    hashes.clear();
    for (const auto& id : r.at("hash_ids").as_array()) hashes.push_back(id.to_number<std::uint32_t>());
    if (hashes.size() != (input + trace::block_tokens - 1) / trace::block_tokens)
      return wrong(path, number, "hash_ids are not those of input_length tokens");
    add(t, at, input, std::max(1u, r.at("output_length").to_number<std::uint32_t>()), hashes);
  }
  return {};
}

// TIMESTAMP,ContextTokens,GeneratedTokens with a time of one day.
core::result<void> read_azure(const std::string& path, std::ifstream& in, trace& t) {
  std::string line;
  std::getline(in, line);
  std::size_t number = 1;
  double first = -1;
  while (std::getline(in, line)) {
    ++number;
    unsigned hours = 0, minutes = 0, input = 0, output = 0;
    double seconds = 0;
    if (std::sscanf(line.c_str(), "%*10s %u:%u:%lf,%u,%u", &hours, &minutes, &seconds, &input, &output) != 5)
      return wrong(path, number, "not TIMESTAMP,ContextTokens,GeneratedTokens");
    const double at = 3600.0 * hours + 60.0 * minutes + seconds;
    if (first < 0) first = at;
    add(t, at - first, std::max(1u, input), std::max(1u, output), {});
  }
  return {};
}

// Mooncake's conversations have one time for all requests of three seconds: they are spread until the next.
void spread_times(std::vector<traced_request>& all, double& length_s) {
  double usual = 0;
  for (std::size_t i = 0, end = 0; i < all.size(); i = end) {
    for (end = i; end < all.size() && all[end].at_s == all[i].at_s;) ++end;
    if (end < all.size()) usual = all[end].at_s - all[i].at_s;
    const double from = all[i].at_s, each = usual / static_cast<double>(end - i);
    for (std::size_t k = i; k < end; ++k) all[k].at_s = from + each * static_cast<double>(k - i);
    length_s = from + usual;
  }
}

}  // namespace

copy_key key_of(std::uint64_t copy) noexcept {
  return {mixed(2 * copy + 0x9E37'79B9'7F4A'7C15), mixed(2 * copy + 0xD1B5'4A32'D192'ED03)};
}

core::page_name trace::name_of(std::uint32_t request, copy_key copy, std::uint32_t page) const noexcept {
  if (!has_prefixes()) {
    const auto own = mixed((std::uint64_t{request} << 32 | page) + copy.lo);
    return {own ^ copy.hi, mixed(own)};
  }
  const auto block = blocks[requests[request].first_block + page / pages_a_block];
  const auto& name = names[std::size_t{block} * pages_a_block + page % pages_a_block];
  return {name.hi ^ copy.hi, name.lo ^ copy.lo};
}

void trace::read_ids(std::uint32_t request, copy_key copy, std::uint32_t page,
                     core::token_id* out) const noexcept {
  const auto block = has_prefixes() ? blocks[requests[request].first_block + page / pages_a_block] : request;
  std::fill_n(out, core::page_tokens, static_cast<core::token_id>(block));
  out[0] = static_cast<core::token_id>(page);
  out[1] = static_cast<core::token_id>(copy.lo & 0x7FFF'FFFF);
}

double trace::repeated() const {
  if (!has_prefixes()) return 0;
  std::unordered_set<std::uint32_t> seen;
  double found = 0, all = 0;
  for (const auto& r : requests) {
    all += r.input;
    const std::uint32_t whole = r.input / block_tokens;
    bool still = true;
    for (std::uint32_t i = 0; i < whole; ++i) {
      still = !seen.insert(blocks[r.first_block + i]).second && still;
      if (still) found += block_tokens;
    }
  }
  return all > 0 ? found / all : 0;
}

void add(trace& t, double at_s, std::uint32_t input, std::uint32_t output,
         const std::vector<std::uint32_t>& hashes) {
  t.requests.push_back({at_s, input, output, static_cast<std::uint32_t>(t.blocks.size())});
  t.blocks.insert(t.blocks.end(), hashes.begin(), hashes.end());
}

core::result<void> complete(trace& t) {
  spread_times(t.requests, t.length_s);
  if (!t.has_prefixes()) return {};
  const auto count = *std::ranges::max_element(t.blocks) + std::size_t{1};
  std::vector<std::uint32_t> before(count, nothing - 1);
  t.names.resize(count * trace::pages_a_block);
  t.again.resize(count);
  std::array<core::token_id, core::page_tokens> ids;
  for (std::uint32_t r = 0; r < t.requests.size(); ++r) {
    const auto size = (t.requests[r].input + trace::block_tokens - 1) / trace::block_tokens;
    std::uint32_t last = nothing;
    for (const auto block : std::span(t.blocks).subspan(t.requests[r].first_block, size)) {
      if (before[block] != nothing - 1 && before[block] != last)
        return core::make_error(core::errc::invalid_param, "{}: block {} follows more than one block", t.name,
                                block);
      core::page_name name = last == nothing ? core::root_name("", "bf16")
                                             : t.names[(std::size_t{last} + 1) * trace::pages_a_block - 1];
      for (std::uint32_t i = 0; before[block] != last && i < trace::pages_a_block; ++i) {
        std::ranges::fill(ids, static_cast<core::token_id>(block));
        ids[0] = static_cast<core::token_id>(i);
        t.names[std::size_t{block} * trace::pages_a_block + i] = name = core::name_of(name, ids);
      }
      t.again[block] = before[block] != nothing - 1;
      before[block] = last;
      last = block;
    }
  }
  return {};
}

core::result<trace> read_trace(const std::string& path) {
  std::ifstream in(path);
  if (!in) return core::make_error(core::errc::invalid_param, "{}: cannot be read", path);
  trace t;
  t.name = std::filesystem::path(path).stem();
  const bool lines = path.ends_with(".jsonl");
  auto ok = lines ? read_mooncake(path, in, t) : read_azure(path, in, t);
  if (ok) ok = complete(t);
  if (!ok) return ok.error();
  if (t.requests.empty()) return core::make_error(core::errc::invalid_param, "{}: no requests", path);
  return t;
}

}  // namespace weir::bench::fleet
