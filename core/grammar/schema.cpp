#include "core/grammar/schema.h"

#include "core/grammar/schema/document.h"
#include "core/grammar/schema/keywords.h"
#include "core/grammar/schema/refused.h"
#include "core/grammar/schema/writer.h"

namespace weir::core::grammar {

result<compiled> compile_schema(std::string_view schema, const schema_options& options, fuel* budget) {
  compiled out{std::make_unique<rules>(), {}};
  const burning burns(*out.grammar, budget);
  const auto root = write_schema(*out.grammar, schema, options, out.warnings, budget);
  if (!root) return root.error();
  out.grammar->set_root(*root);
  return out;
}

result<part_id> write_schema(rules& out, std::string_view schema, const schema_options& options,
                             std::vector<warning>& warnings, fuel* budget) {
  auto tree = read_json_tree(schema, {}, budget);
  if (!tree) return tree.error();
  try {
    const schema_document document(std::move(*tree));
    schema_keywords keywords(document, options.strict, warnings);
    schema_writer(out, options.space, document.tree(), keywords).write();
  } catch (const schema_refused& no) {
    return bad_param(no.pointer, "{}", no.message);
  }
  return out.root();
}

}  // namespace weir::core::grammar
