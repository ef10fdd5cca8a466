// Which function computes a product: the table of docs/kernels.md, and the rules one by one. No device is
// needed.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "kernels/cuda/products/choose_product.h"
#include "tests/support/source_dir.h"

namespace weir::tests::cuda_choose_product_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;
using enum product_function;

namespace {

constexpr product_device hopper{code_path::hopper, true, true, false, 132};
constexpr product_device general{code_path::general, true, false, false, 132};

constexpr product_device without_blas(product_device d) {
  d.blas = false;
  return d;
}
constexpr product_device exact(product_device d) {
  d.deterministic = true;
  return d;
}

const void* at(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

product_facts facts_of(dtype type, std::uint32_t n, std::uint32_t k, std::uint32_t m, product_out kind) {
  return {type, n, k, m, kind};
}

// The products of a layer of a model with 8 billion weights, and its logits.
struct named_product {
  const char* name;
  std::uint32_t n, k;
  product_out kind;
  bool normed = false;
};
constexpr named_product layer_products[] = {
    {"q, k, v", 6144, 4096, product_out::element},
    {"q, k, v behind their norm", 6144, 4096, product_out::element, true},
    {"attention's output, added", 4096, 4096, product_out::add_f32},
    {"SwiGLU", 28672, 4096, product_out::gated},
    {"SwiGLU behind its norm", 28672, 4096, product_out::gated, true},
    {"MLP's output, added", 4096, 14336, product_out::add_f32},
    {"logits", 128256, 4096, product_out::f32},
    {"logits behind their norm", 128256, 4096, product_out::f32, true}};

std::string said(dtype type, product_function f) {
  if (f == none) return "apart";
  const bool rounded = !is_plain(type) && !reads_blocks(f);
  return std::string(rounded ? "rounded, `" : "`") + name(f) + "`";
}

// The function of a decoder's product; x is in paired order where a function takes that.
product_function chosen(const product_device& d, dtype type, const named_product& p, std::uint32_t m) {
  product_facts f = facts_of(type, p.n, p.k, m, p.kind);
  f.normed = p.normed;
  f.paired = !is_plain(type);
  const product_function paired = choose_product(d, f);
  if (f.paired && paired == wide_blocks) return paired;
  f.paired = false;
  return choose_product(d, f);
}

// The functions for a product by the number of its rows.
std::string functions_of(const product_device& d, dtype type, const named_product& p) {
  constexpr std::uint32_t most = 8192;
  std::string all;
  for (std::uint32_t first = 1; first <= most;) {
    const product_function f = chosen(d, type, p, first);
    std::uint32_t last = first;
    while (last < most && chosen(d, type, p, last + 1) == f) ++last;
    const std::string from = std::to_string(first), to = std::to_string(last);
    const std::string rows = last == most ? "from " + from : first == last ? from : from + " to " + to;
    all += (all.empty() ? "" : "; ") + rows + ": " + said(type, f);
    first = last + 1;
  }
  return all;
}

struct table_row {
  std::string weights, products, functions;
};

// Adds the rows of one product: one for the types that have the same functions.
void add_rows(std::vector<table_row>& rows, const product_device& d, const named_product& p, bool plain) {
  std::vector<table_row> own;
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const auto type = static_cast<dtype>(i);
    if (type == dtype::f32 || is_plain(type) != plain) continue;  // f32 is for single operations
    const std::string functions = functions_of(d, type, p);
    const auto it = std::ranges::find(own, functions, &table_row::functions);
    if (it == own.end())
      own.push_back({name(type), p.name, functions});
    else
      it->weights += std::string(", ") + name(type);
  }
  if (!plain && own.size() == 1) own[0].weights = "quantised";
  for (const table_row& row : own) {
    const auto same = [&](const table_row& r) {
      return r.weights == row.weights && r.functions == row.functions;
    };
    const auto it = std::ranges::find_if(rows, same);
    if (it == rows.end())
      rows.push_back(row);
    else
      it->products += "; " + row.products;
  }
}

std::string rows_of(const char* device, const product_device& d) {
  std::vector<table_row> rows;
  for (const bool plain : {true, false})
    for (const named_product& p : layer_products) add_rows(rows, d, p, plain);
  std::string text;
  for (const table_row& r : rows)
    text +=
        std::string("| ") + device + " | " + r.weights + " | " + r.products + " | " + r.functions + " |\n";
  return text;
}

std::string table() {
  return "| device | weights | products | functions by the number of rows |\n|---|---|---|---|\n" +
         rows_of("Hopper", hopper) + rows_of("Hopper without cuBLASLt", without_blas(hopper)) +
         rows_of("general", general) + rows_of("general without cuBLASLt", without_blas(general)) +
         rows_of("any, `--deterministic`", exact(hopper)) +
         rows_of("any without cuBLASLt, `--deterministic`", without_blas(exact(hopper)));
}

}  // namespace

