// shared_list.h — a list that never changes, and that its copies share.
//
// The lists of a request go into every job that is made of it. A copy costs one reference, whatever its
// length.
//
// Thread safety: as std::shared_ptr; any number of threads may read copies of one list.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace weir::core {

template <class T>
class shared_list {
 public:
  shared_list() = default;
  shared_list(std::vector<T> of) {
    if (of.empty()) return;
    of.shrink_to_fit();
    auto kept = std::make_shared<const std::vector<T>>(std::move(of));
    all_ = *kept;
    kept_ = std::move(kept);
  }
  shared_list(std::initializer_list<T> of) : shared_list(std::vector<T>(of)) {}
  shared_list(const shared_list&) = default;
  shared_list(shared_list&& other) noexcept
      : kept_(std::move(other.kept_)), all_(std::exchange(other.all_, {})) {}
  shared_list& operator=(shared_list other) noexcept {
    kept_.swap(other.kept_);
    std::swap(all_, other.all_);
    return *this;
  }
  ~shared_list() = default;

  const T* data() const noexcept { return all_.data(); }
  std::size_t size() const noexcept { return all_.size(); }
  bool empty() const noexcept { return all_.empty(); }
  auto begin() const noexcept { return all_.begin(); }
  auto end() const noexcept { return all_.end(); }
  const T& front() const { return all_.front(); }
  const T& operator[](std::size_t i) const { return all_[i]; }

  // Bytes of the list, which all copies have together.
  std::uint64_t bytes() const noexcept { return all_.size_bytes(); }

  friend bool operator==(const shared_list& a, const std::vector<T>& b) { return std::ranges::equal(a, b); }
  friend bool operator==(const shared_list& a, const shared_list& b) { return std::ranges::equal(a, b); }

 private:
  std::shared_ptr<const std::vector<T>> kept_;
  std::span<const T> all_;  // of kept_
};

}  // namespace weir::core
