#include "net/page_assets.h"

#include <algorithm>
#include <optional>

namespace weir::net {
namespace {

constexpr std::string_view blanks = " \t";

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(blanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

// Whether a parameter such as "q=0.5" asks for more than nothing.
bool has_quality(std::string_view parameter) {
  parameter = trimmed(parameter);
  if (parameter.size() < 2 || lower(parameter[0]) != 'q' || parameter[1] != '=') return true;
  return parameter.find_first_of("123456789") != parameter.npos;
}

}  // namespace

const page_asset* find_asset(std::string_view path) {
  std::string_view name = path == "/" ? "index.html" : path.substr(path.empty() ? 0 : 1);
  for (const page_asset& asset : page_assets()) {
    if (asset.name == name) return &asset;
  }
  return nullptr;
}

std::string_view content_type_of(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  if (name.ends_with(".txt")) return "text/plain; charset=utf-8";
  return "application/octet-stream";
}

bool takes_gzip(std::string_view accept_encoding) {
  std::optional<bool> gzip, others;
  while (!accept_encoding.empty()) {
    const auto comma = accept_encoding.find(',');
    std::string_view item = accept_encoding.substr(0, comma);
    accept_encoding.remove_prefix(comma == item.npos ? accept_encoding.size() : comma + 1);
    const auto semicolon = item.find(';');
    const std::string_view name = trimmed(item.substr(0, semicolon));
    const bool wanted = semicolon == item.npos || has_quality(item.substr(semicolon + 1));
    if (same_letters(name, "gzip")) gzip = wanted;
    if (name == "*") others = wanted;
  }
  return gzip.value_or(others.value_or(false));
}

}  // namespace weir::net
