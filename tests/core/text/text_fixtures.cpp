#include "tests/core/text/text_fixtures.h"

#include "core/text/tokenizer/byte_level.h"

namespace weir::tests {

boost::json::object byte_level_file() {
  boost::json::object vocab;
  for (int b = 0; b < 256; ++b) {
    std::string piece;
    core::append_byte_level(piece, std::string(1, static_cast<char>(b)));
    vocab[piece] = b;
  }
  for (const char* piece : {"he", "ll", "hell", "hello", "Ġhello"}) vocab[piece] = vocab.size();
  return {{"added_tokens", {added(im_start, "<|im_start|>"), added(im_end, "<|im_end|>")}},
          {"normalizer", nullptr},
          {"pre_tokenizer", json(R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})")},
          {"post_processor", nullptr},
          {"decoder", json(R"({"type":"ByteLevel"})")},
          {"model",
           {{"type", "BPE"},
            {"vocab", std::move(vocab)},
            {"merges", {"h e", "l l", "he ll", "hell o", boost::json::array{"Ġ", "hello"}}}}}};
}

boost::json::object byte_fallback_file() {
  boost::json::object vocab{{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int b = 0; b < 256; ++b) vocab[fmt::format("<0x{:02X}>", b)] = 3 + b;
  for (const char* piece : {"▁", "a", "b", "é", "▁a", "ab", "▁ab"}) vocab[piece] = vocab.size();
  return {{"added_tokens", {added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")}},
          {"normalizer", json(R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},
              {"type":"Replace","pattern":{"String":" "},"content":"▁"}]})")},
          {"pre_tokenizer", nullptr},
          {"post_processor", json(R"({"type":"TemplateProcessing",
              "single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],
              "special_tokens":{"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]}}})")},
          {"decoder", json(R"({"type":"Sequence","decoders":[
              {"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},
              {"type":"Strip","content":" ","start":1,"stop":0}]})")},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", std::move(vocab)},
            {"merges", {"a b", "▁ a", "▁ ab"}}}}};
}

}  // namespace weir::tests
