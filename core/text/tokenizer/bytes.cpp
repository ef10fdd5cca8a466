// The vocabulary of bytes, with one control token that ends an answer.
#include <array>

#include "core/text/tokenizer/hf_tokenizer.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

constexpr std::uint32_t byte_ids = 256;
constexpr token_id end_byte_id = 256;
constexpr std::string_view end_spelling = "<|weir:end-of-script|>";

class byte_tokenizer final : public tokenizer {
 public:
  byte_tokenizer() {
    for (std::uint32_t b = 0; b < byte_ids; ++b) bytes_[b] = static_cast<char>(b);
  }

  std::vector<token_id> encode(std::string_view text, encode_options) const override {
    std::vector<token_id> ids;
    ids.reserve(text.size());
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }
  std::string decode(std::span<const token_id> ids, decode_options how) const override {
    std::string text;
    for (const token_id id : ids)
      if (!how.skip_special || !is_special(id)) text += token_bytes(id);
    text = to_valid_utf8(text);
    return how.clean_up_spaces ? weir::core::clean_up_spaces(std::move(text)) : text;
  }
  std::string_view token_bytes(token_id id) const override {
    if (id == end_byte_id) return end_spelling;
    if (id < 0 || id > end_byte_id) return {};
    return std::string_view(bytes_.data(), bytes_.size()).substr(static_cast<std::size_t>(id), 1);
  }
  bool is_special(token_id id) const override { return id == end_byte_id; }
  // ASCII that is printed stands for itself, any other byte is like <0x0A>.
  std::string piece(token_id id) const override {
    if (id < 0 || id >= end_byte_id || (id > ' ' && id < 0x7F)) return std::string(token_bytes(id));
    return fmt::format("<0x{:02X}>", id);
  }
  std::uint32_t vocab_size() const override { return byte_ids + 1; }
  std::optional<token_id> bos() const override { return std::nullopt; }
  std::optional<token_id> id_of(std::string_view spelling) const override {
    for (token_id id = 0; id <= end_byte_id; ++id)
      if (piece(id) == spelling) return id;
    return std::nullopt;
  }
  bool clean_up_spaces() const override { return false; }
  bool adds_bos() const override { return false; }

 private:
  std::array<char, byte_ids> bytes_{};
};

}  // namespace

std::shared_ptr<const tokenizer> make_byte_tokenizer() { return std::make_shared<byte_tokenizer>(); }

}  // namespace weir::core
