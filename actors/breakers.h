// breakers.h — the tokens that DRY's breakers are made of, found in a model's vocabulary.
//
// A token that has the text of a breaker is one by itself. A token that ends with the beginning of the text
// is one together with the tokens of the text's rest. Finding them looks at every token of the vocabulary, so
// that the latest lists are kept.
//
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/sample/dry.h"
#include "core/text/tokenizer/tokenizer.h"

namespace weir::actors {

class breaker_store {
 public:
  // REQUIRES: no text is empty; all calls have the same tokenizer and vocabulary.
  std::shared_ptr<const core::dry_breakers> find(const std::vector<std::string>& texts,
                                                 const core::tokenizer& t, std::uint32_t vocab_size);

 private:
  static constexpr std::size_t most_kept = 8;
  using kept = std::pair<std::vector<std::string>, std::shared_ptr<const core::dry_breakers>>;

  std::mutex mutex_;
  std::vector<kept> kept_;  // the latest last
};

}  // namespace weir::actors
