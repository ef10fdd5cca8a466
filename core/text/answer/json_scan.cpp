#include "core/text/answer/json_scan.h"

namespace weir::core {
namespace {

bool is_white(unsigned char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
bool is_hex(unsigned char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

}  // namespace

json_scan::status json_scan::take(unsigned char c) {
  switch (at_) {
    case place::value:
      return is_white(c) ? status::more : begin_value(c);
    case place::first_item:
      if (is_white(c)) return status::more;
      return c == ']' ? close(c) : begin_value(c);
    case place::first_key:
      if (c == '}') return close(c);
      [[fallthrough]];
    case place::key:
      if (is_white(c)) return status::more;
      if (c != '"') return status::bad;
      is_key_ = true;
      at_ = place::string;
      return status::more;
    case place::colon:
      if (is_white(c)) return status::more;
      at_ = place::value;
      return c == ':' ? status::more : status::bad;
    case place::after:
      return after_value(c);
    case place::string:
      if (c == '\\') at_ = place::escape;
      if (c != '"') return status::more;
      if (!is_key_) return end_value();
      is_key_ = false;
      at_ = place::colon;
      return status::more;
    case place::escape:
      at_ = c == 'u' ? place::hex : place::string;
      hex_ = 4;
      return std::string_view("\"\\/bfnrtu").find(static_cast<char>(c)) != std::string_view::npos
                 ? status::more
                 : status::bad;
    case place::hex:
      if (--hex_ == 0) at_ = place::string;
      return is_hex(c) ? status::more : status::bad;
    case place::word:
      if (c != static_cast<unsigned char>(*word_)) return status::bad;
      return *++word_ == '\0' ? end_value() : status::more;
    default:
      return in_number(c);
  }
}

json_scan::status json_scan::begin_value(unsigned char c) {
  switch (c) {
    case '{':
    case '[':
      if (open_.size() == deepest) return status::bad;
      open_ += static_cast<char>(c);
      at_ = c == '{' ? place::first_key : place::first_item;
      return status::more;
    case '"':
      at_ = place::string;
      return status::more;
    case 't':
      word_ = "rue";
      break;
    case 'f':
      word_ = "alse";
      break;
    case 'n':
      word_ = "ull";
      break;
    case '-':
      at_ = place::minus;
      return status::more;
    default:
      if (!is_digit(c)) return status::bad;
      at_ = c == '0' ? place::zero : place::digits;
      return status::more;
  }
  at_ = place::word;
  return status::more;
}

json_scan::status json_scan::in_number(unsigned char c) {
  const auto to = [&](place next) {
    at_ = next;
    return status::more;
  };
  const bool e = c == 'e' || c == 'E';
  switch (at_) {
    case place::minus:
      if (is_digit(c)) return to(c == '0' ? place::zero : place::digits);
      return status::bad;
    case place::digits:
      if (is_digit(c)) return status::more;
      [[fallthrough]];
    case place::zero:
      if (c == '.') return to(place::point);
      if (e) return to(place::exponent);
      break;
    case place::point:
      return is_digit(c) ? to(place::fraction) : status::bad;
    case place::fraction:
      if (is_digit(c)) return status::more;
      if (e) return to(place::exponent);
      break;
    case place::exponent:
      if (c == '+' || c == '-') return to(place::exponent_sign);
      [[fallthrough]];
    case place::exponent_sign:
      return is_digit(c) ? to(place::power) : status::bad;
    default:
      if (is_digit(c)) return status::more;
  }
  if (open_.empty()) return status::before;
  at_ = place::after;
  return after_value(c);
}

json_scan::status json_scan::after_value(unsigned char c) {
  if (is_white(c)) return status::more;
  if (c == ',') {
    at_ = open_.back() == '{' ? place::key : place::value;
    return status::more;
  }
  return close(c);
}

json_scan::status json_scan::close(unsigned char c) {
  const char open = c == '}' ? '{' : c == ']' ? '[' : '\0';
  if (open == '\0' || open_.empty() || open_.back() != open) return status::bad;
  open_.pop_back();
  return end_value();
}

json_scan::status json_scan::end_value() {
  at_ = place::after;
  return open_.empty() ? status::done : status::more;
}

}  // namespace weir::core
