#include "core/grammar/schema/uri.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace weir::core::grammar {
namespace {

struct uri_parts {
  std::string_view scheme;     // with its colon
  std::string_view authority;  // with its two slashes
  std::string_view path;
  std::string_view query;  // with its question mark
};

uri_parts parts_of(std::string_view uri) {
  uri_parts p;
  const std::size_t colon = uri.find(':');
  const bool scheme =
      colon != uri.npos && colon > 0 && std::all_of(uri.begin(), uri.begin() + colon, [](unsigned char c) {
        return std::isalnum(c) || c == '+' || c == '-' || c == '.';
      });
  if (scheme) {
    p.scheme = uri.substr(0, colon + 1);
    uri.remove_prefix(colon + 1);
  }
  if (uri.starts_with("//")) {
    p.authority = uri.substr(0, std::min(uri.find_first_of("/?", 2), uri.size()));
    uri.remove_prefix(p.authority.size());
  }
  const std::size_t question = std::min(uri.find('?'), uri.size());
  p.path = uri.substr(0, question);
  p.query = uri.substr(question);
  return p;
}

std::string without_dots(std::string_view path) {
  std::vector<std::string_view> kept;
  const bool absolute = path.starts_with('/');
  bool ends_with_slash = false;
  while (!path.empty()) {
    if (path.front() == '/') path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view segment = path.substr(0, end);
    path.remove_prefix(end);
    ends_with_slash = segment == "." || segment == ".." || (segment.empty() && path.empty());
    if (segment == "..") {
      if (!kept.empty()) kept.pop_back();
    } else if (segment != "." && !(segment.empty() && path.empty())) {
      kept.push_back(segment);
    }
    if (path == "/") {
      ends_with_slash = true;
      break;
    }
  }
  std::string out;
  for (const std::string_view s : kept) (out += out.empty() && !absolute ? "" : "/") += s;
  if (ends_with_slash || (out.empty() && absolute)) out += '/';
  return out;
}

std::string merged_path(const uri_parts& base, std::string_view path) {
  if (path.starts_with('/')) return without_dots(path);
  if (!base.authority.empty() && base.path.empty()) return without_dots(std::string(1, '/').append(path));
  const std::size_t slash = base.path.rfind('/');
  const std::string_view folder = slash == base.path.npos ? "" : base.path.substr(0, slash + 1);
  return without_dots(std::string(folder) + std::string(path));
}

}  // namespace

std::string resolve_uri(std::string_view base, std::string_view reference) {
  const uri_parts r = parts_of(reference);
  if (!r.scheme.empty()) return std::string(reference);
  const uri_parts b = parts_of(base);
  std::string out(b.scheme);
  if (!r.authority.empty()) return out.append(reference);
  out += b.authority;
  if (!r.path.empty()) return out.append(merged_path(b, r.path)).append(r.query);
  return out.append(b.path).append(r.query.empty() ? b.query : r.query);
}

std::string percent_decoded(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const int lower = c | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace weir::core::grammar
