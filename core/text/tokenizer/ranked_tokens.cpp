#include "core/text/tokenizer/ranked_tokens.h"

#include <algorithm>

#include "core/text/base64.h"
#include "core/text/tokenizer/byte_level.h"

namespace weir::core {
namespace {

namespace json = boost::json;

constexpr std::size_t most_ranks = std::size_t{1} << 24;

json::value parts_of_rules(const ranked_tokens::rules& how) {
  const json::object bytes{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const json::object cut{{"type", "Split"},
                         {"pattern", {{"Regex", how.expression}}},
                         {"behavior", "Isolated"},
                         {"invert", false}};
  json::object out{{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", json::array{cut, bytes}}}},
                   {"decoder", bytes}};
  if (how.composes) out["normalizer"] = json::object{{"type", "NFC"}};
  return out;
}

}  // namespace

void ranked_tokens::add(std::string_view base64, std::size_t rank, const std::string& path) {
  const auto bytes = from_base64(base64);
  if (!bytes || bytes->empty()) bad_field(path, "its token is not base64");
  if (bytes->size() > most_piece_bytes)
    bad_field(path, fmt::format("its token has over {} bytes", most_piece_bytes));
  if (rank >= most_ranks) bad_field(path, fmt::format("its rank is not below {}", most_ranks));
  if (rank >= spelled_.size()) spelled_.resize(rank + 1);
  if (!spelled_[rank].empty()) bad_field(path, "its rank is there twice");
  append_byte_level(spelled_[rank], *bytes);
  if (!known_.insert(spelled_[rank]).second) bad_field(path, "its token is there twice");
}

void ranked_tokens::check(const std::string& path) const {
  const auto gap = std::ranges::find(spelled_, std::string());
  if (gap != spelled_.end()) bad_field(path, fmt::format("no token has rank {}", gap - spelled_.begin()));
  for (int b = 0; b < 256; ++b) {
    std::string spelled;
    append_byte_level(spelled, std::string(1, static_cast<char>(b)));
    if (!known_.contains(spelled)) bad_field(path, fmt::format("byte 0x{:02X} is no token", b));
  }
}

tokenizer_parts ranked_tokens::parts(const rules& how, const std::string& path) const {
  check(path);
  scored_pieces pieces;
  pieces.all.resize(how.first_id, {.kind = piece_kind::unused});
  for (const std::string& t : spelled_)
    pieces.all.push_back({t, -static_cast<double>(pieces.all.size()), piece_kind::normal});
  const json::value rules = parts_of_rules(how);
  return parts_of(json_field(rules, path), word_model(piece_bpe(pieces, true)));
}

}  // namespace weir::core
