#include "net/load/trace.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>

namespace weir::load {
namespace {

constexpr double longest = 1 << 24;  // tokens

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.back() == '\r' || s.back() == ' ')) s.remove_suffix(1);
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  return s;
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t from = 0; from <= line.size();) {
    const auto to = std::min(line.find(',', from), line.size());
    fields.push_back(trimmed(line.substr(from, to - from)));
    from = to + 1;
  }
  return fields;
}

std::optional<double> number(std::string_view s) {
  double v = 0;
  const auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (ec != std::errc() || end != s.data() + s.size() || !std::isfinite(v)) return std::nullopt;
  return v;
}

std::optional<unsigned> digits(std::string_view s) {
  unsigned v = 0;
  const auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (ec != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return v;
}

// A time in seconds. `s`: a number, or a date like `2023-11-16 18:17:03.9799600`. Any character may be
// between date and time, and what follows the seconds is ignored.
std::optional<double> seconds(std::string_view s) {
  if (auto plain = number(s)) return plain;
  if (s.size() < 19 || s[4] != '-' || s[7] != '-' || s[13] != ':' || s[16] != ':') return std::nullopt;
  const auto part = [&](std::size_t at, std::size_t n) { return digits(s.substr(at, n)); };
  const auto year = part(0, 4), month = part(5, 2), day = part(8, 2), hour = part(11, 2),
             minute = part(14, 2);
  auto end = s.find_first_not_of("0123456789.", 17);
  const auto second = number(s.substr(17, end == s.npos ? s.npos : end - 17));
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(*month), std::chrono::day(*day)};
  if (!date.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days) * 86400 + *hour * 3600 + *minute * 60 + *second;
}

// Indices of a format's columns. `at`: of the time; nullopt: it has lengths only.
struct columns {
  std::string_view first_line;
  std::optional<std::size_t> at;
  std::size_t in, out;
};

constexpr columns formats[] = {
    {"t,in,out", 0, 1, 2},
    {"TIMESTAMP,ContextTokens,GeneratedTokens", 0, 1, 2},
    {"Timestamp,Model,Request tokens,Response tokens", 0, 2, 3},
    {"num_prefill_tokens,num_decode_tokens", std::nullopt, 0, 1},
};

// The request of a row; nullopt if it had no answer.
std::optional<traced_request> request_of(double at, double in, double out) {
  if (out < 1) return std::nullopt;
  traced_request r;
  r.at_s = at;
  r.in = static_cast<std::uint32_t>(std::clamp(in, 1.0, longest));
  r.out = static_cast<std::uint32_t>(std::min(out, longest));
  return r;
}

struct row {
  double at = 0, in = 0, out = 0;
};

std::optional<row> read_row(std::string_view line, const columns& c) {
  const auto fields = split(line);
  if (fields.size() <= std::max({c.at.value_or(0), c.in, c.out})) return std::nullopt;
  const auto at = c.at ? seconds(fields[*c.at]) : std::optional<double>(0);
  const auto in = number(fields[c.in]), out = number(fields[c.out]);
  if (!at || !in || !out || *in < 0 || *out < 0) return std::nullopt;
  row r;
  r.at = *at, r.in = *in, r.out = *out;
  return r;
}

std::optional<row> read_object(std::string_view line) {
  boost::system::error_code ec;
  const auto v = boost::json::parse({line.data(), line.size()}, ec);
  if (ec || !v.is_object()) return std::nullopt;
  row r;
  for (const auto& [name, into] :
       {std::pair{"timestamp", &r.at}, {"input_length", &r.in}, {"output_length", &r.out}}) {
    const auto* field = v.get_object().if_contains(name);
    if (!field || !field->is_number()) return std::nullopt;
    *into = field->to_number<double>();
  }
  if (!(r.in >= 0 && r.out >= 0)) return std::nullopt;
  r.at /= 1000;
  return r;
}

}  // namespace

core::result<trace> parse_trace(std::string_view text) {
  trace out;
  const columns* format = nullptr;
  bool objects = false;
  std::size_t number_of_line = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number_of_line;
    if (line.empty()) continue;
    if (!format && !objects) {
      objects = line.front() == '{';
      for (const auto& f : formats)
        if (line.starts_with(f.first_line)) format = &f;
      if (!format && !objects)
        return core::bad_param(
            "trace", "--trace: its first line is none of the known ones; t,in,out is the plain one");
      out.timed = objects || format->at;
      if (format) continue;
    }
    const auto r = objects ? read_object(line) : read_row(line, *format);
    if (!r) return core::bad_param("trace", "--trace: line {} has no time and two lengths", number_of_line);
    if (auto request = request_of(r->at, r->in, r->out)) out.requests.push_back(*request);
  }
  if (out.requests.empty()) return core::bad_param("trace", "--trace: there is no request in it");
  std::stable_sort(out.requests.begin(), out.requests.end(),
                   [](auto& a, auto& b) { return a.at_s < b.at_s; });
  const double first = out.requests.front().at_s;
  for (auto& r : out.requests) r.at_s -= first;
  return out;
}

}  // namespace weir::load
