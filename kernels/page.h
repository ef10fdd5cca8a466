// page.h — the size of a page of KV memory.
#pragma once

#include <cstdint>

namespace weir::kernels {

// Tokens in a page of KV memory: one constant for every backend and for the engine.
inline constexpr std::uint32_t page_tokens = 64;

}  // namespace weir::kernels
