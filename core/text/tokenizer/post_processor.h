// post_processor.h — the `post_processor` of tokenizer.json: the tokens added before and after a text.
//
// Only the template for a single text is read, since weir never encodes pairs of texts.
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <optional>
#include <vector>

#include "core/text/json_field.h"
#include "core/token.h"

namespace weir::core {

class post_processor {
 public:
  // Without `field`, no tokens are added. Throws refusal.
  explicit post_processor(const std::optional<json_field>& field);
  post_processor(std::vector<token_id> before, std::vector<token_id> after)
      : before_(std::move(before)), after_(std::move(after)) {}

  const std::vector<token_id>& before() const noexcept { return before_; }
  const std::vector<token_id>& after() const noexcept { return after_; }

 private:
  void add(const json_field& field);
  void add_template(const json_field& field);
  void wrap(const std::vector<token_id>& before, const std::vector<token_id>& after);

  std::vector<token_id> before_, after_;
};

}  // namespace weir::core
