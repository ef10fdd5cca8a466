#include "core/text/tokenizer/protobuf.h"

#include <catch2/catch.hpp>
#include <limits>
#include <random>

#include "core/text/json_field.h"
#include "tests/support/protobuf_bytes.h"
#include "tests/support/seed.h"

namespace weir::tests::protobuf_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

std::string protobuf_complaint(const std::string& message, const auto& look) {
  const std::string path = "file";
  try {
    protobuf_reader in(message, path);
    while (const auto f = in.next()) look(in, *f);
  } catch (const refusal& r) {
    return r.why.message;
  }
  return "";
}
std::string protobuf_complaint(const std::string& message) {
  return protobuf_complaint(message, [](const auto&, const auto&) {});
}

}  // namespace

TEST_CASE("the fields of a message come in their order with their values") {
  const std::string path = "file";
  const std::string message = proto_number(3, 300) + proto_bytes(1, "abc") + proto_float(2, -1.5f) +
                              std::string("\x29", 1) + std::string(8, '\1') + proto_number(99'999, 1) +
                              proto_number(4, ~std::uint64_t{0});
  protobuf_reader in(message, path);
  auto f = in.next();
  CHECK((f->number == 3 && in.integer(*f, "x") == 300));
  f = in.next();
  CHECK((f->number == 1 && in.bytes(*f, "x") == "abc"));
  f = in.next();
  CHECK((f->number == 2 && in.single(*f, "x") == -1.5f));
  f = in.next();
  CHECK((f->number == 5 && f->value == 0x0101010101010101u));
  f = in.next();
  CHECK((f->number == 99'999 && in.boolean(*f, "x")));
  f = in.next();
  CHECK((f->number == 4 && in.integer(*f, "x") == -1));
  CHECK_FALSE(in.next());
}

TEST_CASE("bytes that are not protobuf are refused") {
  CHECK(protobuf_complaint("").empty());
  CHECK(protobuf_complaint("\x0A\x05" "abc") == "file: not protobuf: a field goes beyond the end");
  CHECK(protobuf_complaint("\x0A") == "file: not protobuf: a field goes beyond the end");
  CHECK(protobuf_complaint("\x15\1\1\1") == "file: not protobuf: a field goes beyond the end");
  CHECK(protobuf_complaint(std::string("\x0A") + std::string(9, '\xFF') + "\1") ==
        "file: not protobuf: a field goes beyond the end");
  CHECK(protobuf_complaint(std::string(11, '\xFF')) == "file: not protobuf: a number has more than ten bytes");
  CHECK(protobuf_complaint(std::string(1, '\0')) == "file: not protobuf: a field without a number");
  CHECK(protobuf_complaint("\x0B") == "file: not protobuf: a field of kind 3");
  CHECK(protobuf_complaint("\x0F") == "file: not protobuf: a field of kind 7");
}

TEST_CASE("a field of another kind is refused with its name") {
  const auto number = [](const protobuf_reader& in, const auto& f) { (void)in.integer(f, "n"); };
  const auto text = [](const protobuf_reader& in, const auto& f) { (void)in.bytes(f, "n"); };
  const auto single = [](const protobuf_reader& in, const auto& f) { (void)in.single(f, "n"); };
  CHECK(protobuf_complaint(proto_bytes(1, "a"), number) == "file.n: is of kind 2");
  CHECK(protobuf_complaint(proto_number(1, 1), text) == "file.n: is of kind 0");
  CHECK(protobuf_complaint(proto_number(1, 1), single) == "file.n: is of kind 0");
  CHECK(protobuf_complaint(proto_float(1, std::numeric_limits<float>::infinity()), single) ==
        "file.n: is not finite");
}

}  // namespace weir::tests::protobuf_test
