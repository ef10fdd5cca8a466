// document.h — a schema as a document: its draft, the names of its parts, and what each reference refers to.
//
// References are resolved inside the document alone; nothing is ever fetched.
//
// Thread safety: immutable once read; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/grammar/schema/json_tree.h"

namespace weir::core::grammar {

enum class schema_draft { d4, d6, d7, d2019, d2020 };

class schema_document {
 public:
  // Throws schema_refused for a `$schema` that is no string or is not known. Of two parts with one name, the
  // first keeps the name.
  explicit schema_document(json_tree tree);

  const json_tree& tree() const { return tree_; }
  schema_draft draft() const { return draft_; }
  // Up to draft 7, `$ref` is alone: what stands beside it is ignored.
  bool ref_stands_alone() const { return draft_ <= schema_draft::d7; }

  // What `$ref` with this text, written in the schema `from`, refers to. Throws schema_refused if the
  // reference is to another document or to nothing; its message names `keyword`.
  json_node_id target(json_node_id from, std::string_view reference, std::string_view keyword) const;
  // The same for `$dynamicRef` and `$recursiveRef`. Throws where the target depends on how the schema is
  // reached.
  json_node_id dynamic_target(json_node_id from, std::string_view reference, std::string_view keyword) const;

  // The value of a keyword of a schema; nullopt: it has none, or the schema is no object.
  std::optional<json_node_id> keyword(json_node_id schema, std::string_view name) const {
    return tree_.member(schema, name);
  }

 private:
  void read_draft();
  void read_names();
  void name_parts(json_node_id schema, const std::string& base);

  json_tree tree_;
  schema_draft draft_ = schema_draft::d2020;
  std::vector<std::uint32_t> base_of_;             // of each node: index in bases_
  std::vector<std::string> bases_;                 // URIs
  std::map<std::string, json_node_id> resources_;  // by URI, without a fragment
  std::map<std::string, json_node_id> anchors_;    // by URI, # and name
  std::map<std::string, std::uint32_t> dynamic_;   // how many schemas have this name as `$dynamicAnchor`
  std::uint32_t recursive_anchors_ = 0;            // schemas with `$recursiveAnchor: true`
};

}  // namespace weir::core::grammar
