// address_book.h — counts the open sockets of each client address, so that one client cannot take them all.
//
// Thread safety: the book from any thread; an entry from one thread at a time.
//
// Invariant: an address is in the book exactly as long as an entry with this address exists.
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
  // `most`: sockets that one address may have. Addresses in `trusted` are not counted: those of proxies and
  // of the machine itself.
  address_book(std::size_t most, std::vector<std::string> trusted)
      : most_(most), trusted_(std::move(trusted)) {}

  // Counts one socket until it is destroyed. An empty entry counts nothing.
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
    // The address had more than `most` sockets when this one was opened. The client gets a refusal.
    bool crowded() const noexcept { return crowded_; }
    // The address had so many sockets that the connection is closed without an answer.
    bool hopeless() const noexcept { return hopeless_; }

   private:
    friend class address_book;
    std::shared_ptr<address_book> book_;
    std::string address_;
    bool crowded_ = false, hopeless_ = false;
  };

  // Counts a new socket of `address`.
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

  // Number of addresses in the book.
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

  static constexpr std::size_t told_ = 64;  // sockets beyond most_ that still get a refusal
  const std::size_t most_;
  const std::vector<std::string> trusted_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::size_t> open_;  // [address] its sockets; guarded by mutex_
};

}  // namespace weir::net
