// Files of tiktoken: what is refused. Ids against the library's are in tokenizer_vectors_test.cpp.
#include "core/text/tokenizer/tiktoken_tokenizer.h"

#include <catch2/catch.hpp>

#include "tests/core/text/text_fixtures.h"
#include "tests/support/base64_text.h"

namespace weir::tests::tiktoken_tokenizer_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

using ids = std::vector<token_id>;

std::string rank_line(std::string_view token, int rank) { return fmt::format("{} {}\n", to_base64(token), rank); }

std::string all_bytes() {
  std::string out;
  for (int b = 0; b < 256; ++b) out += rank_line(std::string(1, static_cast<char>(b)), b);
  return out;
}

constexpr const char* kimi_config = R"({"tokenizer_class":"TikTokenTokenizer","bos_token":"[BOS]",
    "added_tokens_decoder":{"258":{"content":"[BOS]","special":true},
                            "513":{"content":"call","special":false}}})";

struct ranks_folder {
  temporary_dir dir;
  ranks_folder(const std::string& name, const std::string& file, const std::string& config) {
    write_file(dir / name, file);
    write_file(dir / "tokenizer_config.json", config);
  }
  std::string complaint() const {
    const auto t = load_tokenizer(dir.path().string());
    return t ? "" : t.error().message.substr(dir.path().string().size() + 1);
  }
};

std::string ranks_complaint(const std::string& file, const std::string& config = kimi_config) {
  return ranks_folder("tiktoken.model", file, config).complaint();
}

}  // namespace

TEST_CASE("ranks are ids, and the ids behind them are special as the configuration names them") {
  const ranks_folder f("tiktoken.model", all_bytes() + rank_line("ab", 256) + rank_line(" a", 257) + "\r\n",
                       kimi_config);
  const auto t = load_tokenizer(f.dir.path().string()).value();
  CHECK(t->encode("ab a", {}) == ids{256, 257});
  CHECK(t->encode("[BOS]ab", {}) == ids{258, 256});
  CHECK(t->encode("[BOS]", {.parse_special = false}).size() > 1);
  CHECK(t->encode("<|reserved_token_300|>", {}) == ids{300});
  CHECK(t->bos() == 258);
  CHECK_FALSE(t->adds_bos());
  CHECK(t->is_special(258));
  CHECK_FALSE(t->is_special(513));
  CHECK(t->piece(513) == "call");
  CHECK(t->vocab_size() == 514);
  CHECK(t->token_bytes(257) == " a");
  CHECK_FALSE(t->clean_up_spaces());
}

TEST_CASE("a file of ranks may be called tokenizer.model, or anything that ends with .tiktoken") {
  for (const char* name : {"tokenizer.model", "qwen.tiktoken", "other.tiktoken"}) {
    const ranks_folder f(name, all_bytes(), R"({"auto_map":{"AutoTokenizer":["q.QWenTokenizer",null]}})");
    INFO(name << f.complaint());
    const auto t = load_tokenizer(f.dir.path().string()).value();
    CHECK(t->encode("<|im_end|>e\u0301<|extra_204|>", {}) == ids{258, 0xC3, 0xA9, 463});
    CHECK(t->vocab_size() == 464);
  }
}

TEST_CASE("a class of ranks that is not known is refused by name") {
  CHECK(ranks_complaint(all_bytes(), R"({"tokenizer_class":"HYTokenizer"})") ==
        "tokenizer_config.json.tokenizer_class: 'HYTokenizer' with tiktoken.model is not supported yet");
  CHECK(ranks_complaint(all_bytes(), "{}") ==
        "tokenizer_config.json.tokenizer_class: '' with tiktoken.model is not supported yet");
}

TEST_CASE("a line of ranks that is wrong is refused with its number") {
  const std::string bytes = all_bytes();
  CHECK(ranks_complaint(bytes + "YWI=\n") ==
        "tiktoken.model:257: is not a token in base64, a space and a rank");
  CHECK(ranks_complaint(bytes + "YWI= x\n") ==
        "tiktoken.model:257: is not a token in base64, a space and a rank");
  CHECK(ranks_complaint(bytes + "YWI= -1\n") ==
        "tiktoken.model:257: is not a token in base64, a space and a rank");
  CHECK(ranks_complaint(bytes + "YW! 256\n") == "tiktoken.model:257: its token is not base64");
  CHECK(ranks_complaint(bytes + "YWI= 99999999\n") ==
        "tiktoken.model:257: its rank is not below 16777216");
  CHECK(ranks_complaint(bytes + rank_line("ab", 255)) == "tiktoken.model:257: its rank is there twice");
  CHECK(ranks_complaint(bytes + rank_line("a", 256)) == "tiktoken.model:257: its token is there twice");
  CHECK(ranks_complaint(bytes + rank_line(std::string(513, 'a'), 256)) ==
        "tiktoken.model:257: its token has over 512 bytes");
  CHECK(ranks_complaint(bytes + rank_line("ab", 257)) == "tiktoken.model: no token has rank 256");
  CHECK(ranks_complaint(rank_line("a", 0)) == "tiktoken.model: byte 0x00 is no token");
}

TEST_CASE("an added token outside the reserved ids is refused") {
  CHECK(ranks_complaint(all_bytes(), R"({"tokenizer_class":"TikTokenTokenizer",
            "added_tokens_decoder":{"514":{"content":"x"}}})") ==
        "tokenizer_config.json.added_tokens_decoder.514: is not one of the 258 ids behind the 256 ranks");
  CHECK_THAT(ranks_complaint(all_bytes(), R"({"tokenizer_class":"TikTokenTokenizer",
                 "added_tokens_decoder":{"255":{"content":"x"}}})"),
             Contains("added_tokens_decoder.255: is not one of"));
}

}  // namespace weir::tests::tiktoken_tokenizer_test