// With WEIR_WRITE_TABLES in the environment it writes the table instead.
TEST_CASE("the page on kernels says which function computes a product") {
  const auto path = source_dir() / "docs/kernels.md";
  std::ifstream in(path);
  const std::string page(std::istreambuf_iterator<char>(in), {});
  const std::string begin = "<!-- choose_product: begin -->\n", end = "<!-- choose_product: end -->";
  const auto from = page.find(begin), to = page.find(end);
  REQUIRE(from != page.npos);
  REQUIRE(to != page.npos);
  const std::size_t first = from + begin.size();
  const std::string wanted = table();
  if (std::getenv("WEIR_WRITE_TABLES")) {
    std::ofstream(path) << page.substr(0, first) << wanted << page.substr(to);
    return;
  }
  INFO("WEIR_WRITE_TABLES=1 in the environment of this test writes the table to the page");
  CHECK(page.substr(first, to - first) == wanted);
}

TEST_CASE("a deterministic device is the same on both paths: one function for any number of rows") {
  for (std::size_t i = 0; i < dtype_count; ++i)
    for (const named_product& p : layer_products)
      for (const std::uint32_t m : {1u, 8u, 9u, 64u, 128u, 2048u}) {
        product_facts f = facts_of(static_cast<dtype>(i), p.n, p.k, m, p.kind);
        f.normed = p.normed;
        const product_function chosen = choose_product(exact(hopper), f);
        CAPTURE(i, p.name, m);
        CHECK(chosen == choose_product(exact(general), f));
        CHECK((chosen == none || chosen == (f.type == dtype::f32 ? linear : blas)));
      }
}

TEST_CASE("products of elements whose shape or address a kernel cannot read are left to others") {
  const product_facts fits{dtype::f16,           1024,        1024,        64,
                           product_out::add_f32, at(1 << 20), at(1 << 10), at(1 << 20)};
  CHECK(choose_product(hopper, fits) == product_wgmma);
  product_facts p = fits;
  p.m = 129;  // much of every tile would be empty
  CHECK(choose_product(hopper, p) == blas);
  p.n = 32768, p.m = 256;
  CHECK(choose_product(hopper, p) == product_wgmma);
  p.m = 257;  // the tensor cores bound it
  CHECK(choose_product(hopper, p) == blas);
  p = fits, p.kind = product_out::element, p.m = 65;  // fewer tiles than multiprocessors
  CHECK(choose_product(hopper, p) == blas);
  p = fits, p.n = 1032, p.kind = product_out::gated;  // gate and up are no multiple of eight
  CHECK(choose_product(hopper, p) == none);
  for (const auto& spoil : std::vector<void (*)(product_facts&)>{
           [](product_facts& f) { f.n = 1020; }, [](product_facts& f) { f.k = 1020; },
           [](product_facts& f) { f.x = at((1 << 10) + 2); }, [](product_facts& f) { f.w = at(8); },
           [](product_facts& f) { f.out_stride = 2048; }, [](product_facts& f) { f.fresh = true; }}) {
    p = fits;
    spoil(p);
    CHECK(choose_product(hopper, p) == blas);
    p.m = 8;
    CHECK(choose_product(general, p) == blas);
  }
  p = fits, p.fresh = true, p.out = at(16);  // where cuBLASLt expects no output
  CHECK(choose_product(hopper, p) == tile_product);
}

TEST_CASE("without maps of tensors the Hopper path has its product of up to 8 rows alone") {
  product_device d = hopper;
  d.tensor_maps = false;
  CHECK(choose_product(d, facts_of(dtype::bf16, 6144, 4096, 8, product_out::element)) == stream);
  CHECK(choose_product(d, facts_of(dtype::bf16, 6144, 4096, 9, product_out::element)) == blas);
  CHECK(choose_product(d, facts_of(dtype::q4_k, 6144, 4096, 9, product_out::element)) == tile_blocks);
}

TEST_CASE("a norm or an order of inputs is a part of a product of one row where a kernel does it") {
  product_facts p = facts_of(dtype::bf16, 6144, 2048, 1, product_out::element);
  p.normed = true;
  CHECK(choose_product(hopper, p) == stream);
  CHECK(choose_product(general, p) == none);
  p.type = dtype::f16;  // a row in front of its norm may have numbers that f16 cannot keep
  CHECK(choose_product(hopper, p) == none);
  p.type = dtype::int4, p.gathers = true, p.width = p.k;
  CHECK(choose_product(hopper, p) == stream_blocks_single);
  CHECK(choose_product(general, p) == none);
  p.width = p.k - 8;  // columns of padding: an element of the row would be read twice
  CHECK(choose_product(hopper, p) == none);
  p.normed = false;
  CHECK(choose_product(hopper, p) == stream_blocks_single);
  p.m = 2;
  CHECK(choose_product(hopper, p) == none);
  p.gathers = false;
  CHECK(choose_product(hopper, p) == stream_blocks_bulk);
}

TEST_CASE("rows in paired order have one function or none") {
  product_facts p = facts_of(dtype::q8_0, 6144, 4096, 9, product_out::element);
  p.paired = true;
  CHECK(choose_product(hopper, p) == wide_blocks);
  CHECK(choose_product(general, p) == none);
  p.m = 8;
  CHECK(choose_product(hopper, p) == none);
  p.m = most_wide_block_rows, p.k = 8192;  // more than there is room to put in that order
  CHECK(choose_product(hopper, p) == wide_blocks);
  p.paired = false;
  CHECK(choose_product(hopper, p) == blas);
}

}  // namespace weir::tests::cuda_choose_product_test
