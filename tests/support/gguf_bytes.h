// gguf_bytes.h — writes GGUF files for tests, right ones and, with other numbers, wrong ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace weir::tests {

template <class T>
std::string raw(T x) {
  std::string out(sizeof x, '\0');
  std::memcpy(out.data(), &x, sizeof x);
  return out;
}

inline std::string gguf_text(std::string_view s) { return raw(std::uint64_t{s.size()}) + std::string(s); }

struct gguf_tensor {
  std::string name;
  std::vector<std::uint64_t> dims;  // the innermost first, as in the file
  std::uint32_t type = 0;           // F32
  std::string bytes;
};

struct gguf_writer {
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;
  std::string magic = "GGUF";
  std::vector<std::string> keys;  // each with its value
  std::vector<gguf_tensor> tensors;
  std::int64_t more_keys = 0, more_tensors = 0;  // added to the header's counts
  std::uint64_t offset_error = 0;                // added to the last tensor's offset

  gguf_writer& value(std::string_view key, std::uint32_t kind, const std::string& bytes) {
    keys.push_back(gguf_text(key) + raw(kind) + bytes);
    return *this;
  }
  gguf_writer& number(std::string_view key, std::uint32_t x) { return value(key, 4, raw(x)); }
  gguf_writer& real(std::string_view key, float x) { return value(key, 6, raw(x)); }
  gguf_writer& flag(std::string_view key, bool x) { return value(key, 7, std::string(1, x ? '\1' : '\0')); }
  gguf_writer& text(std::string_view key, std::string_view x) { return value(key, 8, gguf_text(x)); }
  gguf_writer& texts(std::string_view key, const std::vector<std::string>& all) {
    std::string bytes = raw(std::uint32_t{8}) + raw(std::uint64_t{all.size()});
    for (const auto& each : all) bytes += gguf_text(each);
    return value(key, 9, bytes);
  }
  template <class T>
  gguf_writer& numbers(std::string_view key, std::uint32_t kind, const std::vector<T>& all) {
    std::string bytes = raw(kind) + raw(std::uint64_t{all.size()});
    for (const T x : all) bytes += raw(x);
    return value(key, 9, bytes);
  }
  gguf_writer& tensor(gguf_tensor t) {
    tensors.push_back(std::move(t));
    return *this;
  }

  std::string header() const {
    std::string out = magic + raw(version) + raw(tensors.size() + static_cast<std::uint64_t>(more_tensors)) +
                      raw(keys.size() + static_cast<std::uint64_t>(more_keys));
    for (const auto& key : keys) out += key;
    std::uint64_t at = 0;
    for (const auto& t : tensors) {
      out += gguf_text(t.name) + raw(static_cast<std::uint32_t>(t.dims.size()));
      for (const auto n : t.dims) out += raw(n);
      out += raw(t.type) + raw(at + (&t == &tensors.back() ? offset_error : 0));
      at += padded(t.bytes.size());
    }
    return out;
  }
  std::string file() const {
    std::string out = header();
    out.resize(padded(out.size()));
    for (const auto& t : tensors) {
      out += t.bytes;
      if (&t != &tensors.back()) out.resize(out.size() + padded(t.bytes.size()) - t.bytes.size());
    }
    return out;
  }

 private:
  std::uint64_t padded(std::uint64_t n) const { return (n + alignment - 1) / alignment * alignment; }
};

}  // namespace weir::tests
