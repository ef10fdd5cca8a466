#include "core/text/tokenizer/post_processor.h"

#include <catch2/catch.hpp>

namespace weir::tests::post_processor_test {

using namespace weir::core;

namespace {

using ids = std::vector<token_id>;

post_processor parse(const char* field) {
  const auto value = boost::json::parse(field);
  return post_processor(json_field(value, "post_processor"));
}

}  // namespace

TEST_CASE("a template puts its special tokens around the text") {
  const auto p = parse(R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[B]","type_id":0}},
      {"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[E]","type_id":0}}],
      "special_tokens":{"[B]":{"id":"[B]","ids":[1,2],"tokens":["x","y"]},"[E]":{"id":"[E]","ids":[3]}}})");
  CHECK(p.before() == ids{1, 2});
  CHECK(p.after() == ids{3});
}

TEST_CASE("later processors of a sequence go around earlier ones") {
  const auto p = parse(R"({"type":"Sequence","processors":[{"type":"ByteLevel"},
      {"type":"RobertaProcessing","sep":["</s>",2],"cls":["<s>",1]},
      {"type":"BertProcessing","sep":["e",4],"cls":["b",3]}]})");
  CHECK(p.before() == ids{3, 1});
  CHECK(p.after() == ids{2, 4});
}

TEST_CASE("a template without its text, or with an unknown token, is an error") {
  CHECK_THROWS_AS(parse(R"({"type":"TemplateProcessing","single":[],"special_tokens":{}})"), refusal);
  CHECK_THROWS_AS(parse(R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[B]"}},
      {"Sequence":{"id":"A"}}],"special_tokens":{}})"),
                  refusal);
  CHECK_THROWS_AS(parse(R"({"type":"Other"})"), refusal);
}

TEST_CASE("post-processors that put thousands of tokens around a text are refused by name") {
  std::string all = R"({"type":"Sequence","processors":[)";
  for (int i = 0; i < 2'000; ++i)
    all += std::string(i > 0 ? "," : "") + R"({"type":"BertProcessing","sep":["e",4],"cls":["b",3]})";
  CHECK_THROWS_AS(parse((all + "]}").c_str()), refusal);
  std::string single = R"({"type":"TemplateProcessing","special_tokens":{"b":{"ids":[1]}},"single":[)";
  for (int i = 0; i < 2'000; ++i) single += R"({"SpecialToken":{"id":"b"}},)";
  CHECK_THROWS_AS(parse((single + R"({"Sequence":{"id":"A"}}]})").c_str()), refusal);
}

}  // namespace weir::tests::post_processor_test
