#include "core/model/load/safetensors.h"

#include <catch2/catch.hpp>

#include "tests/support/toy_directory.h"

namespace weir::tests::safetensors_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

std::string file_with(const std::string& header, std::size_t data_bytes) {
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  return length + header + std::string(data_bytes, 'x');
}

// The tensors' bytes are those of `file`.
result<tensor_map> parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file)), "m.safetensors");
}

// What is wrong with a file of this header and that many bytes of data.
std::string refusal(const std::string& header, std::size_t data_bytes) {
  const auto r = parse(file_with(header, data_bytes));
  return r ? "accepted" : r.error().message;
}

std::string entry(const std::string& shape, int begin, int end) {
  return R"({"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[)" + std::to_string(begin) + "," +
         std::to_string(end) + "]}";
}

}  // namespace

TEST_CASE("a safetensors file gives each tensor's type, shape and bytes") {
  const std::string file = tests::safetensors_bytes({{"a", "F32", {2, 3}, std::string(24, 'a')},
                                                    {"b", "BF16", {5}, std::string(10, 'b')},
                                                    {"scalar", "F16", {}, "ss"},
                                                    {"empty", "I64", {0, 7}, ""}});
  const auto r = parse(file);
  REQUIRE(r.has_value());
  REQUIRE(r->size() == 4);
  CHECK(r->at("a").shape == std::vector<std::uint64_t>{2, 3});
  CHECK(r->at("a").shape_text() == "[2, 3]");
  CHECK(r->at("b").dtype == "BF16");
  CHECK(r->at("b").bytes.size() == 10);
  CHECK(r->at("b").bytes[0] == std::byte{'b'});
  CHECK(r->at("scalar").bytes[0] == std::byte{'s'});
}

TEST_CASE("metadata and spaces after the header are no tensors") {
  const std::string header = R"({"__metadata__":{"format":"pt"},"a":)" + entry("[1]", 0, 4) + "}   ";
  const auto r = parse(file_with(header, 4));
  REQUIRE(r.has_value());
  CHECK(r->size() == 1);
}

TEST_CASE("a safetensors file with a hostile length is refused") {
  CHECK(!parse(""));
  CHECK(!parse("1234567"));
  for (const std::uint64_t length : {std::uint64_t{100}, std::uint64_t{100'000'001}, ~std::uint64_t{0}}) {
    std::string file = file_with("{}", 0);
    std::memcpy(file.data(), &length, 8);
    const auto r = parse(file);
    REQUIRE(!r);
    CHECK_THAT(r.error().message, Contains("m.safetensors") && Contains(std::to_string(length)));
  }
}

TEST_CASE("a safetensors header that is not an object of objects is refused") {
  CHECK_THAT(refusal("", 0), Contains("not JSON"));
  CHECK_THAT(refusal("{", 0), Contains("not JSON"));
  CHECK_THAT(refusal("[]", 0), Contains("not a JSON object"));
  CHECK_THAT(refusal("{} {}", 0), Contains("not JSON"));
  CHECK_THAT(refusal(R"({"a":1})", 0), Contains("'a'"));
  CHECK_THAT(refusal(std::string(100000, '['), 0), Contains("nested deeper than 32"));
  CHECK_THAT(refusal("{\"a\":" + std::string(5000, '[') + std::string(5000, ']') + "}", 0),
             Contains("nested deeper than 32"));
}

TEST_CASE("a tensor whose bytes are not its shape's is refused") {
  CHECK_THAT(refusal(R"({"a":)" + entry("[2]", 0, 4) + "}", 4),
             Contains("F32 [2] does not take the 4 bytes"));
  CHECK_THAT(refusal(R"({"a":)" + entry("[2]", 0, 12) + "}", 8), Contains("not inside the 8 bytes"));
  CHECK_THAT(refusal(R"({"a":)" + entry("[1]", 8, 4) + "}", 8), Contains("bytes 8 to 4"));
  CHECK_THAT(refusal(R"({"a":)" + entry("[4294967296,4294967296,4]", 0, 0) + "}", 0),
             Contains("does not take"));
  CHECK_THAT(refusal(R"({"a":)" + entry("[-1]", 0, 4) + "}", 4), Contains("'shape'"));
  CHECK_THAT(refusal(R"({"a":)" + entry("[1.0]", 0, 4) + "}", 4), Contains("'shape'"));
  CHECK_THAT(refusal(R"({"a":)" + entry("[1,1,1,1,1,1,1,1,1]", 0, 4) + "}", 4), Contains("'shape'"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}})", 4),
             Contains("not inside"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4),
             Contains("'data_offsets'"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4),
             Contains("'data_offsets'"));
  CHECK_THAT(refusal(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4), Contains("'dtype'"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"Q4","shape":[1],"data_offsets":[0,4]}})", 4),
             Contains("\"Q4\" is not supported"));
  CHECK_THAT(refusal(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4), Contains("'dtype'"));
}

