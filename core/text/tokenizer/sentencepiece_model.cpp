#include "core/text/tokenizer/sentencepiece_model.h"

#include <unordered_set>

#include "core/text/json_field.h"
#include "core/text/tokenizer/protobuf.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

constexpr std::size_t most_pieces = std::size_t{1} << 24;

class parser {
 public:
  explicit parser(const std::string& path)
      : path_(path), trainer_(path + ".trainer_spec"), normalizer_(path + ".normalizer_spec") {}

  sentencepiece_model parse(std::string_view file) {
    protobuf_reader in(file, path_);
    while (const auto f = in.next()) {
      if (f->number == 1) add_piece(in.bytes(*f, "pieces"));
      if (f->number == 2) read_trainer(in.bytes(*f, "trainer_spec"));
      if (f->number == 3) read_normalizer(in.bytes(*f, "normalizer_spec"));
      if (f->number == 5) read_denormalizer(in.bytes(*f, "denormalizer_spec"));
    }
    check_pieces();
    return std::move(out_);
  }

 private:
  void add_piece(std::string_view message) {
    const std::size_t id = out_.pieces.all.size();
    const std::string path = fmt::format("{}.pieces[{}]", path_, id);
    if (id == most_pieces) bad_field(path, fmt::format("there are more than {} pieces", most_pieces));
    scored_piece p;
    protobuf_reader in(message, path);
    while (const auto f = in.next()) {
      if (f->number == 1) p.text = in.bytes(*f, "piece");
      if (f->number == 2) p.score = in.single(*f, "score");
      if (f->number != 3) continue;
      const std::int64_t kind = in.integer(*f, "type");
      if (kind < 1 || kind > 6) bad_field(path + ".type", fmt::format("is {}", kind));
      p.kind = static_cast<piece_kind>(kind);
    }
    if (p.text.empty()) bad_field(path + ".piece", "is empty");
    if (p.text.size() > most_piece_bytes)
      bad_field(path + ".piece", fmt::format("has more than {} bytes", most_piece_bytes));
    if (!is_valid_utf8(p.text)) bad_field(path + ".piece", "is not UTF-8");
    out_.pieces.all.push_back(p);
  }

  void read_trainer(std::string_view message) {
    protobuf_reader in(message, trainer_);
    while (const auto f = in.next()) {
      if (f->number == 3) read_kind(in.integer(*f, "model_type"));
      if (f->number == 24 && in.boolean(*f, "treat_whitespace_as_suffix"))
        unsupported(trainer_, "treat_whitespace_as_suffix");
      if (f->number == 35) out_.pieces.byte_fallback = in.boolean(*f, "byte_fallback");
      if (f->number == 46) out_.bos = in.bytes(*f, "bos_piece");
      if (f->number == 47) out_.eos = in.bytes(*f, "eos_piece");
    }
  }

  void read_kind(std::int64_t kind) {
    const std::string path = trainer_ + ".model_type";
    if (kind == 3) unsupported(path, "WORD");
    if (kind == 4) unsupported(path, "CHAR");
    if (kind != 1 && kind != 2) bad_field(path, fmt::format("is {}", kind));
    out_.kind = static_cast<sentencepiece_model::type>(kind);
  }

  void read_normalizer(std::string_view message) {
    protobuf_reader in(message, normalizer_);
    while (const auto f = in.next()) {
      if (f->number == 2) out_.replacements = in.bytes(*f, "precompiled_charsmap");
      if (f->number == 3) out_.leading_space = in.boolean(*f, "add_dummy_prefix");
      if (f->number == 4) out_.removes_extra_spaces = in.boolean(*f, "remove_extra_whitespaces");
      if (f->number == 5 && !in.boolean(*f, "escape_whitespaces"))
        unsupported(normalizer_, "escape_whitespaces false");
    }
  }

  void read_denormalizer(std::string_view message) {
    const std::string path = path_ + ".denormalizer_spec";
    protobuf_reader in(message, path);
    while (const auto f = in.next())
      if (f->number == 2 && !in.bytes(*f, "precompiled_charsmap").empty())
        unsupported(path, "a table of replacements");
  }

  // "<0x0A>", with large letters.
  static bool is_byte(std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>') &&
           digits.find(text[3]) != digits.npos && digits.find(text[4]) != digits.npos;
  }

  void check_pieces() {
    std::unordered_set<std::string_view> seen;
    std::size_t bytes = 0;
    for (std::size_t id = 0; id < out_.pieces.all.size(); ++id) {
      const scored_piece& p = out_.pieces.all[id];
      const auto wrong = [&](std::string_view what) {
        bad_field(fmt::format("{}.pieces[{}]", path_, id), what);
      };
      if (!seen.insert(p.text).second) wrong("is there twice");
      if (p.kind == piece_kind::byte && !is_byte(p.text)) wrong("is a byte, and is not spelled like <0x0A>");
      if (p.kind == piece_kind::byte) ++bytes;
      if (p.kind != piece_kind::unknown) continue;
      if (out_.pieces.unknown) wrong("is a second unknown piece");
      out_.pieces.unknown = static_cast<token_id>(id);
    }
    if (!out_.pieces.unknown) bad_field(path_ + ".pieces", "none is unknown");
    if (out_.pieces.byte_fallback != (bytes == 256))
      bad_field(trainer_ + ".byte_fallback",
                fmt::format("is {}, and {} pieces are bytes", out_.pieces.byte_fallback, bytes));
  }

  const std::string& path_;
  const std::string trainer_, normalizer_;
  sentencepiece_model out_;
};

}  // namespace

sentencepiece_model parse_sentencepiece_model(std::string_view file, const std::string& path) {
  return parser(path).parse(file);
}

}  // namespace weir::core
