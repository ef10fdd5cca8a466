#include "core/read_json.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <cmath>
#include <optional>
#include <unordered_set>
#include <vector>

#include "core/shortened.h"

namespace weir::core {
namespace {

namespace json = boost::json;

// A handler of Boost.JSON's parser, which calls a member for each piece of the text. It builds the value and
// checks the bounds. A member that returns false ends the parsing, with the reason in `why`.
class builder {
 public:
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();

  builder(std::size_t most, written_number* number, json::storage_ptr memory, unsigned char* buffer,
          std::size_t size)
      : values_(memory, buffer, size), left_(most), number_(number) {
    values_.reset(std::move(memory));
  }

  json::value take() { return values_.release(); }
  std::size_t keys() const noexcept { return keys_; }
  std::optional<error> why;

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code& ec) { return ++depth_, count(ec); }
  bool on_object_end(std::size_t n, json::error_code&) { return --depth_, values_.push_object(n), true; }
  bool on_array_begin(json::error_code& ec) { return ++depth_, count(ec); }
  bool on_array_end(std::size_t n, json::error_code&) { return --depth_, values_.push_array(n), true; }
  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    if (number_ && depth_ == 1) key_.append(part.data(), part.size());
    return values_.push_chars(part), true;
  }
  bool on_key(json::string_view end, std::size_t, json::error_code& ec) {
    if (number_ && depth_ == 1) {
      key_.append(end.data(), end.size());
      named_ = key_ == number_->name;
      key_.clear();
    }
    ++keys_;
    return values_.push_key(end), count(ec);
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    return values_.push_chars(part), true;
  }
  bool on_string(json::string_view end, std::size_t, json::error_code& ec) {
    return values_.push_string(end), count(ec);
  }
  bool on_number_part(json::string_view part, json::error_code&) { return write(part), true; }
  bool on_int64(std::int64_t i, json::string_view end, json::error_code& ec) {
    write(end);
    return values_.push_int64(i), count(ec);
  }
  bool on_uint64(std::uint64_t u, json::string_view end, json::error_code& ec) {
    write(end);
    return values_.push_uint64(u), count(ec);
  }
  bool on_double(double d, json::string_view end, json::error_code& ec) {
    if (!std::isfinite(d))
      return refuse(make_error(errc::invalid_param, "a number of the JSON is too large for a double"), ec);
    write(end);
    return values_.push_double(d), count(ec);
  }
  bool on_bool(bool b, json::error_code& ec) { return values_.push_bool(b), count(ec); }
  bool on_null(json::error_code& ec) { return values_.push_null(), count(ec); }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  bool count(json::error_code& ec) {
    if (left_-- > 0) [[likely]] return true;
    return refuse(make_error(errc::invalid_param, "the JSON has too many values"), ec);
  }
  bool refuse(error e, json::error_code& ec) {
    why = std::move(e);
    ec = json::error::exception;
    return false;
  }
  void write(json::string_view part) {
    if (named_ && depth_ == 1) number_->text.append(part.data(), part.size());
  }

  json::value_stack values_;
  std::string key_;  // the part so far of the current key of the outermost object
  std::size_t left_, keys_ = 0, depth_ = 0;
  written_number* number_;
  bool named_ = false;  // the latest key of the outermost object is number_->name
};

// Number of members of all objects in `v` together. An object keeps one of two members with one key.
std::size_t members(const json::value& v) {
  std::size_t sum = 0;
  if (const auto* array = v.if_array()) {
    for (const json::value& item : *array)
      if (item.is_structured()) sum += members(item);
  } else if (const auto* object = v.if_object()) {
    sum = object->size();
    for (const auto& [key, item] : *object)
      if (item.is_structured()) sum += members(item);
  }
  return sum;
}

// A handler of Boost.JSON's parser that finds the first key that an object has twice. It keeps a hash of each
// key's bytes and its object's number.
class key_finder {
 public:
  static constexpr std::size_t max_object_size = SIZE_MAX, max_array_size = SIZE_MAX, max_key_size = SIZE_MAX,
                               max_string_size = SIZE_MAX;
  std::string found;

  bool on_object_begin(json::error_code&) {
    open_.push_back(++objects_);
    return true;
  }
  bool on_object_end(std::size_t, json::error_code&) { return open_.pop_back(), true; }
  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    return key_.append(part.data(), part.size()), true;
  }
  bool on_key(json::string_view end, std::size_t, json::error_code& ec) {
    key_.append(end.data(), end.size());
    const auto length = key_.size();
    key_.append(reinterpret_cast<const char*>(&open_.back()), sizeof open_.back());
    const bool fresh = seen_.insert(std::hash<std::string_view>()(key_)).second;
    key_.resize(length);
    if (!fresh) {
      found = std::move(key_);
      ec = json::error::exception;
      return false;
    }
    return key_.clear(), true;
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

 private:
  std::unordered_set<std::size_t> seen_;
  std::vector<std::uint64_t> open_;  // numbers of the objects that are open, the innermost last
  std::uint64_t objects_ = 0;
  std::string key_;
};

error repeated_key(std::string_view text, const json::parse_options& options) {
  json::basic_parser<key_finder> parser(options);
  json::error_code ec;
  parser.write_some(false, text.data(), text.size(), ec);
  const std::string shown = shortened(parser.handler().found);
  return bad_param(shown, "'{}' is there twice", shown);
}

}  // namespace

result<json::value> read_json(std::string_view text, json_bounds most, written_number* number,
                              json::storage_ptr memory) {
  unsigned char buffer[4096];
  json::parse_options options;
  options.max_depth = most.depth;
  json::basic_parser<builder> parser(options, most.values, number, std::move(memory), buffer, sizeof buffer);
  json::error_code ec;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), ec);
  if (auto& why = parser.handler().why) return std::move(*why);
  if (!ec && read < text.size()) ec = json::error::extra_data;
  if (ec == json::error::too_deep)
    return make_error(errc::invalid_param, "the JSON is nested deeper than {}", most.depth);
  if (ec) return make_error(errc::invalid_param, "not JSON at byte {}: {}", read, ec.message());
  json::value v = parser.handler().take();
  if (members(v) == parser.handler().keys()) [[likely]] return v;
  v = nullptr;  // frees memory, which repeated_key() needs
  return repeated_key(text, options);
}

std::size_t values_in(const json::value& v) {
  std::size_t sum = 1;
  if (const auto* list = v.if_array())
    for (const json::value& item : *list) sum += values_in(item);
  if (const auto* o = v.if_object())
    for (const auto& [key, member] : *o) sum += 1 + values_in(member);
  return sum;
}

}  // namespace weir::core
