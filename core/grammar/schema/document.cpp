#include "core/grammar/schema/document.h"

#include <algorithm>

#include "core/grammar/schema/refused.h"
#include "core/grammar/schema/uri.h"

namespace weir::core::grammar {
namespace {

struct known_draft {
  std::string_view uri;
  schema_draft draft;
};

constexpr known_draft known_drafts[] = {
    {"json-schema.org/draft-04/schema", schema_draft::d4},
    {"json-schema.org/draft-06/schema", schema_draft::d6},
    {"json-schema.org/draft-07/schema", schema_draft::d7},
    {"json-schema.org/draft/2019-09/schema", schema_draft::d2019},
    {"json-schema.org/draft/2020-12/schema", schema_draft::d2020},
    {"json-schema.org/schema", schema_draft::d2020},
};

// What a value of the document is.
enum class role : std::uint8_t {
  schema,
  schemas_by_name,  // an object whose members are schemas
  schema_list,
  data,     // of enum and its like
  unknown,  // below a keyword that is not known: it may be a schema that a `$ref` names
};

struct known_keyword {
  std::string_view name;
  role of;
};
constexpr known_keyword known_keywords[] = {
    {"$defs", role::schemas_by_name},
    {"additionalItems", role::schema},
    {"additionalProperties", role::schema},
    {"allOf", role::schema_list},
    {"anyOf", role::schema_list},
    {"const", role::data},
    {"contains", role::schema},
    {"contentSchema", role::schema},
    {"default", role::data},
    {"definitions", role::schemas_by_name},
    {"dependencies", role::schemas_by_name},
    {"dependentSchemas", role::schemas_by_name},
    {"else", role::schema},
    {"enum", role::data},
    {"example", role::data},
    {"examples", role::data},
    {"if", role::schema},
    {"items", role::schema},
    {"not", role::schema},
    {"oneOf", role::schema_list},
    {"patternProperties", role::schemas_by_name},
    {"prefixItems", role::schema_list},
    {"properties", role::schemas_by_name},
    {"propertyNames", role::schema},
    {"then", role::schema},
    {"unevaluatedItems", role::schema},
    {"unevaluatedProperties", role::schema},
};

// The role of the value of a keyword.
role role_of(std::string_view keyword, json_kind kind) {
  const auto known = std::ranges::find(known_keywords, keyword, &known_keyword::name);
  if (known == std::end(known_keywords)) return role::unknown;
  const bool is_list = keyword == "items" && kind == json_kind::array;  // before 2020-12
  return is_list ? role::schema_list : known->of;
}

// Below an unknown keyword any object may be a schema, but not what is the data of one.
role role_in_unknown(std::string_view key) {
  return role_of(key, json_kind::object) == role::data ? role::data : role::unknown;
}

// Parents have smaller ids than their children.
std::vector<role> roles_in(const json_tree& tree) {
  std::vector<role> roles(tree.size(), role::schema);
  for (json_node_id id = json_tree::root + 1; id < tree.size(); ++id) {
    const json_node& n = tree[id];
    const json_node& parent = tree[n.parent];
    const bool has_key = parent.kind == json_kind::object;
    switch (roles[n.parent]) {
      case role::schemas_by_name:
      case role::schema_list:
        break;
      case role::schema:
        roles[id] = has_key ? role_of(parent.names[n.place], n.kind) : role::unknown;
        break;
      case role::unknown:
        roles[id] = has_key ? role_in_unknown(parent.names[n.place]) : role::unknown;
        break;
      case role::data:
        roles[id] = role::data;
        break;
    }
  }
  return roles;
}

std::string_view without_fragment(std::string_view uri) {
  return uri.substr(0, std::min(uri.find('#'), uri.size()));
}

}  // namespace

schema_document::schema_document(json_tree tree)
    : tree_(std::move(tree)), base_of_(tree_.size(), 0), bases_{""} {
  read_draft();
  read_names();
}

void schema_document::read_draft() {
  const auto named = keyword(json_tree::root, "$schema");
  if (!named) return;
  const json_node& n = tree_[*named];
  if (n.kind != json_kind::string)
    refuse_schema("/$schema", "$schema must be a string, not {}", name(n.kind));
  std::string_view uri = without_fragment(n.text);
  for (std::string_view scheme : {"http://", "https://"})
    if (uri.starts_with(scheme)) uri.remove_prefix(scheme.size());
  for (const known_draft& d : known_drafts) {
    if (uri != d.uri) continue;
    draft_ = d.draft;
    return;
  }
  refuse_schema("/$schema",
                "$schema \"{}\" is not supported: drafts 4, 6, 7, 2019-09 and 2020-12 of json-schema.org are",
                n.text.substr(0, 100));
}

// Values below unknown keywords are read last, so that they take no name that a schema has. An `$id` there
// counts only if a `$ref` means it.
void schema_document::read_names() {
  const auto roles = roles_in(tree_);
  resources_.emplace("", json_tree::root);
  for (const bool known : {true, false})
    for (json_node_id id = 0; id < tree_.size(); ++id) {
      if ((roles[id] != role::unknown && roles[id] != role::data) != known) continue;
      tree_.burn();
      if (id != json_tree::root) base_of_[id] = base_of_[tree_[id].parent];
      const bool named = roles[id] == role::schema || roles[id] == role::unknown;
      if (named && tree_[id].kind == json_kind::object) name_parts(id, bases_[base_of_[id]]);
    }
}

void schema_document::name_parts(json_node_id schema, const std::string& outer) {
  const auto text = [&](std::string_view key) -> std::string_view {
    const auto at = keyword(schema, key);
    return at && tree_[*at].kind == json_kind::string ? std::string_view(tree_[*at].text)
                                                      : std::string_view();
  };
  std::string base = outer;
  std::string_view id = text("$id");
  if (id.empty() && draft_ <= schema_draft::d4) id = text("id");
  if (id.empty() && draft_ == schema_draft::d2020 && !keyword(json_tree::root, "$schema")) {
    // Without `$schema`, draft 4's `id` is understood where it is a URI and no member's name.
    if (text("id").find_first_of(":#/") != std::string_view::npos) id = text("id");
  }
  const bool hidden = ref_stands_alone() && keyword(schema, "$ref").has_value();
  if (!id.empty() && !hidden) {
    const std::string_view uri = without_fragment(id);
    const std::string_view fragment = id.size() > uri.size() ? id.substr(uri.size() + 1) : "";
    if (!uri.empty()) {
      base = resolve_uri(outer, uri);
      base_of_[schema] = static_cast<std::uint32_t>(bases_.size());
      bases_.push_back(base);
      resources_.emplace(base, schema);
    }
    if (!fragment.empty() && fragment.front() != '/')
      anchors_.emplace(base + "#" + std::string(fragment), schema);
  }
  for (std::string_view key : {"$anchor", "$dynamicAnchor"}) {
    const std::string_view anchor = text(key);
    if (anchor.empty() || draft_ < schema_draft::d2019) continue;
    anchors_.emplace(base + "#" + std::string(anchor), schema);
    if (key == "$dynamicAnchor") ++dynamic_[std::string(anchor)];
  }
  if (const auto r = keyword(schema, "$recursiveAnchor"); r && tree_[*r].truth) ++recursive_anchors_;
}

json_node_id schema_document::target(json_node_id from, std::string_view reference,
                                     std::string_view keyword) const {
  const std::string& base = bases_[base_of_[from]];
  const std::string_view uri = without_fragment(reference);
  const std::string fragment =
      percent_decoded(reference.size() > uri.size() ? reference.substr(uri.size() + 1) : std::string_view());
  const std::string document = uri.empty() ? base : resolve_uri(base, uri);
  const auto resource = resources_.find(document);
  if (resource == resources_.end())
    refuse_schema(tree_.pointer(from),
                  "{} \"{}\" refers to another document, which is not supported: put that schema under $defs",
                  keyword, reference.substr(0, 200));
  if (fragment.empty()) return resource->second;
  std::optional<json_node_id> found;
  if (fragment.front() == '/') {
    found = tree_.at_pointer(resource->second, fragment);
  } else if (const auto at = anchors_.find(document + "#" + fragment); at != anchors_.end()) {
    found = at->second;
  }
  if (!found)
    refuse_schema(tree_.pointer(from), "{} \"{}\" refers to nothing in the schema", keyword,
                  reference.substr(0, 200));
  return *found;
}

json_node_id schema_document::dynamic_target(json_node_id from, std::string_view reference,
                                             std::string_view keyword) const {
  const json_node_id static_target = target(from, reference, keyword);
  if (keyword == "$recursiveRef") {
    if (recursive_anchors_ <= 1) return static_target;
  } else {
    const std::size_t hash = reference.find('#');
    const auto anchor = this->keyword(static_target, "$dynamicAnchor");
    const bool dynamic =
        hash != reference.npos && anchor && reference.substr(hash + 1) == tree_[*anchor].text;
    if (!dynamic) return static_target;
    const auto count = dynamic_.find(tree_[*anchor].text);
    if (count != dynamic_.end() && count->second <= 1) return static_target;
  }
  refuse_schema(tree_.pointer(from),
                "{} \"{}\" depends on how the schema is reached, which is not supported: use $ref", keyword,
                reference.substr(0, 200));
}

}  // namespace weir::core::grammar
