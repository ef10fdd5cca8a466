#include "core/text/json_field.h"

#include <cmath>

namespace weir::core {

void bad_field(std::string_view path, std::string_view what) {
  throw refusal{make_error(errc::bad_file, "{}: {}", path, what)};
}

void unsupported(std::string_view path, std::string_view what) {
  throw refusal{make_error(errc::not_supported, "{}: {} is not supported yet", path, what)};
}

json_field json_field::at(std::string_view key) const {
  const boost::json::value* member = object().if_contains(key);
  if (member == nullptr) bad(fmt::format("'{}' is missing", key));
  return {*member, fmt::format("{}.{}", path_, key)};
}

std::optional<json_field> json_field::find(std::string_view key) const {
  const boost::json::value* member = object().if_contains(key);
  if (member == nullptr || member->is_null()) return std::nullopt;
  return json_field{*member, fmt::format("{}.{}", path_, key)};
}

std::string_view json_field::text() const {
  if (!value_->is_string()) bad("must be a string");
  return value_->get_string();
}

bool json_field::boolean() const {
  if (!value_->is_bool()) bad("must be true or false");
  return value_->get_bool();
}

std::int64_t json_field::integer(std::int64_t lowest, std::int64_t highest) const {
  if (!value_->is_int64() || value_->get_int64() < lowest || value_->get_int64() > highest) {
    bad(fmt::format("must be an integer in [{}, {}]", lowest, highest));
  }
  return value_->get_int64();
}

double json_field::number() const {
  boost::system::error_code none;
  const auto value = value_->to_number<double>(none);
  if (none || !std::isfinite(value)) bad("must be a finite number");
  return value;
}

std::vector<json_field> json_field::items() const {
  std::vector<json_field> out;
  out.reserve(array().size());
  for (const boost::json::value& item : array())
    out.emplace_back(item, fmt::format("{}[{}]", path_, out.size()));
  return out;
}

const boost::json::array& json_field::array() const {
  if (!value_->is_array()) bad("must be an array");
  return value_->get_array();
}

const boost::json::object& json_field::object() const {
  if (!value_->is_object()) bad("must be an object");
  return value_->get_object();
}

bool json_field::boolean_or(std::string_view key, bool absent) const {
  const auto member = find(key);
  return member ? member->boolean() : absent;
}

boost::json::value parse_json(std::string_view text, const std::string& file,
                              boost::json::storage_ptr where) {
  boost::system::error_code failed;
  boost::json::value value = boost::json::parse(text, failed, std::move(where));
  if (failed) throw refusal{make_error(errc::bad_file, "{}: not JSON: {}", file, failed.message())};
  return value;
}

}  // namespace weir::core
