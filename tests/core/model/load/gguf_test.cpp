#include "core/model/load/gguf.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/model/load/gguf_reader.h"
#include "tests/support/gguf_bytes.h"

namespace weir::tests::gguf_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

result<gguf_file> parse(const std::string& file) {
  return parse_gguf(std::as_bytes(std::span(file)), "m.gguf");
}

std::string refusal(const std::string& file) {
  const auto r = parse(file);
  return r ? "accepted" : r.error().message;
}
std::string refusal(const gguf_writer& w) { return refusal(w.file()); }

gguf_writer two_tensors() {
  gguf_writer w;
  w.text("general.architecture", "llama").number("n", 7);
  w.tensor({"a", {3, 2}, 0, std::string(24, 'a')}).tensor({"b", {5}, 30, std::string(10, 'b')});
  return w;
}

gguf_writer with_type(std::uint32_t type, std::uint64_t cols) {
  gguf_writer w;
  w.tensor({"t", {cols, 1}, type, std::string(1000, 't')});
  return w;
}

}  // namespace

TEST_CASE("a gguf file gives each tensor's type, shape and bytes") {
  for (const std::uint32_t version : {2u, 3u}) {
    auto w = two_tensors();
    w.version = version;
    const std::string file = w.file();
    const auto r = parse(file);
    REQUIRE(r.has_value());
    CHECK(r->version == version);
    REQUIRE(r->tensors.size() == 2);
    const auto& a = r->tensors.at("a");
    CHECK(a.dtype == "F32");
    CHECK(a.shape == std::vector<std::uint64_t>{2, 3});  // the outermost dimension first
    CHECK(a.bytes.size() == 24);
    CHECK(a.bytes[0] == std::byte{'a'});
    CHECK(r->tensors.at("b").dtype == "BF16");
    CHECK(r->tensors.at("b").bytes[9] == std::byte{'b'});
  }
}

TEST_CASE("a key of every kind is read") {
  gguf_writer w;
  w.value("u8", 0, "\xff").value("i8", 1, "\x80").value("u16", 2, raw(std::uint16_t{65535}));
  w.value("i16", 3, raw(std::int16_t{-32768})).number("u32", 4000000000u);
  w.value("i32", 5, raw(std::int32_t{-5})).real("f32", 0.15625f).flag("yes", true).flag("no", false);
  w.value("u64", 10, raw(~std::uint64_t{0})).value("i64", 11, raw(std::int64_t{-7}));
  w.value("f64", 12, raw(0.1)).text("empty", "").texts("none", {}).texts("some", {"a", "", "b"});
  w.numbers<float>("floats", 6, {0.5f, -2.0f}).numbers<std::uint8_t>("bools", 7, {1, 0});
  const std::string file = w.file();
  const auto r = parse(file);
  REQUIRE(r.has_value());
  const gguf_keys& k = r->keys;
  CHECK(std::get<std::uint64_t>(k.at("u8")) == 255);
  CHECK(std::get<std::int64_t>(k.at("i8")) == -128);
  CHECK(std::get<std::uint64_t>(k.at("u16")) == 65535);
  CHECK(std::get<std::int64_t>(k.at("i16")) == -32768);
  CHECK(std::get<std::uint64_t>(k.at("u32")) == 4000000000u);
  CHECK(std::get<std::int64_t>(k.at("i32")) == -5);
  CHECK(std::get<double>(k.at("f32")) == 0.15625);
  CHECK(std::get<bool>(k.at("yes")));
  CHECK(!std::get<bool>(k.at("no")));
  CHECK(std::get<std::uint64_t>(k.at("u64")) == ~std::uint64_t{0});
  CHECK(std::get<std::int64_t>(k.at("i64")) == -7);
  CHECK(std::get<double>(k.at("f64")) == 0.1);
  CHECK(std::get<std::string_view>(k.at("empty")).empty());
  CHECK(std::get<gguf_array>(k.at("none")).texts.empty());
  CHECK(std::get<gguf_array>(k.at("some")).texts == std::vector<std::string_view>{"a", "", "b"});
  CHECK(std::get<gguf_array>(k.at("floats")).number(1) == -2);
  CHECK(std::get<gguf_array>(k.at("bools")).number(0) == 1);
}

