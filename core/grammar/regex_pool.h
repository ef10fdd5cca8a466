// regex_pool.h — regular languages of bytes: made by operations, interned, walked byte by byte.
//
// A language is a term. Its derivative by a byte is the language of what may follow that byte (J. Brzozowski,
// «Derivatives of Regular Expressions», 1964; S. Owens et al., «Regular-expression derivatives re-examined»,
// 2009, for the classes of bytes). So union, intersection, complement and counted repeats are all exact, a
// count is never unrolled, and states of the automaton are made only when a text comes to them.
//
// What front ends may assume:
// - Two equal terms have one id. Ids are valid in their pool alone.
// - Operations never fail. A pool that has run out of nodes, or whose terms are nested too deep, answers
//   `nothing` from there on and says so in failure(): look once, at the end.
// - complement() is over all strings of bytes. Use both() with a language of text to stay inside of UTF-8.
//
// Thread safety: building: one thread. Walking: transition() from any thread; what it does not find it makes
// under a mutex of the pool. The rest says what it needs.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/grammar/automaton.h"
#include "core/grammar/fuel.h"
#include "core/grammar/stable_store.h"

namespace weir::core::grammar {

using regex_id = std::uint32_t;
using byte_set = std::bitset<256>;

inline constexpr std::uint32_t unbounded = 0xFFFF'FFFF;  // as the maximum of a repeat

// A hash of what a term is, the same in every pool of this process: names the term's language in caches that
// pools share. 128 bits, with a key that each process draws, so that nobody can make two terms collide.
struct regex_print {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const regex_print&, const regex_print&) = default;
};

class regex_pool {
 public:
  static constexpr regex_id nothing = 0;   // no text at all
  static constexpr regex_id empty = 1;     // the empty text
  static constexpr regex_id anything = 2;  // every string of bytes

