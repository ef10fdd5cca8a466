// key_turns.h — things that wait for one of a few places. Each key has a line of its own, keys take turns,
// and a key has one thing in progress at a time: however many things one key has, another key waits for at
// most one turn of it.
//
// Invariants:
//   1. Things of one key begin in the order in which they were added, each when the one before has ended.
//   2. Between two turns of a key, every other key that has things waiting and none in progress has one, if
//      take() lets it.
//
// Thread safety: none; the owner holds a lock.
#pragma once

#include <cassert>
#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

namespace weir::actors {

template <class T>
class key_turns {
 public:
  struct turn {
    std::uint64_t key = 0;
    T* what = nullptr;  // stays where it is until done()
  };

  // Takes `what` over, unless there is no memory: then it throws std::bad_alloc, and nothing has changed.
  void add(std::uint64_t key, T& what) {
    std::list<T> one;
    one.emplace_back(std::move(what));  // the node is allocated before the move
    try {
      const auto [at, is_new] = by_key_.try_emplace(key, ready_.end());
      if (is_new) {
        try {
          at->second = ready_.emplace(ready_.end(), line{key, {}, false});
        } catch (...) {
          by_key_.erase(at);
          throw;
        }
      }
      at->second->things.splice(at->second->things.end(), one);
    } catch (...) {
      what = std::move(one.front());
      throw;
    }
  }

  // The next thing for which may(thing) is true; it is in progress from now on. nullopt: there is none.
  template <class May>
  std::optional<turn> take(May may) {
    for (auto at = ready_.begin(); at != ready_.end(); ++at) {
      assert(!at->busy && !at->things.empty());
      if (!may(at->things.front())) continue;
      at->busy = true;
      busy_.splice(busy_.end(), ready_, at);
      return turn{at->key, &at->things.front()};
    }
    return std::nullopt;
  }

  // The key's thing in progress waits again: it is still the first of its key, and the key stands behind all
  // others. REQUIRES: one is in progress.
  void put_back(std::uint64_t key) noexcept {
    const auto at = by_key_.find(key)->second;
    assert(at->busy);
    at->busy = false;
    ready_.splice(ready_.end(), busy_, at);
  }

  // The key's thing in progress has ended: the key stands behind all others. REQUIRES: one is in progress.
  void done(std::uint64_t key) noexcept {
    const auto found = by_key_.find(key);
    const auto at = found->second;
    assert(at->busy);
    at->things.pop_front();
    if (!at->things.empty()) return put_back(key);
    by_key_.erase(found);
    busy_.erase(at);
  }

 private:
  struct line {
    std::uint64_t key;
    std::list<T> things;  // the first is in progress if `busy`
    bool busy;
  };
  using place = typename std::list<line>::iterator;

  std::list<line> ready_;  // keys with a thing that waits and none in progress, in the order of their turns
  std::list<line> busy_;   // keys with a thing in progress
  std::unordered_map<std::uint64_t, place> by_key_;
};

}  // namespace weir::actors
