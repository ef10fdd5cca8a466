// byte_views.h — a vocabulary with one token for each byte, ready for constraints.
//
// Thread safety: any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/grammar/masks/terminal_views.h"
#include "core/grammar/masks/token_trie.h"
#include "tests/support/toy_tokenizer.h"

namespace weir::tests {

inline std::shared_ptr<core::grammar::terminal_views> byte_views() {
  static const auto views = [] {
    std::vector<std::string> bytes;
    for (int b = 0; b < 256; ++b) bytes.emplace_back(1, static_cast<char>(b));
    return std::make_shared<core::grammar::terminal_views>(
        std::make_shared<const core::grammar::token_trie>(std::make_shared<toy_tokenizer>(std::move(bytes))));
  }();
  return views;
}

}  // namespace weir::tests
