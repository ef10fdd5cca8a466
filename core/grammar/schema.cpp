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

namespace {

// Calls write(writer) for the schema, and returns what it returns.
template <class Result, class Write>
result<Result> with_writer(rules& out, std::string_view schema, const schema_options& options,
                           std::vector<warning>& warnings, fuel* budget, Write write) {
  auto tree = read_json_tree(schema, {}, budget);
  if (!tree) return tree.error();
  try {
    const schema_document document(std::move(*tree));
    schema_keywords keywords(document, options.strict, warnings);
    schema_writer writer(out, options.space, options.notation, document.tree(), keywords);
    return write(writer);
  } catch (const schema_refused& no) {
    return bad_param(no.pointer, "{}", no.message);
  }
}

}  // namespace

result<part_id> write_schema(rules& out, std::string_view schema, const schema_options& options,
                             std::vector<warning>& warnings, fuel* budget) {
  return with_writer<part_id>(out, schema, options, warnings, budget,
                              [&](schema_writer& w) { return w.write(options.only_objects); });
}

result<std::vector<schema_parameters>> write_parameters(rules& out, std::string_view schema,
                                                        const schema_options& options, bool texts_apart,
                                                        std::vector<warning>& warnings, fuel* budget) {
  return with_writer<std::vector<schema_parameters>>(
      out, schema, options, warnings, budget,
      [&](schema_writer& w) { return w.write_parameters(texts_apart); });
}

}  // namespace weir::core::grammar