TEST_CASE("tensors that overlap, leave gaps or occur twice are refused") {
  const auto two = [](const std::string& a, const std::string& b, std::size_t bytes) {
    return refusal(R"({"a":)" + a + R"(,"b":)" + b + "}", bytes);
  };
  CHECK(two(entry("[1]", 0, 4), entry("[1]", 4, 8), 8) == "accepted");
  CHECK_THAT(two(entry("[2]", 0, 8), entry("[1]", 4, 8), 8), Contains("overlaps"));
  CHECK_THAT(two(entry("[1]", 0, 4), entry("[1]", 0, 4), 4), Contains("overlaps"));
  CHECK_THAT(two(entry("[1]", 0, 4), entry("[1]", 8, 12), 12), Contains("gap"));
  CHECK_THAT(two(entry("[1]", 4, 8), entry("[1]", 8, 12), 12), Contains("gap"));
  CHECK_THAT(two(entry("[1]", 0, 4), entry("[1]", 4, 8), 12), Contains("4 bytes after the last tensor"));
  CHECK_THAT(refusal(R"({"a":)" + entry("[1]", 0, 4) + R"(,"a":)" + entry("[1]", 4, 8) + "}", 8),
             Contains("'a' is there twice"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
             Contains("'dtype' is there twice"));
}

TEST_CASE("a shard index may name plain files only") {
  const auto index = [](const std::string& shard) {
    return parse_shard_index(R"({"weight_map":{"a":)" + shard + "}}", "index.json");
  };
  REQUIRE(index(R"("model-1.safetensors")").has_value());
  for (const char* shard : {R"("../model.safetensors")", R"("/etc/passwd")", R"("a/b")", R"("..")", R"("")",
                            "7", "null", R"("a\u0000b")", R"("a\\b")"})
    CHECK(!index(shard));
  CHECK(!parse_shard_index("{}", "index.json"));
  CHECK(!parse_shard_index(R"({"weight_map":[]})", "index.json"));
}

TEST_CASE("a sharded checkpoint is one set of tensors, and a shard or tensor that is missing is named") {
  const tests::temporary_dir dir;
  const auto write = [&](const std::string& file, std::vector<tests::toy_tensor> tensors) {
    tests::write_file(dir / file, tests::safetensors_bytes(tensors));
  };
  const auto index = [&](const std::string& map) {
    tests::write_file(dir / "model.safetensors.index.json", R"({"weight_map":)" + map + "}");
  };
  write("one.safetensors", {{"a", "F32", {1}, "aaaa"}});
  write("two.safetensors", {{"b", "F32", {1}, "bbbb"}});
  index(R"({"a":"one.safetensors","b":"two.safetensors"})");
  const auto both = open_safetensors(dir.path().string());
  REQUIRE(both.has_value());
  CHECK(both->tensors().size() == 2);
  CHECK(both->find("b")->bytes[0] == std::byte{'b'});
  CHECK(both->find("c") == nullptr);

  const auto message = [&] { return open_safetensors(dir.path().string()).error().message; };
  index(R"({"a":"one.safetensors","c":"two.safetensors"})");
  CHECK_THAT(message(), Contains("'c' is not in two.safetensors"));
  index(R"({"a":"one.safetensors","b":"three.safetensors"})");
  CHECK_THAT(message(), Contains("three.safetensors"));
  write("two.safetensors", {{"a", "F32", {1}, "bbbb"}});
  index(R"({"a":"one.safetensors","b":"two.safetensors"})");
  CHECK_THAT(message(), Contains("'a' is in another shard too"));
}

TEST_CASE("a directory without safetensors says so, and names what else is there") {
  const tests::temporary_dir dir;
  CHECK_THAT(open_safetensors(dir.path().string()).error().message, Contains("neither model.safetensors"));
  tests::write_file(dir / "pytorch_model.bin", "");
  CHECK_THAT(open_safetensors(dir.path().string()).error().message,
             Contains("pytorch_model.bin is not supported yet"));
  CHECK(!open_safetensors((dir / "nowhere")));
  std::filesystem::create_directory(dir / "model.safetensors");
  CHECK_THAT(open_safetensors(dir.path().string()).error().message, Contains("not a regular file"));
}

}  // namespace weir::tests::safetensors_test
