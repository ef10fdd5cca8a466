// token_counts.h — which tokens a sequence has, and how often its output has each; penalties read it.
//
// The tokens of the prompt are a set that the jobs of a request share. Those of the output stand in an
// open-addressing table, sized once for all tokens that the output can ever have. Adding never allocates, and
// iteration costs the distinct tokens, not the vocabulary.
//
// Thread safety: the owner's thread only.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "core/token.h"
#include "core/token_set.h"

namespace weir::core {

class token_counts {
 public:
  static constexpr std::uint32_t not_in_prompt = 0xFFFF'FFFF;

  struct entry {
    token_id id;
    std::uint32_t in_output;  // how often; at least 1
    std::uint32_t in_prompt;  // index among prompt(), or not_in_prompt
  };

  token_counts() = default;
  // Room for `distinct` different tokens of the output. Memory that no token needs stays untouched.
  token_counts(token_set prompt, std::uint32_t distinct);

  // Bytes that the table has for so many different tokens of the output.
  static std::uint64_t bytes_for(std::uint32_t distinct) noexcept;

  bool enabled() const noexcept { return !slots_.empty(); }
  // Adds a token of the output. REQUIRES: enabled().
  void add(token_id id);
  // Takes the last token of the output back. REQUIRES: `id` is that token.
  void take_back(token_id id);

  std::span<const token_id> prompt() const noexcept { return prompt_.ids(); }
  // In the order of their first appearance.
  std::span<const entry> output() const noexcept { return output_; }
  // Different tokens of prompt and output together.
  std::size_t size() const noexcept { return prompt_.size() + output_alone_; }

  // Appends {id, times in the output} for each of size() tokens. Does not allocate where `to` has the room.
  template <class Seen>
  void append_to(std::vector<Seen>& to) const {
    const std::size_t first = to.size();
    for (const token_id id : prompt()) to.push_back({id, 0});
    for (const entry& e : output_) {
      if (e.in_prompt == not_in_prompt)
        to.push_back({e.id, e.in_output});
      else
        to[first + e.in_prompt].in_output = e.in_output;
    }
  }

 private:
  // The slot of a token, which is 0 where the output does not have it.
  std::size_t slot_of(token_id id) const;

  // Gives zeros that nobody has written to: a vector of them touches no page before it is used.
  struct untouched {
    using value_type = std::uint32_t;
    template <class>
    struct rebind {
      using other = untouched;
    };
    std::uint32_t* allocate(std::size_t n);
    void deallocate(std::uint32_t* p, std::size_t) noexcept { std::free(p); }
    void construct(std::uint32_t*) noexcept {}  // it is 0
    void construct(std::uint32_t* p, std::uint32_t value) noexcept { *p = value; }
    bool operator==(const untouched&) const = default;
  };

  token_set prompt_;
  // [a power of two, at least twice the entries] 0, or one more than an index into output_.
  std::vector<std::uint32_t, untouched> slots_;
  std::vector<entry> output_;
  std::size_t output_alone_ = 0;  // entries that are not in the prompt
};

}  // namespace weir::core
