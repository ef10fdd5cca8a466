// Stored keys and values against rows that an independent writer made: codes and scales, bit for bit, and the
// numbers that they mean.
#include <catch2/catch.hpp>
#include <cstring>

#include "core/model/load/safetensors.h"
#include "kernels/reference/kv_values.h"
#include "kernels/tensor.h"
#include "tests/support/data.h"

namespace weir::tests::kv_golden_test {

using namespace weir::core;

namespace {

std::vector<float> floats_of(const tensor_map& all, const char* name) {
  const auto bytes = all.at(name).bytes;
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

}  // namespace

TEST_CASE("rows of a cache have the golden codes, scales and numbers in q8 and e4m3") {
  const auto dir = tests::data_dir() / "quant" / "kv";
  if (!std::filesystem::exists(dir)) {
    WARN("no golden rows below " << tests::data_dir());
    return;
  }
  const std::string rows_text = tests::read_file(dir / "rows.safetensors"),
                    golden_text = tests::read_file(dir / "golden.safetensors");
  const auto rows = parse_safetensors(std::as_bytes(std::span(rows_text)), "rows").value();
  const auto golden = parse_safetensors(std::as_bytes(std::span(golden_text)), "golden").value();
  const auto x = floats_of(rows, "x"), back = floats_of(golden, "q8_0"),
             scales = floats_of(rows, "e4m3.scale");
  const auto blocks = rows.at("q8_0").bytes, e4m3 = rows.at("e4m3.codes").bytes;
  constexpr std::size_t width = 64, tokens = 16, group = 32, block = 34, heads = 4;
  REQUIRE(x.size() % width == 0);
  std::vector<std::byte> memory(tokens * kernels::kv_row_bytes(kernels::kv_type::q8, width));
  const kernels::kv_head head{memory.data(), kernels::kv_type::q8, width, tokens};
  for (std::size_t row = 0; row < x.size() / width; ++row) {
    const std::size_t token = row % tokens;
    store_kv(head, token, x.data() + row * width);
    for (std::size_t g = 0; g < width; g += group) {
      const std::byte* wanted = blocks.data() + (row * width + g) / group * block;
      CAPTURE(row, g);
      CHECK(std::memcmp(head.scale(token, g), wanted, 2) == 0);
      CHECK(std::memcmp(head.number(token, g), wanted + 2, group) == 0);
      const auto read = load_kv(head, token, g);
      for (std::size_t i = 0; i < group; ++i)
        CHECK(read.x[i] == Approx(back[row * width + g + i]).margin(1e-6));
    }
    for (std::size_t i = 0; i < width; ++i)  // the scales are powers of two
      CHECK(kernels::to_e4m3(x[row * width + i] / scales[row % heads]) ==
            static_cast<std::uint8_t>(e4m3[row * width + i]));
  }
}

}  // namespace weir::tests::kv_golden_test
