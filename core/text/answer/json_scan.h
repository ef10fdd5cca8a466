// json_scan.h — finds the end of one JSON value (RFC 8259) in a text that comes byte by byte.
//
// The scan is strict, but that control characters may stand in strings: they pass as they were written.
//
// Thread safety: none; one owner.
#pragma once

#include <cstdint>
#include <string>

namespace weir::core {

class json_scan {
 public:
  enum class status : std::uint8_t {
    more,    // the value goes on
    done,    // the value ends with this byte
    before,  // the value, a number, ended before this byte
    bad,     // no JSON
  };
  static constexpr std::size_t deepest = 512;  // objects and lists in one another

  status take(unsigned char c);
  bool in_string() const noexcept {
    return at_ == place::string || at_ == place::escape || at_ == place::hex;
  }

 private:
  enum class place : std::uint8_t {
    value,
    first_item,
    first_key,
    key,
    colon,
    after,
    string,
    escape,
    hex,
    word,
    minus,
    zero,
    digits,
    point,
    fraction,
    exponent,
    exponent_sign,
    power,
  };
  status begin_value(unsigned char c);
  status in_number(unsigned char c);
  status after_value(unsigned char c);
  status close(unsigned char c);
  status end_value();

  std::string open_;  // the brackets that are open
  place at_ = place::value;
  bool is_key_ = false;    // the string is a member's name
  const char* word_ = "";  // rest of true, false or null
  std::uint8_t hex_ = 0;   // digits of \uXXXX that are missing
};

}  // namespace weir::core
