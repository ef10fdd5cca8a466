#include "core/model/load/strict_json.h"

#include <boost/json/basic_parser_impl.hpp>
#include <cmath>
#include <set>
#include <vector>

namespace weir::core {
namespace json = boost::json;
namespace {

constexpr std::size_t max_depth = 32;

// Watches a parse for an object that names one key twice: the document model would silently keep the last.
struct key_watcher {
  static constexpr auto max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);

  std::vector<std::set<std::string>> open;  // keys seen in each object that encloses the current place
  std::string key, repeated;

  bool on_object_begin(json::error_code&) { return open.emplace_back(), true; }
  bool on_object_end(std::size_t, json::error_code&) { return open.pop_back(), true; }
  bool on_key_part(json::string_view part, std::size_t, json::error_code&) { return key.append(part), true; }
  bool on_key(json::string_view part, std::size_t, json::error_code& ec) {
    key.append(part);
    if (!open.back().insert(key).second) {
      repeated = key;
      ec = json::error::syntax;
      return false;
    }
    return key.clear(), true;
  }
  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_array_end(std::size_t, json::error_code&) { return true; }
  bool on_string_part(json::string_view, std::size_t, json::error_code&) { return true; }
  bool on_string(json::string_view, std::size_t, json::error_code&) { return true; }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t, json::string_view, json::error_code&) { return true; }
  bool on_uint64(std::uint64_t, json::string_view, json::error_code&) { return true; }
  bool on_double(double, json::string_view, json::error_code&) { return true; }
  bool on_bool(bool, json::error_code&) { return true; }
  bool on_null(json::error_code&) { return true; }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }
};

std::string repeated_key(std::string_view text) {
  json::parse_options options;
  options.max_depth = max_depth;
  json::basic_parser<key_watcher> parser(options);
  json::error_code ec;
  parser.write_some(false, text.data(), text.size(), ec);
  return parser.handler().repeated;
}

}  // namespace

result<json::object> parse_strict_json(std::string_view text, std::string_view what) {
  json::parse_options options;
  options.max_depth = max_depth;
  json::error_code ec;
  json::value document = json::parse(text, ec, {}, options);
  if (ec) return make_error(errc::bad_file, "{}: not JSON: {}", what, ec.message());
  if (!document.is_object()) return make_error(errc::bad_file, "{}: not a JSON object", what);
  if (const std::string key = repeated_key(text); !key.empty())
    return make_error(errc::bad_file, "{}: '{}' is there twice", what, key);
  return std::move(document.get_object());
}

const json::value* json_reader::find(std::string_view key) const {
  const json::value* found = from_.if_contains(key);
  return found && !found->is_null() ? found : nullptr;
}

std::optional<std::string> json_reader::text(std::string_view key) {
  const json::value* v = find(key);
  if (!v) return std::nullopt;
  if (!v->is_string()) return fail_type(key, "a string"), std::nullopt;
  return std::string(v->get_string());
}

std::optional<bool> json_reader::boolean(std::string_view key) {
  const json::value* v = find(key);
  if (!v) return std::nullopt;
  if (!v->is_bool()) return fail_type(key, "true or false"), std::nullopt;
  return v->get_bool();
}

std::optional<double> json_reader::number(std::string_view key) {
  const json::value* v = find(key);
  if (!v) return std::nullopt;
  if (!v->is_number() || !std::isfinite(v->to_number<double>()))
    return fail_type(key, "a number"), std::nullopt;
  return v->to_number<double>();
}

std::optional<std::uint32_t> json_reader::count(std::string_view key, std::uint32_t limit) {
  const json::value* v = find(key);
  if (!v) return std::nullopt;
  json::error_code ec;
  const auto n = v->is_number() ? v->to_number<std::uint64_t>(ec) : 0;
  if (ec || n < 1 || n > limit)
    return fail_type(key, fmt::format("a whole number from 1 to {}", limit)), std::nullopt;
  return static_cast<std::uint32_t>(n);
}

std::optional<std::uint32_t> json_reader::required_count(std::string_view key, std::uint32_t limit) {
  if (!has(key)) fail(errc::bad_file, fmt::format("{}: '{}' is missing", what_, key));
  return count(key, limit);
}

void json_reader::fail(errc code, std::string message) {
  if (!failure_) failure_ = error{code, std::move(message), {}};
}

void json_reader::fail_type(std::string_view key, std::string_view wanted) {
  const std::string found = json::serialize(*find(key)).substr(0, 60);
  fail(errc::bad_file, fmt::format("{}: '{}' must be {}, not {}", what_, key, wanted, found));
}

}  // namespace weir::core
