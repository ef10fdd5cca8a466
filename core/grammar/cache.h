// cache.h — constraints that were compiled before, for all jobs of a process.
//
// The first caller that asks for a constraint compiles it and passes the answer to settle(). Callers that
// asked meanwhile get the same answer. The cache itself does not compile, wait, or start a thread.
//
// Invariants:
// 1. At most one caller at a time compiles the constraint of a key, from ask() to settle().
// 2. Entries hold at most `max_bytes`. An entry is measured by settle() and by every ask() for it. The least
//    recently asked for is dropped first. A caller keeps the constraint that it was given.
// 3. Refusals are kept for `refusals`, those for a deadline (errc::overloaded) for `late`, so that a slow
//    constraint that is sent again costs no time again. Other errors, such as a cancel, say nothing of the
//    constraint and are never kept.
//
// Thread safety: any thread; a mutex guards the map. Waiters are called without it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/clock.h"
#include "core/grammar/compile.h"
#include "core/grammar/constraint.h"

namespace weir::core::grammar {

// Names a constraint as it was sent, its options, and a vocabulary. 128 bits of a hash with a key that each
// process draws, so that nobody can make two constraints collide.
struct cache_key {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const cache_key&, const cache_key&) = default;
};
// `vocabulary`: a text that differs where vocabularies or their ending tokens differ.
cache_key key_of(const constraint_text&, std::string_view vocabulary);

class constraint_cache {
 public:
  struct options {
    std::size_t max_bytes = std::size_t{256} << 20;
    std::size_t max_bytes_of_one = std::size_t{16} << 20;  // a larger one is replaced by a fresh one
    duration refusals = std::chrono::seconds(60), late = std::chrono::seconds(10);
  };
  struct ready {
    std::shared_ptr<constraint> over;
    std::vector<warning> warnings;
  };
  using answer = result<ready>;
  using waiter = std::function<void(const answer&)>;

  explicit constraint_cache(const options& how) : options_(how) {}
  constraint_cache() : constraint_cache(options{}) {}

  struct claim {
    std::optional<answer> known;
    bool compile = false;  // the asker compiles, and calls settle() once, whatever happens
  };
  // Neither `known` nor `compile`: another caller compiles, and its settle() calls `told` on its thread. If
  // the answer is errc::unavailable, this caller may ask again: the client of the other caller disconnected.
  claim ask(const cache_key&, time_point now, waiter told);
  // What is known; nullopt: nothing is. Claims nothing.
  std::optional<answer> find(const cache_key&, time_point now);
  // REQUIRES: ask() told this caller to compile. Throws std::bad_alloc where there is no memory, and has
  // changed nothing then.
  void settle(const cache_key&, const answer&, time_point now);

  std::size_t bytes() const;
  std::size_t size() const;  // entries, refusals too

 private:
  struct entry {
    cache_key key;
    answer what;
    std::size_t bytes = 0;
    time_point until{};  // errors
  };
  struct hash_key {
    std::size_t operator()(const cache_key& k) const noexcept { return k.low; }
  };
  using place = std::list<entry>::iterator;

  std::optional<answer> look_up(const cache_key&, time_point now);  // under mutex_
  answer renewed(const cache_key&, answer);
  void measure(const cache_key&, const ready&);
  void keep(const cache_key&, const answer&, time_point now);  // under mutex_, like drop() and shrink()
  duration lasts(const error&) const;                          // how long the error is kept
  void drop(place);
  void shrink();

  const options options_;
  mutable std::mutex mutex_;
  std::list<entry> entries_;  // what was asked for last stands first
  std::unordered_map<cache_key, place, hash_key> known_;
  std::unordered_map<cache_key, std::vector<waiter>, hash_key> pending_;
  std::size_t bytes_ = 0;
};

}  // namespace weir::core::grammar