TEST_CASE("a gguf file that is cut anywhere is refused") {
  const std::string file = two_tensors().file();
  for (std::size_t size = 0; size < file.size(); ++size) {
    CAPTURE(size);
    const auto r = parse(file.substr(0, size));
    REQUIRE(!r);
    CHECK_THAT(r.error().message, Contains("m.gguf: "));
  }
  CHECK_THAT(refusal(file + std::string(40, 'x')), Contains("after the last tensor"));
}

TEST_CASE("another magic number, version or byte order is refused by name") {
  auto w = two_tensors();
  w.magic = "GGML";
  CHECK_THAT(refusal(w), Contains("does not begin with GGUF"));
  w.magic = "GGUF";
  for (const auto& [version, said] :
       {std::pair{1u, "version 1 is"}, {4u, "version 4"}, {0u, "version 0"}, {3u << 24, "big-endian"}}) {
    w.version = version;
    CHECK_THAT(refusal(w), Contains(said));
  }
}

TEST_CASE("counts and lengths that no file can have are refused, and cost nothing") {
  for (const std::int64_t more : {std::int64_t{1}, std::int64_t{1} << 40, std::int64_t{1} << 62}) {
    auto w = two_tensors();
    w.more_keys = more;
    CHECK(refusal(w) != "accepted");
    w = two_tensors();
    w.more_tensors = more;
    CHECK(refusal(w) != "accepted");
  }
  for (const std::uint64_t length : {std::uint64_t{1} << 40, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    CHECK_THAT(refusal(gguf_writer{}.value("k", 8, raw(length))), Contains("'k' does not fit"));
    for (const std::uint32_t kind : {0u, 4u, 8u, 12u})
      CHECK_THAT(refusal(gguf_writer{}.value("k", 9, raw(kind) + raw(length))), Contains("'k'"));
    gguf_writer w;
    w.tensor({"t", {length, 2}, 0, ""});
    CHECK(refusal(w) != "accepted");
    w.tensors[0].dims = {32, length, length, length};
    CHECK_THAT(refusal(w), Contains("'t'"));
  }
}

TEST_CASE("keys that are empty, repeated or of no kind are refused") {
  CHECK_THAT(refusal(gguf_writer{}.number("", 1)), Contains("name of 0 bytes"));
  CHECK_THAT(refusal(gguf_writer{}.number(std::string(70000, 'k'), 1)), Contains("name of 70000 bytes"));
  CHECK_THAT(refusal(gguf_writer{}.number("k", 1).number("k", 1)), Contains("'k' is there twice"));
  CHECK_THAT(refusal(gguf_writer{}.value("k", 13, "xxxxxxxx")), Contains("13 is no kind"));
  CHECK_THAT(refusal(gguf_writer{}.value("k", 7, "\2")), Contains("neither 0 nor 1"));
  CHECK_THAT(refusal(gguf_writer{}.numbers<std::uint8_t>("k", 7, {1, 2})), Contains("neither 0 nor 1"));
  CHECK_THAT(refusal(gguf_writer{}.value("k", 9, raw(std::uint32_t{9}) + raw(std::uint64_t{0}))),
             Contains("array of arrays is not supported"));
  CHECK_THAT(refusal(gguf_writer{}.value("k", 9, raw(std::uint32_t{99}) + raw(std::uint64_t{0}))),
             Contains("99 is no kind"));
}

TEST_CASE("an alignment that is no power of two is refused, and another one is used") {
  for (const std::uint32_t bad : {0u, 24u, 1u << 30}) {
    auto w = two_tensors();
    w.number("general.alignment", bad);
    CHECK_THAT(refusal(w), Contains("'general.alignment'"));
  }
  auto w = two_tensors();
  w.text("general.alignment", "32");
  CHECK_THAT(refusal(w), Contains("'general.alignment'"));
  w = two_tensors();
  w.number("general.alignment", 256);
  w.alignment = 256;
  const std::string file = w.file();
  const auto r = parse(file);
  REQUIRE(r.has_value());
  CHECK(r->tensors.at("b").bytes[0] == std::byte{'b'});
}

TEST_CASE("tensors that overlap, leave gaps, occur twice or have impossible shapes are refused") {
  for (const std::uint64_t error : {std::uint64_t{32}, ~std::uint64_t{0} - 31, std::uint64_t{1}}) {
    auto w = two_tensors();
    w.offset_error = error;
    CHECK_THAT(refusal(w), Contains("'b'") && Contains("begins at"));
  }
  auto w = two_tensors();
  w.tensors[1].name = "a";
  CHECK_THAT(refusal(w), Contains("'a': is there twice"));
  w = two_tensors();
  w.tensors[1].bytes.pop_back();
  CHECK_THAT(refusal(w), Contains("'b'") && Contains("are not inside"));
  for (const auto& dims : {std::vector<std::uint64_t>{}, {1, 1, 1, 1, 1}}) {
    w = two_tensors();
    w.tensors[0].dims = dims;
    CHECK_THAT(refusal(w), Contains("dimensions"));
  }
  w = two_tensors();
  w.tensors[0].dims = {3, 0};
  CHECK_THAT(refusal(w), Contains("a dimension is 0"));
  w = two_tensors();
  w.tensors[0].name = "";
  CHECK_THAT(refusal(w), Contains("name of 0 bytes"));
  w.tensors[0].name = std::string(64, 'n');
  CHECK_THAT(refusal(w), Contains("name of 64 bytes"));
}

TEST_CASE("types that are not read are refused by name, and rows that are no whole blocks") {
  for (const auto& [id, name] : {std::pair{16u, "IQ2_XXS"},
                                 {17u, "IQ2_XS"},
                                 {18u, "IQ3_XXS"},
                                 {19u, "IQ1_S"},
                                 {21u, "IQ3_S"},
                                 {22u, "IQ2_S"},
                                 {24u, "I8"},
                                 {28u, "F64"},
                                 {29u, "IQ1_M"},
                                 {34u, "TQ1_0"},
                                 {35u, "TQ2_0"},
                                 {4u, "Q4_2"},
                                 {9u, "Q8_1"},
                                 {15u, "Q8_K"}})
    CHECK_THAT(refusal(with_type(id, 256)), Contains(std::string("type ") + name + " is not supported"));
  CHECK_THAT(refusal(with_type(99, 256)), Contains("type 99 is unknown"));
  CHECK_THAT(refusal(with_type(8, 48)), Contains("no whole blocks of 32") && Contains("Q8_0"));
  CHECK_THAT(refusal(with_type(12, 128)), Contains("no whole blocks of 256") && Contains("Q4_K"));
}

TEST_CASE("the reader of keys names what is wrong, and keeps the first error") {
  gguf_writer w;
  w.number("n", 5).text("t", "x").numbers<std::uint32_t>("same", 4, {3, 3, 3});
  w.numbers<std::uint32_t>("layers", 4, {3, 4}).real("nan", NAN).value("minus", 5, raw(std::int32_t{-1}));
  const std::string file = w.file();
  const auto r = parse(file).value();
  gguf_reader in(r.keys, "m.gguf");
  CHECK(in.count("n", 9) == 5u);
  CHECK(in.number("n") == 5.0);
  CHECK(in.count("same", 9) == 3u);
  CHECK(in.text("t") == "x");
  CHECK(!in.count("nothing", 9));
  CHECK(!in.failure());
  const auto message = [&](const auto& read) {
    gguf_reader fresh(r.keys, "m.gguf");
    read(fresh);
    fresh.fail(errc::internal, "later");
    REQUIRE(fresh.failure());
    return fresh.failure()->message;
  };
  CHECK_THAT(message([](auto& x) { x.count("n", 4); }),
             Contains("m.gguf: 'n' must be a whole number up to 4"));
  CHECK_THAT(message([](auto& x) { x.count("minus", 4); }), Contains("'minus'"));
  CHECK_THAT(message([](auto& x) { x.count("layers", 9); }), Contains("'layers' differs between layers"));
  CHECK_THAT(message([](auto& x) { x.number("nan"); }), Contains("'nan' must be a number"));
  CHECK_THAT(message([](auto& x) { x.text("n"); }), Contains("'n' must be a string"));
  CHECK_THAT(message([](auto& x) { x.boolean("n"); }), Contains("'n' must be a bool"));
  CHECK_THAT(message([](auto& x) { x.texts("same"); }), Contains("'same' must be an array of strings"));
  CHECK_THAT(message([](auto& x) { x.numbers("t"); }), Contains("'t' must be an array of numbers"));
}

}  // namespace weir::tests::gguf_test
