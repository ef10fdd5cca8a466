// What a conversation is said to hold, against what its values allocate.
#include "core/text/chat/conversation.h"

#include <boost/json/memory_resource.hpp>
#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <string>

namespace weir::tests::conversation_test {

namespace json = boost::json;

namespace {

// Counts the bytes that are allocated, with what malloc takes beside each block.
class counting final : public json::memory_resource {
 public:
  std::size_t bytes = 0;

 private:
  static constexpr std::size_t beside = 16;
  void* do_allocate(std::size_t n, std::size_t) override {
    bytes += n + beside;
    return ::operator new(n);
  }
  void do_deallocate(void* p, std::size_t n, std::size_t) override {
    bytes -= n + beside;
    ::operator delete(p);
  }
  bool do_is_equal(const json::memory_resource& other) const noexcept override { return this == &other; }
};

std::string repeated(const std::string& item, std::size_t count) {
  std::string out = "[" + item;
  for (std::size_t i = 1; i < count; ++i) out += "," + item;
  return out + "]";
}

}  // namespace

TEST_CASE("conversation: what it holds is counted as its values allocate it, however short they are") {
  const auto text = GENERATE(repeated(R"({"role":"user","content":"hi"})", 10'000),
                             repeated(R"({"role":"user","content":")" + std::string(500, 'x') + "\"}", 500),
                             repeated(R"({"role":"user","content":[1,2,3,[],{},null]})", 5'000),
                             repeated(R"({"role":"user","a":{"a":{"a":{"a":{}}}}})", 5'000));
  core::conversation c;
  c.messages = json::parse(text).as_array();
  counting memory;
  const json::value copy(json::value(c.messages), &memory);
  const auto said = core::held_bytes(c);
  CHECK(said >= 0.9 * static_cast<double>(memory.bytes));
  CHECK(said <= 2 * memory.bytes);
}

}  // namespace weir::tests::conversation_test
