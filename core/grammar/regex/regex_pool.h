// regex_pool.h — regular languages of bytes: made by operations, interned, walked byte by byte.
//
// A language is a term. Its derivative by a byte is the language of what may follow that byte (J. Brzozowski,
// «Derivatives of Regular Expressions», 1964; S. Owens et al., «Regular-expression derivatives re-examined»,
// 2009, for the classes of bytes). So union, intersection, complement and counted repeats are all exact, a
// count is never unrolled, and a state of the automaton is made only when a text reaches it.
//
// What front ends may assume:
// - Two equal terms have one id. Ids are valid in their pool alone.
// - Operations never fail. A pool that has run out of nodes, whose terms are nested too deep, or that gave up
//   a search says so in failure(), and its answers are worth nothing from there on: look once, at the end,
//   but before anything is refused as empty.
// - complement() is over all strings of bytes. Use both() with a language of text to stay inside of UTF-8.
//
// Thread safety: one thread builds. transition() may be called by any thread; it makes missing terms under a
// mutex of the pool. Other members that any thread may call say so.
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

// A hash of a term's structure, the same in every pool of this process. Caches that pools share use it as the
// name of the term's language. 128 bits, with a key that each process draws, so that nobody can make two
// terms collide.
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

  // From now on, making terms burns this fuel, which throws out_of_fuel; nullptr: it burns nothing. Only for
  // the thread that compiles: a pool that is shared must burn nothing.
  void use(fuel* budget) { budget_ = budget; }

  // Operations.
  regex_id bytes(const byte_set&);  // one byte of the set
  regex_id byte(unsigned char b);
  regex_id literal(std::string_view);           // exactly these bytes
  regex_id literals(std::vector<std::string>);  // one of these; costs their bytes
  // The language of an automaton from a state on. `separator` stands before each state that next_item()
  // gives. REQUIRES: no text of `separator` is empty if next_item() gives one.
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

  // A variable of the pool, for a language that the caller needs often. The caller chooses the name and sets
  // the value, which is `nothing` at first.
  regex_id& remembered(const std::string& name);

  // Empty: all is well. Else what this pool ran out of, for a message.
  const std::string& failure() const { return failure_; }
  std::uint32_t size() const { return nodes_.size(); }
  // Roughly the bytes that the pool holds. Safe in any thread.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // A new pool with these terms and their parts, which remembers nothing of a walk. Replaces each id in
  // `terms` by the id in the new pool. Safe in any thread.
  std::shared_ptr<regex_pool> copy(std::span<regex_id> terms) const;

  // Whether the empty text is in the language.
  bool nullable(regex_id r) const { return nodes_[r].nullable; }
  const regex_print& print(regex_id r) const { return nodes_[r].print; }

  // The language of what may follow `b`. The result is `nothing` exactly where no text of the language begins
  // with `b`: a term with intersections or complements, which can be empty unseen, is searched for a text.
  // A search that needs more than `search_limit` terms, or more work than `search_work`, gives up: the
  // language counts as not empty, and exhausted() is true from then on. What the pool says is then worth
  // nothing. Safe in any thread.
  regex_id transition(regex_id r, unsigned char b);
  bool exhausted() const { return exhausted_.load(std::memory_order_relaxed); }
  // Whether any text is in the language; searches and gives up as transition() does.
  bool live(regex_id r);

  // Bytes that transition() treats alike have one class.
  struct byte_classes {
    std::array<std::uint8_t, 256> of{};        // class of a byte
    std::vector<std::uint8_t> representative;  // a byte of each class
  };
  const byte_classes& classes(regex_id r);
  // The classes of several terms together: each of the terms treats the bytes of one class alike.
  const byte_classes& classes(std::span<const regex_id> all);

  // A shortest text of the language; of several, one with letters and digits rather than other bytes. `found`
  // is false if no text has at most `max_bytes` bytes.
  struct shortest_text {
    bool found = false;
    std::string text;
  };
  shortest_text shortest(regex_id r, std::size_t max_bytes);

  // Whether the term is a loop of at most `max` characters of a set, and then something that is not empty and
  // begins with no such character. If so, a string of these characters may begin a text of the term exactly
  // if it has at most `max` of them. `characters`: the language of one character of the set, made while the
  // pool was built. Safe in any thread.
  struct character_loop {
    bool found = false;
    std::uint32_t max = 0;
  };
  character_loop loop_over(regex_id r, regex_id characters);
  // The bytes of a loop at the beginning of the term, each of them one repetition. After any string of at
  // most `max` of these bytes the term can go on and may not end. `max` 0: no such loop was found. Safe in
  // any thread.
  struct byte_loop_found {
    byte_set bytes;
    std::uint32_t max = 0;
  };
  byte_loop_found byte_loop(regex_id r);
  // Whether the term can go on and may not end after any string of these characters. Also false if the search
  // for the answer would be long. Safe in any thread.
  bool open_to(regex_id r, regex_id characters);
  // Calls visit(byte) for the bytes with which every text of the term begins, until visit() returns false.
  // Only bytes that stand alone at the front of the term are found. Safe in any thread.
  template <class Visit>
  void each_fixed_byte(regex_id r, Visit visit) const;
  // Whether the term begins with «some language except another», such as any name except the declared ones.
  // `base` is the term without the exception, `taken` the exception. Take a string that begins no text of
  // `taken` and of which no beginning is a text of `taken`: it may begin a text of the term exactly if it may
  // begin a text of `base`.
  struct exception {
    bool found = false;
    regex_id base = nothing, taken = nothing;
  };
  exception exception_of(regex_id r);
  // True: the language has finitely many texts. False: it may have infinitely many.
  bool finite(regex_id r) const;
  // The language of one character of token_trie::plain(), for loop_over() and open_to(); `nothing`: not set.
  void set_plain_characters(regex_id r) { plain_characters_ = r; }
  regex_id plain_characters() const { return plain_characters_; }

  // A language that allows the same next `horizon` bytes: counts above the horizon are cut. Terms inside
  // intersections and complements stay as they are. Safe in any thread.
  regex_id within(regex_id r, std::uint32_t horizon);

 private:
  enum class kind : std::uint8_t { nothing, empty, bytes, concat, either, both, complement, repeat, state };
  enum class life : std::uint8_t { unknown, live, dead };
  using row = std::unique_ptr<std::atomic<regex_id>[]>;  // transitions of a term, one for each class

  struct node {
    kind what = kind::nothing;
    bool nullable = false;
    bool plain = true;               // has no intersection or complement: live unless it is `nothing`
    bool counted = false;            // within() may change it
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
  static constexpr std::uint32_t search_limit = 200'000;   // terms
  static constexpr std::uint64_t search_work = 2'000'000;  // some second: counted as in work_

  regex_id intern(node&& n);
  void give_up(std::string why);  // failure() and exhausted() from here on
  std::vector<regex_id> reached_from(std::span<const regex_id>) const;  // these terms and their parts, sorted
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
  bool flatten(kind what, std::vector<regex_id>& members);

  // Under mutex_.
  regex_id derive(regex_id, unsigned char b);
  regex_id derive_new(regex_id, unsigned char b);
  regex_id derive_state(regex_id, unsigned char b);
  regex_id slow_transition(regex_id, unsigned char b);
  const byte_classes& classes_of(regex_id);
  std::uint32_t partition_of(byte_classes);  // its index; equal partitions have one index
  std::uint32_t partition_by(const std::vector<std::uint32_t>& sets);
  std::vector<std::uint32_t> first_sets(regex_id);
  std::atomic<regex_id>* row_of(regex_id);
  bool search_life(regex_id);
  // `unknown`: more terms or more work would be needed.
  life search_breadth(regex_id, std::size_t most_terms, std::uint64_t most_work);
  life search_depth(regex_id, std::size_t most_terms, std::uint64_t most_work);
  life life_of(regex_id) const;
  void remember_life(regex_id, life);
  life all_live(const std::unordered_map<regex_id, regex_id>& from, regex_id);
  life all_dead(const std::unordered_map<regex_id, regex_id>& from);
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
  std::uint64_t work_ = 0;  // derivatives, and members of the terms that were made for them
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
