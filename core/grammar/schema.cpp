#include "core/grammar/schema.h"

#include "core/grammar/schema/document.h"
#include "core/grammar/schema/keywords.h"
#include "core/grammar/schema/refused.h"
#include "core/grammar/schema/writer.h"

namespace weir::core::grammar {

result<compiled> compile_schema(std::string_view schema, const schema_options& options) {
  auto tree = read_json_tree(schema);
  if (!tree) return tree.error();
  compiled out{std::make_unique<rules>(), {}};
  try {
    const schema_document document(std::move(*tree));
    schema_keywords keywords(document, options.strict, out.warnings);
    schema_writer(*out.grammar, options.space, document.tree(), keywords).write();
  } catch (const schema_refused& no) {
    return bad_param(no.pointer, "{}", no.message);
  }
  return out;
}

}  // namespace weir::core::grammar
