#include "core/stop/token_table.h"

#include "core/text/tokenizer/tokenizer.h"

namespace weir::core {

token_table::token_table(const tokenizer& t) {
  starts_.reserve(t.vocab_size() + 1);
  for (std::uint32_t id = 0; id < t.vocab_size(); ++id) {
    starts_.push_back(bytes_.size());
    if (!t.is_special(static_cast<token_id>(id))) bytes_ += t.token_bytes(static_cast<token_id>(id));
  }
  starts_.push_back(bytes_.size());
}

}  // namespace weir::core
