// regex_prints.h — how the print of a term is made. For the files of regex_pool alone.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/grammar/regex/regex_pool.h"

namespace weir::core::grammar {

regex_print print_of(std::string_view bytes);

// Collects the bytes whose hash is a term's print. Most terms have at most 128, which need no allocation.
class print_text {
 public:
  explicit print_text(char kind) { few_[size_++] = kind; }
  print_text& add(const regex_print& p) { return add(&p, sizeof p); }
  print_text& add(std::uint32_t n) { return add(&n, sizeof n); }
  print_text& add(const byte_set& set) {
    static_assert(std::is_trivially_copyable_v<byte_set> && sizeof set == 32);
    add(&set, sizeof set);
    return *this;
  }
  regex_print done() const { return print_of(many_.empty() ? std::string_view(few_.data(), size_) : many_); }

 private:
  print_text& add(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const char*>(data);
    if (many_.empty() && size_ + size <= few_.size()) {
      std::copy(bytes, bytes + size, few_.data() + size_);
      size_ += size;
      return *this;
    }
    if (many_.empty()) many_.assign(few_.data(), size_);
    many_.append(bytes, size);
    return *this;
  }
  std::array<char, 128> few_;
  std::size_t size_ = 0;
  std::string many_;
};

}  // namespace weir::core::grammar
