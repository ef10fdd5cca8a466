// gguf_types.h — the types of tensors in GGUF files, by their numbers.
//
// Thread safety: immutable data; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weir::core {

// A type of tensors. The name is that of ggml.
struct gguf_type {
  std::uint32_t id;
  std::string_view name;
  std::uint64_t block_weights, block_bytes;  // 0: parse_gguf() refuses the type
};
constexpr std::array gguf_types{
    gguf_type{0, "F32", 1, 4},         gguf_type{1, "F16", 1, 2},
    gguf_type{2, "Q4_0", 32, 18},      gguf_type{3, "Q4_1", 32, 20},
    gguf_type{4, "Q4_2", 0, 0},        gguf_type{5, "Q4_3", 0, 0},
    gguf_type{6, "Q5_0", 32, 22},      gguf_type{7, "Q5_1", 32, 24},
    gguf_type{8, "Q8_0", 32, 34},      gguf_type{9, "Q8_1", 0, 0},
    gguf_type{10, "Q2_K", 256, 84},    gguf_type{11, "Q3_K", 256, 110},
    gguf_type{12, "Q4_K", 256, 144},   gguf_type{13, "Q5_K", 256, 176},
    gguf_type{14, "Q6_K", 256, 210},   gguf_type{15, "Q8_K", 0, 0},
    gguf_type{16, "IQ2_XXS", 0, 0},    gguf_type{17, "IQ2_XS", 0, 0},
    gguf_type{18, "IQ3_XXS", 0, 0},    gguf_type{19, "IQ1_S", 0, 0},
    gguf_type{20, "IQ4_NL", 32, 18},   gguf_type{21, "IQ3_S", 0, 0},
    gguf_type{22, "IQ2_S", 0, 0},      gguf_type{23, "IQ4_XS", 256, 136},
    gguf_type{24, "I8", 0, 0},         gguf_type{25, "I16", 0, 0},
    gguf_type{26, "I32", 0, 0},        gguf_type{27, "I64", 0, 0},
    gguf_type{28, "F64", 0, 0},        gguf_type{29, "IQ1_M", 0, 0},
    gguf_type{30, "BF16", 1, 2},       gguf_type{31, "Q4_0_4_4", 0, 0},
    gguf_type{32, "Q4_0_4_8", 0, 0},   gguf_type{33, "Q4_0_8_8", 0, 0},
    gguf_type{34, "TQ1_0", 0, 0},      gguf_type{35, "TQ2_0", 0, 0},
    gguf_type{36, "IQ4_NL_4_4", 0, 0}, gguf_type{37, "IQ4_NL_4_8", 0, 0},
    gguf_type{38, "IQ4_NL_8_8", 0, 0}, gguf_type{39, "MXFP4", 32, 17},
    gguf_type{40, "NVFP4", 64, 36},    gguf_type{41, "Q1_0", 0, 0},
    gguf_type{42, "Q2_0", 0, 0},
};

}  // namespace weir::core
