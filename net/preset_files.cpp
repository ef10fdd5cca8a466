#include "net/preset_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "actors/make_job.h"
#include "net/descriptor.h"
#include "net/protocol/dynamic_temperature.h"
#include "net/protocol/planned.h"
#include "net/protocol/request_fields.h"

namespace weir::net {
namespace {

core::error wrong_option(std::string_view text, std::string_view why) {
  return core::bad_param("preset", "--preset {}: {}", text, why);
}

bool is_preset_name(std::string_view s) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  return !s.empty() && s.size() <= longest_preset_name && s.find_first_not_of(allowed) == s.npos;
}

// The text of a file, of at most `longest_preset` bytes.
core::result<std::string> read_preset_file(std::string_view option, const std::string& name) {
  const descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.empty()) return wrong_option(option, fmt::format("cannot be read: {}", std::strerror(errno)));
  std::string text;
  char piece[4096];
  while (text.size() <= longest_preset) {
    const ssize_t n = ::read(file.get(), piece, sizeof piece);
    if (n == 0) return text;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return wrong_option(option, fmt::format("cannot be read: {}", std::strerror(errno)));
    text.append(piece, static_cast<std::size_t>(n));
  }
  return wrong_option(option, fmt::format("the file has over {} bytes", longest_preset));
}

core::result<void> read_preset_field(std::string_view name, const json::value& v, actors::request& r) {
  const auto known = read_sampling_field(name, v, r);
  if (!known) return known.error();
  if (*known || is_dynamic_temperature(name)) return {};
  const planned_name* planned = find_planned(place::request_field, name);
  if (!planned) return unknown_field(name);
  return judge_planned(*planned, v);
}

}  // namespace

core::result<actors::sampling_preset> read_preset(std::string_view text) {
  const auto parsed = read_json(text, {.depth = max_body_depth});
  if (!parsed) return parsed.error();
  if (!parsed->is_object())
    return core::make_error(core::errc::invalid_param, "a preset must be an object, not {}",
                            kind_of(*parsed));
  actors::request r;
  for (const auto& [name, value] : parsed->get_object())
    if (auto read = read_preset_field(name, value, r); !read) return read.error();
  if (auto read = read_dynamic_temperature(parsed->get_object(), r); !read) return read.error();
  if (auto fine = actors::check_sampling(r.sampling); !fine) return fine.error();
  if (r.banned_strings)
    if (auto fine = actors::banned_strings_of(*r.banned_strings); !fine) return fine.error();
  actors::sampling_preset out{std::move(r.sampling), {}, {}};
  out.banned_strings = std::move(r.banned_strings);
  out.token_healing = r.token_healing;
  return out;
}

core::result<actors::sampling_presets> read_presets(const std::vector<std::string>& named) {
  if (named.size() > most_presets)
    return core::bad_param("preset", "--preset: {} presets, {} are the most", named.size(), most_presets);
  actors::sampling_presets out;
  for (const std::string& text : named) {
    const auto equals = text.find('=');
    if (equals == text.npos || equals + 1 == text.size()) return wrong_option(text, "NAME=FILE is wanted");
    const std::string name = text.substr(0, equals);
    if (!is_preset_name(name))
      return wrong_option(text, fmt::format("a name has 1 to {} of [A-Za-z0-9_.-]", longest_preset_name));
    if (out.contains(name)) return wrong_option(text, fmt::format("'{}' is a preset already", name));
    const auto content = read_preset_file(text, text.substr(equals + 1));
    if (!content) return content.error();
    auto fields = read_preset(*content);
    if (!fields) return wrong_option(text, fields.error().message);
    out.emplace(name, std::move(*fields));
  }
  return out;
}

}  // namespace weir::net
