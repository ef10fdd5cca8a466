// schema_kit.h — walks texts through a schema, byte by byte, over a vocabulary of single bytes.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/grammar/constraint.h"
#include "core/grammar/schema.h"
#include "tests/support/byte_views.h"
#include "tests/support/compact_json.h"

namespace weir::tests {

// A schema that was compiled, or why it was not.
struct schema_under_test {
  std::shared_ptr<core::grammar::constraint> constraint;
  std::optional<core::error> refusal;
  std::vector<core::grammar::warning> warnings;

  explicit schema_under_test(std::string_view schema, bool strict = false) {
    auto rules = core::grammar::compile_schema(schema, {.strict = strict});
    if (!rules) {
      refusal = rules.error();
      return;
    }
    warnings = rules->warnings;
    auto made = core::grammar::constraint::make(std::move(*rules), byte_views());
    if (made) {
      constraint = *made;
    } else {
      refusal = made.error();
    }
  }

  // The index of the first byte that is not allowed, or the text's length where only the end is not allowed.
  // nullopt: the text is accepted.
  std::optional<std::size_t> refused_at(std::string_view text) const {
    REQUIRE(constraint);
    auto at = constraint->start();
    for (std::size_t i = 0; i < text.size(); ++i) {
      at = constraint->step(at, static_cast<unsigned char>(text[i]));
      REQUIRE(at != core::grammar::constraint::failed);
      if (at == core::grammar::constraint::dead) return i;
    }
    if (constraint->may_end(at)) return std::nullopt;
    return text.size();
  }
  bool accepts(std::string_view text) const { return !refused_at(text); }
};

// Checks that the schema is refused if `strict` is asked, and else compiled with one warning. Refusal and
// warning name the place, and their messages contain `message`.
inline void check_not_enforced(const char* schema, const char* place, const char* message) {
  INFO(schema);
  const schema_under_test strict(schema, true), relaxed(schema);
  REQUIRE(strict.refusal);
  CHECK(strict.refusal->param == place);
  CHECK(strict.refusal->message.find(message) != std::string::npos);
  REQUIRE(relaxed.constraint);
  REQUIRE(relaxed.warnings.size() == 1);
  CHECK(relaxed.warnings.front().where == place);
  CHECK(relaxed.warnings.front().message.find(message) != std::string::npos);
}

// Texts that a strict schema allows, and some that it does not.
struct schema_facts {
  const char* schema;
  std::vector<const char*> accepted;
  std::vector<const char*> refused;
};

inline void check_schemas(const std::vector<schema_facts>& all) {
  for (const schema_facts& f : all) {
    INFO(f.schema);
    const schema_under_test s(f.schema, true);
    if (s.refusal) FAIL_CHECK(s.refusal->message);
    if (!s.constraint) continue;
    for (const char* text : f.accepted) {
      INFO(text);
      CHECK(s.accepts(text));
    }
    for (const char* text : f.refused) {
      INFO(text);
      CHECK_FALSE(s.accepts(text));
    }
  }
}

}  // namespace weir::tests