  explicit regex_pool(std::uint32_t max_nodes = 500'000);
  ~regex_pool();
  regex_pool(const regex_pool&) = delete;
  regex_pool& operator=(const regex_pool&) = delete;

  // What is made from here on burns this fuel, which throws out_of_fuel; nullptr: nothing does. For one who
  // compiles: a pool that is shared burns nothing.
  void use(fuel* budget) { budget_ = budget; }

  // Operations.
  regex_id bytes(const byte_set&);  // one byte of the set
  regex_id byte(unsigned char b);
  regex_id literal(std::string_view);           // exactly these bytes
  regex_id literals(std::vector<std::string>);  // one of these, at a cost of their bytes
  // What an automaton takes from a state on. `separator` stands before what next_item() gives;
  // it has a byte at least.
  regex_id language(std::shared_ptr<const automaton> by, const automaton::state& at,
                    regex_id separator = empty);
  regex_id concat(regex_id, regex_id);
  regex_id concat(std::span<const regex_id>);
  regex_id either(regex_id, regex_id);         // union
  regex_id either(std::span<const regex_id>);  // of none: nothing
  regex_id both(regex_id, regex_id);           // intersection
  regex_id complement(regex_id);
  regex_id repeat(regex_id, std::uint32_t min, std::uint32_t max);  // REQUIRES: min <= max
  regex_id maybe(regex_id r) { return repeat(r, 0, 1); }
  regex_id any_number(regex_id r) { return repeat(r, 0, unbounded); }

  // A place for a language that is asked for often, by a name of the caller's; `nothing` at first.
  regex_id& remembered(const std::string& name);

  // Empty: all is well. Else what this pool ran out of, for a message.
  const std::string& failure() const { return failure_; }
  std::uint32_t size() const { return nodes_.size(); }
  // About what the pool holds. Safe in any thread.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // A pool that has these terms and what they are made of, and remembers nothing of a walk. `terms` become
  // its ids. Safe in any thread.
  std::shared_ptr<regex_pool> copy(std::span<regex_id> terms) const;

  // Whether the empty text is in the language.
  bool nullable(regex_id r) const { return nodes_[r].nullable; }
  const regex_print& print(regex_id r) const { return nodes_[r].print; }

  // The language of what may follow `b`. It is `nothing` exactly where no text of the language begins so:
  // terms with intersections and complements, whose emptiness cannot be seen, are searched for a text.
  // Where such a search needs more than `search_limit` terms the answer is `nothing` and exhausted() is true
  // from there on. Safe in any thread.
  regex_id transition(regex_id r, unsigned char b);
  bool exhausted() const { return exhausted_.load(std::memory_order_relaxed); }
  // Whether any text is in the language; searches as transition() does.
  bool live(regex_id r);

  // Bytes that transition() treats alike have one class.
  struct byte_classes {
    std::array<std::uint8_t, 256> of{};        // class of a byte
    std::vector<std::uint8_t> representative;  // a byte of each class
  };
  const byte_classes& classes(regex_id r);
  // Of several terms: bytes in one class are treated alike by each of them.
  const byte_classes& classes(std::span<const regex_id> all);

  // A shortest text of the language, among those the one whose bytes come first by preference (letters and
  // digits before others). Empty with found = false where there is none within `max_bytes`.
  struct shortest_text {
    bool found = false;
    std::string text;
  };
  shortest_text shortest(regex_id r, std::size_t max_bytes);

  // Whether the term is a counted loop over characters of a set and nothing of what follows the loop begins
  // with one: its texts begin with at most `max` of them, one a repetition, and the empty text is not among
  // them. So of strings of these characters exactly those with at most `max` may begin a text.
  // `characters`: the language of one character, made while the pool was built. Safe in any thread.
  struct character_loop {
    bool found = false;
    std::uint32_t max = 0;
  };
  character_loop loop_over(regex_id r, regex_id characters);
  // The bytes that a loop at the beginning of the term goes round with, one byte a repetition. The term can
  // go on, and is not over, after any string of at most `max` of them. `max` 0: no such loop is found. Safe
  // in any thread.
  struct byte_loop_found {
    byte_set bytes;
    std::uint32_t max = 0;
  };
  byte_loop_found byte_loop(regex_id r);
  // Whether the term can go on, and is not over, after any string of these characters; false also where
  // that is not found out soon. Safe in any thread.
  bool open_to(regex_id r, regex_id characters);
  // The bytes with which every text of the term begins, as far as they are plain to see, until visit(byte)
  // says false. Safe in any thread.
  template <class Visit>
  void each_fixed_byte(regex_id r, Visit visit) const;
  // Whether the term begins with «some language but not another»: any name but the declared ones. `base` is
  // the term without the exception, `taken` the exception. As long as a string of bytes begins no text of
  // `taken`, and no beginning of it is one, it may begin a text of the term exactly where it may begin one of
  // `base`.
  struct exception {
    bool found = false;
    regex_id base = nothing, taken = nothing;
  };
  exception exception_of(regex_id r);
  // Whether it is plain to see that the language has finitely many texts.
  bool finite(regex_id r) const;
  // A language that the walk finds again (token_trie::plain()); `nothing` where none was set.
  void set_plain_characters(regex_id r) { plain_characters_ = r; }
  regex_id plain_characters() const { return plain_characters_; }

  // The same language as far as the next `horizon` bytes can tell: counts above the horizon are cut. Terms
  // below intersections and complements stay as they are. Safe in any thread.
  regex_id within(regex_id r, std::uint32_t horizon);

 private:
  enum class kind : std::uint8_t { nothing, empty, bytes, concat, either, both, complement, repeat, state };
  enum class life : std::uint8_t { unknown, live, dead };
  using row = std::unique_ptr<std::atomic<regex_id>[]>;  // transitions of a state, one a class

  struct node {
    kind what = kind::nothing;
    bool nullable = false;
    bool plain = true;               // without intersection and complement: live unless it is `nothing`
    bool counted = false;            // `within` may change it
    std::uint16_t depth = 0;         // of the recursion that a derivative needs
    regex_id a = 0, b = 0;           // concat: its parts; complement, repeat: a; bytes: a is the set's index;
                                     // state: its index, and the separator if one may follow
    std::uint32_t min = 0, max = 0;  // repeat
    std::vector<regex_id> members;   // either, both: sorted by print; state: what it may begin with
    regex_print print;
    std::atomic<life> alive{life::unknown};
    std::atomic<std::uint32_t> partition{0};            // 1 + index in partitions_; 0: not known yet
    std::atomic<std::atomic<regex_id>*> next{nullptr};  // the row, once it is made

    node() = default;
    node& operator=(node&& o) noexcept;
  };

  struct automaton_state {
    std::shared_ptr<const automaton> by;
    regex_print print;  // of `by`
    regex_id separator = empty;
    automaton::state at{};
  };

  static constexpr regex_id unknown = 0xFFFF'FFFF;
  static constexpr std::uint16_t max_depth = 1'500;
  static constexpr std::uint32_t search_limit = 200'000;

  regex_id intern(node&& n);
  std::vector<regex_id> reached_from(std::span<const regex_id>) const;  // sorted, with these
  void count(std::size_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  regex_id concat_of(regex_id, regex_id);
  regex_id absorbed(regex_id a, regex_id b);
  std::optional<regex_id> one_loop(regex_id some, regex_id all);
  void join_loops(std::vector<regex_id>& members);
  bool has_all_bytes(regex_id all, regex_id some) const;
  bool loops_over(regex_id body, regex_id characters);
  bool ends_loop(regex_id rest, regex_id characters);
  bool goes_round(regex_id r, regex_id characters);
  regex_id either_of(std::vector<regex_id>);
  regex_id both_of(std::vector<regex_id>);
  regex_id complement_of(regex_id);
  regex_id repeat_of(regex_id, std::uint32_t min, std::uint32_t max);
  regex_id bytes_of(const byte_set&);
  regex_id state_of(const automaton_state&);
  bool flatten(kind what, std::vector<regex_id>& members) const;

  // Under mutex_.
  regex_id derive(regex_id, unsigned char b);
  regex_id derive_new(regex_id, unsigned char b);
  regex_id derive_state(regex_id, unsigned char b);
  regex_id slow_transition(regex_id, unsigned char b);
  const byte_classes& classes_of(regex_id);
  std::uint32_t partition_of(byte_classes);  // its index; equal ones have one
  std::uint32_t partition_by(const std::vector<std::uint32_t>& sets);
  std::vector<std::uint32_t> first_sets(regex_id) const;
  std::atomic<regex_id>* row_of(regex_id);
  bool search_life(regex_id);
  regex_id cut(regex_id, std::uint32_t horizon);
  regex_id cut_state(regex_id, std::uint32_t horizon);
  void hold(const automaton&);  // counts its bytes, once

  mutable std::mutex mutex_;
  stable_store<node> nodes_;
  stable_store<byte_classes> partitions_;
  stable_store<byte_set> sets_;
  stable_store<automaton_state> states_;
  struct tables;
  std::unique_ptr<tables> tables_;
  std::uint32_t max_nodes_;
  fuel* budget_ = nullptr;
  std::atomic<std::size_t> bytes_{0};
  regex_id plain_characters_ = nothing;
  std::string failure_;
  std::atomic<bool> exhausted_{false};
};

template <class Visit>
void regex_pool::each_fixed_byte(regex_id r, Visit visit) const {
  std::vector<regex_id> open{r};
  while (!open.empty()) {
    const auto& n = nodes_[open.back()];
    open.pop_back();
    if (n.what == kind::concat) {
      open.push_back(n.b);
      open.push_back(n.a);
    } else if (n.what != kind::bytes || sets_[n.a].count() != 1 ||
               !visit(static_cast<unsigned char>(sets_[n.a]._Find_first()))) {
      return;
    }
  }
}

}  // namespace weir::core::grammar
