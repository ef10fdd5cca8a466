// bytes.h — how frames spell values: little-endian, lengths and most whole numbers as varints (LEB128).
//
// The fields of a frame are listed once, in a function that is called with a writer or a reader: `io(field)`
// writes the field or reads it. A reader checks each length against the bytes that are left before anything
// is allocated. Once a value is missing or wrong the reader has failed, and reads zeros from then on.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/job.h"
#include "core/token.h"

namespace weir::core::fleet {

inline constexpr std::uint8_t frame_version = 1;

template <class T>
concept flag_or_enum = std::is_same_v<T, bool> || std::is_enum_v<T>;

class byte_writer {
 public:
  static constexpr bool writes = true;
  explicit byte_writer(std::string& to) : to_(to) {}

  bool failed() const noexcept { return false; }
  void byte(std::uint8_t v) { to_.push_back(static_cast<char>(v)); }
  void varint(std::uint64_t v) {
    for (; v >= 0x80; v >>= 7) byte(static_cast<std::uint8_t>(v | 0x80));
    byte(static_cast<std::uint8_t>(v));
  }
  // Small numbers of either sign are short.
  void zigzag(std::int64_t v) {
    varint(static_cast<std::uint64_t>(v) << 1 ^ static_cast<std::uint64_t>(v >> 63));
  }
  template <class T>
  void fixed(T v) {
    for (std::size_t i = 0; i < sizeof v; ++i) byte(static_cast<std::uint8_t>(v >> (8 * i)));
  }
  void text(std::string_view s) {
    varint(s.size());
    to_ += s;
  }

  void operator()(std::uint8_t v) { byte(v); }
  void operator()(std::uint32_t v) { varint(v); }
  void operator()(std::uint64_t v) { varint(v); }
  void operator()(std::int32_t v) { zigzag(v); }
  void operator()(std::int64_t v) { zigzag(v); }
  void operator()(float v) { fixed(std::bit_cast<std::uint32_t>(v)); }
  void operator()(const std::string& s) { text(s); }
  void operator()(duration d) { zigzag(std::chrono::duration_cast<std::chrono::microseconds>(d).count()); }
  void operator()(const job_id& id) {
    fixed(id.hi);
    fixed(id.lo);
  }
  // `last`: the largest value that a reader takes.
  template <flag_or_enum T>
  void one_of(T v, T) {
    byte(static_cast<std::uint8_t>(v));
  }
  void operator()(bool v) { one_of(v, true); }
  template <class T>
  void operator()(const std::optional<T>& v) {
    (*this)(v.has_value());
    if (v) (*this)(*v);
  }
  // `each` writes one item.
  template <class List, class F>
  void list(const List& all, std::size_t, F&& each) {
    varint(all.size());
    for (const auto& item : all) each(item);
  }

 private:
  std::string& to_;
};

class byte_reader {
 public:
  static constexpr bool writes = false;
  explicit byte_reader(std::string_view from) : left_(from) {}

  bool failed() const noexcept { return failed_; }
  void fail() noexcept {
    failed_ = true;
    left_ = {};
  }
  bool at_end() const noexcept { return left_.empty(); }
  std::size_t left() const noexcept { return left_.size(); }

  std::uint8_t byte() {
    if (left_.empty()) return fail(), 0;
    const auto v = static_cast<std::uint8_t>(left_.front());
    left_.remove_prefix(1);
    return v;
  }
  std::uint64_t varint() {
    std::uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t b = byte();
      if (shift == 63 && b > 1) break;
      v |= std::uint64_t{b & 0x7Fu} << shift;
      if (b < 0x80) return v;
    }
    return fail(), 0;
  }
  std::int64_t zigzag() {
    const std::uint64_t v = varint();
    return static_cast<std::int64_t>(v >> 1 ^ (0 - (v & 1)));
  }
  template <class T>
  T fixed() {
    if (left_.size() < sizeof(T)) return fail(), T{};
    T v{};
    for (std::size_t i = 0; i < sizeof v; ++i)
      v |= static_cast<T>(static_cast<T>(static_cast<std::uint8_t>(left_[i])) << (8 * i));
    left_.remove_prefix(sizeof v);
    return v;
  }
  std::string_view text() {
    const std::uint64_t size = varint();
    if (size > left_.size()) return fail(), std::string_view();
    const auto s = left_.substr(0, size);
    left_.remove_prefix(size);
    return s;
  }
  // How many items follow, of `least` bytes each at least; at most `most`.
  std::size_t count(std::size_t least, std::size_t most = SIZE_MAX) {
    const std::uint64_t n = varint();
    if (n > left_.size() / least || n > most) return fail(), 0;
    return static_cast<std::size_t>(n);
  }
  token_id token() {
    const std::uint64_t v = varint();
    if (v > static_cast<std::uint64_t>(std::numeric_limits<token_id>::max())) fail();
    return failed_ ? 0 : static_cast<token_id>(v);
  }

  void operator()(std::uint8_t& v) { v = byte(); }
  void operator()(std::uint32_t& v) {
    const std::uint64_t wide = varint();
    if (wide > std::numeric_limits<std::uint32_t>::max()) fail();
    v = failed_ ? 0 : static_cast<std::uint32_t>(wide);
  }
  void operator()(std::uint64_t& v) { v = varint(); }
  void operator()(std::int32_t& v) {
    const std::int64_t wide = zigzag();
    if (wide != static_cast<std::int32_t>(wide)) fail();
    v = failed_ ? 0 : static_cast<std::int32_t>(wide);
  }
  void operator()(std::int64_t& v) { v = zigzag(); }
  void operator()(float& v) { v = std::bit_cast<float>(fixed<std::uint32_t>()); }
  void operator()(std::string& s) { s = text(); }
  // Times of a hundred years and more are no times.
  void operator()(duration& d) {
    constexpr std::int64_t most = std::int64_t{100} * 366 * 24 * 3600 * 1'000'000;
    const std::int64_t us = zigzag();
    if (us > most || us < -most) fail();
    d = failed_ ? duration() : duration(std::chrono::microseconds(us));
  }
  void operator()(job_id& id) {
    id.hi = fixed<std::uint64_t>();
    id.lo = fixed<std::uint64_t>();
  }
  template <flag_or_enum T>
  void one_of(T& v, T last) {
    const std::uint8_t b = byte();
    if (b > static_cast<std::uint8_t>(last)) fail();
    v = failed_ ? T{} : static_cast<T>(b);
  }
  void operator()(bool& v) { one_of(v, true); }
  template <class T>
  void operator()(std::optional<T>& v) {
    bool there = false;
    (*this)(there);
    if (!there) return v.reset();
    (*this)(v.emplace());
  }
  // At most `most` items, of one byte each at least; `each` reads one.
  template <class T, class F>
  void list(std::vector<T>& all, std::size_t most, F&& each) {
    const std::size_t n = count(1, most);
    all.clear();
    for (std::size_t i = 0; i < n && !failed_; ++i) each(all.emplace_back());
  }

 private:
  std::string_view left_;
  bool failed_ = false;
};

}  // namespace weir::core::fleet
