#include "net/http/router.h"

#include <optional>

#include "net/page_assets.h"

namespace weir::net {
namespace {

struct route {
  std::string_view method, pattern;
  endpoint to;
};

constexpr route routes[] = {
    {"GET", "/v1/stream", endpoint::stream},
    {"POST", "/v1/stream/tokens", endpoint::issue_token},
    {"POST", "/v1/completions", endpoint::completions},
    {"POST", "/v1/chat/completions", endpoint::chat_completions},
    {"POST", "/v1/messages", endpoint::messages},
    {"POST", "/v1/responses", endpoint::responses},
    {"GET", "/v1/responses/{job}/input_items", endpoint::list_response_items},
    {"POST", "/v1/responses/{job}/cancel", endpoint::cancel_response},
    {"GET", "/v1/responses/{job}", endpoint::show_response},
    {"DELETE", "/v1/responses/{job}", endpoint::remove_response},
    {"POST", "/v1/messages/count_tokens", endpoint::count_tokens},
    {"GET", "/v1/models", endpoint::list_models},
    {"GET", "/v1/models/{id}", endpoint::show_model},
    {"GET", "/models/sse", endpoint::follow_models},
    {"GET", "/props", endpoint::model_props},
    {"POST", "/models/load", endpoint::load_model},
    {"POST", "/models/unload", endpoint::unload_model},
    {"GET", "/v1/admin/models", endpoint::list_all_models},
    {"POST", "/v1/admin/models", endpoint::add_model},
    {"POST", "/v1/admin/models/{id}", endpoint::change_model},
    {"DELETE", "/v1/admin/models/{id}", endpoint::remove_model},
    {"POST", "/v1/admin/swap", endpoint::swap_models},
    {"POST", "/v1/admin/plan", endpoint::plan_model},
    {"POST", "/v1/tokenize", endpoint::tokenize},
    {"POST", "/v1/detokenize", endpoint::detokenize},
    {"GET", "/v1/jobs", endpoint::list_jobs},
    {"GET", "/v1/jobs/{job}/events", endpoint::follow_job},
    {"GET", "/v1/jobs/{job}", endpoint::show_job},
    {"DELETE", "/v1/jobs/{job}", endpoint::cancel_job},
    {"POST", "/v1/jobs/{job}/kill-worker", endpoint::kill_worker_of_job},
    {"GET", "/v1/stats", endpoint::stats},
    {"GET", "/metrics", endpoint::metrics},
    {"GET", "/health", endpoint::ready},
    {"GET", "/health/live", endpoint::live},
    {"GET", "/health/ready", endpoint::ready},
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low < 0) {
      out += text[i];
    } else {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

// The id in a path that fits `pattern`, without a slash at its end, or "" if the pattern has none; nullopt:
// the path does not fit.
std::optional<std::string> fit(std::string_view pattern, std::string_view path) {
  const auto brace = pattern.find('{');
  if (brace == pattern.npos) return pattern == path ? std::optional<std::string>("") : std::nullopt;
  if (path.size() <= brace || !path.starts_with(pattern.substr(0, brace))) return std::nullopt;
  path.remove_prefix(brace);
  if (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const std::string_view behind = pattern.substr(pattern.find('}') + 1);
  if (path.size() <= behind.size() || !path.ends_with(behind)) return std::nullopt;
  path.remove_suffix(behind.size());
  if (pattern.substr(brace).starts_with("{job}") && path.find('/') != path.npos) return std::nullopt;
  return percent_decode(path);
}

// nullopt: the path is another one, or only the method is; in the second case `other` gets the route's
// method.
std::optional<route_match> match(const route& r, std::string_view asked, std::string_view path,
                                 wrong_method& other) {
  auto id = fit(r.pattern, path);
  if (!id) return std::nullopt;
  if (r.method == asked) return route_match{r.to, std::move(*id)};
  other.for_admins = is_for_admins(r.to) && (other.for_admins || other.allow.empty());
  if (!other.allow.empty()) other.allow += ", ";
  other.allow += r.method;
  if (r.method == "GET") other.allow += ", HEAD";
  return std::nullopt;
}

// The path as the table of routes has it: without doubled slashes and a slash at the end. Clients make these
// when they join a base URL and a path.
std::string plain_path(std::string_view path) {
  std::string out;
  for (const char c : path)
    if (c != '/' || out.empty() || out.back() != '/') out += c;
  if (out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}

// `allow`: what the path takes beside the routes' methods.
found_route find_in_table(std::string_view asked, std::string_view path, std::string allow = {}) {
  wrong_method other{std::move(allow)};
  for (const route& r : routes)
    if (auto found = match(r, asked, path, other)) return std::move(*found);
  if (other.allow.empty()) return no_route{};
  return other;
}

found_route find_path(std::string_view asked, std::string_view path) {
  const bool is_asset = find_asset(path) != nullptr;
  if (is_asset && asked == "GET") return route_match{endpoint::asset, {}};
  auto found = find_in_table(asked, path, is_asset ? "GET, HEAD" : "");
  if (!std::holds_alternative<no_route>(found)) return found;
  const std::string plain = plain_path(path);
  found = find_in_table(asked, plain);
  if (!std::holds_alternative<no_route>(found)) return found;
  return find_in_table(asked, "/v1" + plain);  // a base URL without /v1
}

}  // namespace

std::string_view path_of(std::string_view target) {
  // A target may be a whole URL, "http://host/path": clients send it to a proxy, and RFC 9112, 3.2.2 demands
  // that servers accept it.
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const auto slash = target.find('/', scheme.size());
    target = slash == target.npos ? std::string_view("/") : target.substr(slash);
    break;
  }
  return target.substr(0, target.find_first_of("?#"));
}

std::string query_parameter(std::string_view target, std::string_view name) {
  const auto begin = target.find('?');
  if (begin == target.npos) return {};
  std::string_view query = target.substr(begin + 1);
  query = query.substr(0, query.find('#'));
  while (!query.empty()) {
    const auto end = query.find('&');
    const std::string_view one = query.substr(0, end);
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=')
      return percent_decode(one.substr(name.size() + 1));
    query = end == query.npos ? std::string_view() : query.substr(end + 1);
  }
  return {};
}

bool is_for_metrics(std::string_view target) {
  const std::string_view path = path_of(target);
  return path == "/metrics" || path == "/health" || path.starts_with("/health/");
}

found_route find_route(std::string_view method, std::string_view target) {
  auto found = find_path(method == "HEAD" ? "GET" : method, path_of(target));
  auto* route = std::get_if<route_match>(&found);
  if (route && route->to == endpoint::model_props) route->id = query_parameter(target, "model");
  return found;
}

}  // namespace weir::net
