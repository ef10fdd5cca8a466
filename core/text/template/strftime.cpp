#include "core/text/template/strftime.h"

#include <ctime>

#include "core/text/template/budget.h"

namespace weir::core::jinja {
namespace {

std::tm civil(std::chrono::local_seconds at) {
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  std::tm out{};
  out.tm_year = static_cast<int>(date.year()) - 1900;
  out.tm_mon = static_cast<int>(static_cast<unsigned>(date.month())) - 1;
  out.tm_mday = static_cast<int>(static_cast<unsigned>(date.day()));
  out.tm_hour = static_cast<int>(time.hours().count());
  out.tm_min = static_cast<int>(time.minutes().count());
  out.tm_sec = static_cast<int>(time.seconds().count());
  out.tm_wday = static_cast<int>(std::chrono::weekday(day).c_encoding());
  const auto new_year = std::chrono::local_days(date.year() / std::chrono::January / 1);
  out.tm_yday = static_cast<int>((day - new_year).count());
  return out;
}

}  // namespace

std::string formatted_time(std::chrono::local_seconds at, std::string_view format) {
  constexpr std::size_t longest_format = 1024;
  if (format.size() > longest_format)
    fail("strftime_now(): the format has more than {} bytes", longest_format);
  const std::tm tm = civil(at);
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    std::string conversion = "%";
    if (i + 1 < format.size() && format[i + 1] == '-') conversion += format[++i];
    const char c = i + 1 < format.size() ? format[++i] : '\0';
    if (c == '\0' ||
        std::string_view("aAbBcdDeFgGhHIjmMnprRStTuUVwWxXyYC%").find(c) == std::string_view::npos)
      fail("strftime_now(): '%{}' is not supported", c == '\0' ? std::string() : std::string(1, c));
    char piece[64];
    conversion += c;
    out.append(piece, std::strftime(piece, sizeof piece, conversion.c_str(), &tm));
  }
  return out;
}

}  // namespace weir::core::jinja
