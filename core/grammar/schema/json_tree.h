// json_tree.h — a JSON text as a tree that keeps the order of members and the digits of numbers as written.
//
// A schema needs both: members are generated in the order in which they are declared, and a bound such as 0.1
// or one of 30 digits is compared exactly.
//
// Thread safety: immutable once read; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/grammar/fuel.h"

namespace weir::core::grammar {

enum class json_kind : std::uint8_t { null, boolean, number, string, array, object };

const char* name(json_kind k) noexcept;  // "an object", for messages

using json_node_id = std::uint32_t;

struct json_node {
  json_kind kind = json_kind::null;
  bool truth = false;               // of a boolean
  std::string text;                 // of a string: decoded; of a number: as written
  std::vector<json_node_id> items;  // of an array; of an object: the members' values
  std::vector<std::string> names;   // of an object: the members' names, one an item
  json_node_id parent = 0;          // the root is its own parent
  std::uint32_t place = 0;          // index in the parent's items
};

struct json_tree_bounds {
  std::size_t bytes = 1 << 20;  // of the text
  std::size_t depth = 64;       // most arrays and objects inside one another
  std::size_t values = 500'000;
};

class json_tree {
 public:
  static constexpr json_node_id root = 0;

  const json_node& operator[](json_node_id id) const { return nodes_[id]; }
  std::size_t size() const { return nodes_.size(); }

  // The value of an object's member; nullopt: there is none, or `id` is no object.
  std::optional<json_node_id> member(json_node_id id, std::string_view name) const;
  // The place of a node as a JSON pointer (RFC 6901); "" is the root.
  std::string pointer(json_node_id id) const;
  // The inverse, from `from` on. The pointer is unescaped here. nullopt: there is no such place.
  std::optional<json_node_id> at_pointer(json_node_id from, std::string_view pointer) const;
  // Whether two values are equal as JSON Schema compares them: numbers by value, members in any order.
  bool equal(json_node_id a, json_node_id b) const;
  // A hash of a value. Equal values have equal hashes.
  std::uint64_t hash(json_node_id id) const;

  // Counts the work of reading the tree and of its own searches against the budget; throws out_of_fuel.
  void burn(std::uint64_t units = 1) const {
    if (budget_) budget_->burn(units);
  }

 private:
  friend class json_tree_reader;
  std::vector<json_node> nodes_;
  fuel* budget_ = nullptr;
};

// Parses a whole text. Error: invalid_param without `param`; a name that one object has twice is an error
// that names it. Reading burns `budget`, and so does any use of the tree. The budget has to live as long as
// the tree.
result<json_tree> read_json_tree(std::string_view text, const json_tree_bounds& most = {},
                                 fuel* budget = nullptr);

}  // namespace weir::core::grammar
