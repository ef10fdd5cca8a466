#include "net/metrics/prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace weir::net {
namespace {

const char* name_of(prometheus_text::type t) {
  constexpr const char* names[] = {"counter", "gauge", "histogram"};
  return names[static_cast<int>(t)];
}

// Number of bytes of the UTF-8 character that `text` begins with; 0: it is none (RFC 3629).
std::size_t character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (size == 0 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const unsigned char second = byte(1);
  const bool too_long = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool no_scalar = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return too_long || no_scalar ? 0 : size;
}

// Backslashes and line feeds are escaped everywhere, quotes in label values alone.
void append_escaped(std::string& out, std::string_view text, bool quotes) {
  while (!text.empty()) {
    const std::size_t size = character_at(text);
    const char c = size == 0 ? '?' : text.front();
    if (size > 1) {
      out += text.substr(0, size);
    } else if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '\\' || (quotes && c == '"')) out += '\\';
      out += c;
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
}

}  // namespace

void prometheus_text::family(std::string_view name, type of, std::string_view help) {
  family_ = name;
  fmt::format_to(std::back_inserter(out_), "# HELP {} ", name);
  append_escaped(out_, help, false);
  fmt::format_to(std::back_inserter(out_), "\n# TYPE {} {}\n", name, name_of(of));
}

void prometheus_text::sample(labels of, std::uint64_t v) {
  name({}, of);
  value(v);
}

void prometheus_text::sample(labels of, double v) {
  name({}, of);
  value(v);
}

void prometheus_text::sample(labels of, const core::histogram_view& h) {
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < h.bounds.size(); ++i) {
    so_far += h.counts[i];
    name("_bucket", of, fmt::format("{}", static_cast<double>(h.bounds[i]) / h.per_unit));
    value(so_far);
  }
  so_far += h.counts.back();
  name("_bucket", of, "+Inf");
  value(so_far);
  name("_sum", of);
  value(static_cast<double>(h.sum) / h.per_unit);
  name("_count", of);
  value(so_far);
}

// The beginning of a line: the sample's name and its labels. `bound`: of a bucket.
void prometheus_text::name(std::string_view suffix, labels of, std::string_view bound) {
  out_ += family_;
  out_ += suffix;
  char before = '{';
  const auto add = [&](std::string_view key, std::string_view text) {
    out_ += std::exchange(before, ',');
    out_ += key;
    out_ += "=\"";
    append_escaped(out_, text, true);
    out_ += '"';
  };
  for (const auto& [key, text] : of) add(key, text);
  if (!bound.empty()) add("le", bound);
  if (before == ',') out_ += '}';
  out_ += ' ';
}

void prometheus_text::value(std::uint64_t v) { fmt::format_to(std::back_inserter(out_), "{}\n", v); }

void prometheus_text::value(double v) { fmt::format_to(std::back_inserter(out_), "{}\n", v); }

}  // namespace weir::net
