#include "core/model/token_ids.h"

namespace weir::core {
namespace json = boost::json;

std::vector<token_id> read_token_ids(json_reader& in, std::string_view key, std::uint32_t vocab_size) {
  const json::value* v = in.find(key);
  if (!v) return {};
  std::vector<token_id> ids;
  const auto take = [&](const json::value& item) {
    const bool whole = item.is_int64() && item.get_int64() >= 0 && item.get_int64() < vocab_size;
    if (whole) return ids.push_back(static_cast<token_id>(item.get_int64()));
    in.fail(errc::bad_file, fmt::format("{}: '{}' has {}, which is not a token id below vocab_size {}",
                                        in.what(), key, json::serialize(item).substr(0, 60), vocab_size));
  };
  if (!v->is_array()) {
    take(*v);
  } else {
    for (const json::value& item : v->get_array()) take(item);
  }
  return ids;
}

}  // namespace weir::core
