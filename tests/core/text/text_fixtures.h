// text_fixtures.h — tokenizers for tests: those of the data folder, and small ones made here.
#pragma once

#include <boost/json.hpp>

#include "core/text/tokenizer/tokenizer.h"
#include "tests/support/data.h"

namespace weir::tests {

using core::token_id;
using core::tokenizer;

inline boost::json::value read_json(const std::filesystem::path& path) {
  return boost::json::parse(read_file(path));
}

inline std::vector<token_id> to_ids(const boost::json::value& list) {
  std::vector<token_id> ids;
  for (const auto& id : list.as_array()) ids.push_back(static_cast<token_id>(id.as_int64()));
  return ids;
}

inline std::shared_ptr<const tokenizer> parsed(const boost::json::object& file,
                                               const std::string& config = "") {
  auto t = core::parse_tokenizer(boost::json::serialize(file), config);
  if (!t) throw std::runtime_error(t.error().message);
  return *t;
}

// One added token as tokenizer.json writes it.
inline boost::json::object added(token_id id, std::string_view content, bool special = true) {
  return {{"id", id}, {"content", content}, {"special", special}, {"normalized", false}};
}

inline boost::json::value json(std::string_view text) { return boost::json::parse(text); }

// A byte-level tokenizer.json: ids 0–255 are the bytes, then "he", "ll", "hell", "hello" and "Ġhello", then
// the control tokens <|im_start|> and <|im_end|>.
boost::json::object byte_level_file();
inline constexpr token_id im_start = 261, im_end = 262;

// A sentencepiece-like one: <unk> <s> </s>, the 256 byte pieces from 3 on, then "▁", letters and a few
// merges.
boost::json::object byte_fallback_file();

}  // namespace weir::tests
