// Vocabularies that need no file: the text of an id is its number.
#include <charconv>

#include "core/text/tokenizer/hf_tokenizer.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

class numbered_tokenizer : public tokenizer {
 public:
  numbered_tokenizer(std::uint32_t size, int digits) : digits_(digits) {
    for (std::uint32_t id = 0; id < size; ++id) pieces_.add(fmt::format("w{:0{}} ", id, digits));
  }

  std::string decode(std::span<const token_id> ids, decode_options how) const override {
    std::string text;
    for (const token_id id : ids) text += token_bytes(id);
    return how.clean_up_spaces ? weir::core::clean_up_spaces(std::move(text)) : text;
  }
  std::string_view token_bytes(token_id id) const override {
    return pieces_.at(static_cast<std::uint32_t>(id));
  }
  bool is_special(token_id) const override { return false; }
  std::string piece(token_id id) const override { return std::string(token_bytes(id)); }
  std::uint32_t vocab_size() const override { return static_cast<std::uint32_t>(pieces_.size()); }
  std::optional<token_id> bos() const override { return std::nullopt; }
  bool clean_up_spaces() const override { return false; }
  bool adds_bos() const override { return false; }

  // `piece`: like "w000017", with or without the space at its end.
  std::optional<token_id> id_of(std::string_view piece) const override {
    if (piece.ends_with(' ')) piece.remove_suffix(1);
    std::uint32_t id = 0;
    const auto [end, failed] =
        std::from_chars(piece.data() + !piece.empty(), piece.data() + piece.size(), id);
    if (failed != std::errc() || end != piece.data() + piece.size()) return std::nullopt;
    if (id >= vocab_size() || piece != token_bytes(static_cast<token_id>(id)).substr(0, piece.size()) ||
        piece.size() != static_cast<std::size_t>(digits_) + 1) {
      return std::nullopt;
    }
    return static_cast<token_id>(id);
  }

 private:
  string_table pieces_;
  int digits_;
};

class sim_tokenizer final : public numbered_tokenizer {
 public:
  sim_tokenizer() : numbered_tokenizer(1000, 3) {}
  std::vector<token_id> encode(std::string_view utf8, encode_options) const override {
    std::vector<token_id> ids;
    for (const char byte : utf8) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }
};

// FNV-1a, which is the same on every machine.
std::uint64_t hash_of(std::string_view word) noexcept {
  std::uint64_t h = 0xCBF29CE484222325u;
  for (const char byte : word) h = (h ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
  return h;
}

class word_tokenizer final : public numbered_tokenizer {
 public:
  explicit word_tokenizer(std::uint32_t vocab_size) : numbered_tokenizer(vocab_size, 6) {}
  std::vector<token_id> encode(std::string_view utf8, encode_options) const override {
    constexpr std::string_view spaces = " \t\r\n\v\f";
    std::vector<token_id> ids;
    for (std::size_t at = utf8.find_first_not_of(spaces); at != utf8.npos;) {
      const std::size_t end = std::min(utf8.find_first_of(spaces, at), utf8.size());
      const std::string_view word = utf8.substr(at, end - at);
      ids.push_back(id_of(word).value_or(static_cast<token_id>(hash_of(word) % vocab_size())));
      at = utf8.find_first_not_of(spaces, end);
    }
    return ids;
  }
};

}  // namespace

std::shared_ptr<const tokenizer> make_sim_tokenizer() { return std::make_shared<sim_tokenizer>(); }

std::shared_ptr<const tokenizer> make_numbered_tokenizer(std::uint32_t vocab_size) {
  return std::make_shared<word_tokenizer>(vocab_size);
}

}  // namespace weir::core
