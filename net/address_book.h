// address_book.h — how many sockets each address has open, so that nobody takes them all.
//
// Thread safety: every member from any thread; an entry is one thread's at a time.
//
// Invariant: an address is in the book exactly as long as an entry of it lives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weir::net {

class address_book : public std::enable_shared_from_this<address_book> {
 public:
  // Addresses in `trusted` are not counted: a proxy's, the machine's own.
  address_book(std::size_t most, std::vector<std::string> trusted)
      : most_(most), trusted_(std::move(trusted)) {}

  // One socket, for as long as it lives.
  class entry {
   public:
    entry() = default;
    entry(entry&& other) noexcept = default;
    entry& operator=(entry&& other) noexcept {
      std::swap(book_, other.book_);
      std::swap(address_, other.address_);
      std::swap(crowded_, other.crowded_);
      std::swap(hopeless_, other.hopeless_);
      return *this;
    }
    ~entry() {
      if (book_) book_->leave(address_);
    }
    bool crowded() const noexcept { return crowded_; }    // more than may be: tell it so
    bool hopeless() const noexcept {
      return hopeless_;
    }  // so many more that nobody has time to tell it: hang up

   private:
    friend class address_book;
    std::shared_ptr<address_book> book_;
    std::string address_;
    bool crowded_ = false, hopeless_ = false;
  };

  entry enter(std::string address) {
    entry e;
    if (std::find(trusted_.begin(), trusted_.end(), address) != trusted_.end()) return e;
    e.book_ = shared_from_this();
    e.address_ = std::move(address);
    const std::lock_guard lock(mutex_);
    const std::size_t n = ++open_[e.address_];
    e.crowded_ = n > most_;
    e.hopeless_ = n > most_ + told_;
    return e;
  }

  std::size_t addresses() const {
    const std::lock_guard lock(mutex_);
    return open_.size();
  }

 private:
  void leave(const std::string& address) {
    const std::lock_guard lock(mutex_);
    const auto it = open_.find(address);
    if (--it->second == 0) open_.erase(it);
  }

  static constexpr std::size_t told_ = 64;
  const std::size_t most_;
  const std::vector<std::string> trusted_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::size_t> open_;
};

}  // namespace weir::net
