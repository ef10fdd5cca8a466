#include "core/model/load/strict_json.h"

#include <cmath>

#include "core/read_json.h"

namespace weir::core {
namespace json = boost::json;
namespace {

constexpr std::size_t max_depth = 32;

}  // namespace

result<json::object> parse_strict_json(std::string_view text, std::string_view what) {
  auto document = read_json(text, {.depth = max_depth});
  if (!document) return make_error(errc::bad_file, "{}: {}", what, document.error().message);
  if (!document->is_object()) return make_error(errc::bad_file, "{}: not a JSON object", what);
  return std::move(document->get_object());
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

void not_supported(json_reader& in, std::string_view thing) {
  in.fail(errc::not_supported, fmt::format("{}: {} is not supported yet", in.what(), thing));
}

void bad(json_reader& in, std::string_view what) {
  in.fail(errc::bad_file, fmt::format("{}: {}", in.what(), what));
}

}  // namespace weir::core
