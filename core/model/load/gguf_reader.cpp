#include "core/model/load/gguf_reader.h"

#include <cmath>

namespace weir::core {

using u64 = std::uint64_t;

const gguf_value* gguf_reader::find(std::string_view key) const {
  const auto found = from_.find(key);
  return found == from_.end() ? nullptr : &found->second;
}

std::optional<std::string_view> gguf_reader::text(std::string_view key) {
  const gguf_value* v = find(key);
  if (!v) return std::nullopt;
  if (const auto* s = std::get_if<std::string_view>(v)) return *s;
  return fail_type(key, "a string"), std::nullopt;
}

std::optional<bool> gguf_reader::boolean(std::string_view key) {
  const gguf_value* v = find(key);
  if (!v) return std::nullopt;
  if (const auto* b = std::get_if<bool>(v)) return *b;
  return fail_type(key, "a bool"), std::nullopt;
}

std::optional<double> gguf_reader::number(std::string_view key) {
  const gguf_value* v = find(key);
  if (!v) return std::nullopt;
  double x = NAN;
  if (const auto* d = std::get_if<double>(v)) x = *d;
  if (const auto* u = std::get_if<u64>(v)) x = static_cast<double>(*u);
  if (const auto* i = std::get_if<std::int64_t>(v)) x = static_cast<double>(*i);
  if (!std::isfinite(x)) return fail_type(key, "a number"), std::nullopt;
  return x;
}

std::optional<std::uint32_t> gguf_reader::count(std::string_view key, std::uint32_t limit) {
  const gguf_value* v = find(key);
  if (!v) return std::nullopt;
  double n = -1;
  if (const auto* u = std::get_if<u64>(v)) n = static_cast<double>(*u);
  if (const auto* i = std::get_if<std::int64_t>(v)) n = static_cast<double>(*i);
  if (const auto* a = std::get_if<gguf_array>(v); a && a->texts.empty() && a->size > 0) {
    n = a->number(0);
    for (u64 i = 1; i < a->size; ++i)
      if (a->number(i) != n)
        return fail(errc::not_supported,
                    fmt::format("{}: '{}' differs between layers, which is not supported yet", what_, key)),
               std::nullopt;
  }
  if (!(n >= 0 && n <= limit && n == std::floor(n)))
    return fail_type(key, fmt::format("a whole number up to {}", limit)), std::nullopt;
  return static_cast<std::uint32_t>(n);
}

const std::vector<std::string_view>* gguf_reader::texts(std::string_view key) {
  const gguf_value* v = find(key);
  if (!v) return nullptr;
  const auto* a = std::get_if<gguf_array>(v);
  if (a && a->kind == gguf_kind::text) return &a->texts;
  return fail_type(key, "an array of strings"), nullptr;
}

const gguf_array* gguf_reader::numbers(std::string_view key) {
  const gguf_value* v = find(key);
  if (!v) return nullptr;
  const auto* a = std::get_if<gguf_array>(v);
  if (a && a->kind != gguf_kind::text && a->kind != gguf_kind::boolean) return a;
  return fail_type(key, "an array of numbers"), nullptr;
}

void gguf_reader::fail(errc code, std::string message) {
  if (!failure_) failure_ = error{code, std::move(message), {}};
}

void gguf_reader::missing(std::string_view key) {
  fail(errc::bad_file, fmt::format("{}: '{}' is missing", what_, key));
}

void gguf_reader::fail_type(std::string_view key, std::string_view wanted) {
  fail(errc::bad_file, fmt::format("{}: '{}' must be {}", what_, key, wanted));
}

void architecture_keys::refuse(std::string_view key, std::string_view value) {
  in_.fail(errc::not_supported,
           fmt::format("{}: '{}' {} is not supported yet", in_.what(), full(key), value));
}

}  // namespace weir::core
