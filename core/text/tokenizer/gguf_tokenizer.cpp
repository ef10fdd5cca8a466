#include "core/text/tokenizer/gguf_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "core/text/tokenizer/gguf_rules.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace json = boost::json;
namespace {

constexpr std::uint32_t most_tokens = 1u << 24;
constexpr std::string_view space = "\u2581";

class builder {
 public:
  explicit builder(gguf_reader& in) : in_(in) {}

  std::optional<tokenizer_parts> build() try {
    const auto kind = in_.text("tokenizer.ggml.model");
    if (!kind) in_.missing("tokenizer.ggml.model");
    read_tokens();
    if (in_.failure()) return std::nullopt;
    if (kind == "gpt2") return byte_level();
    if (kind == "llama") return joined_pieces();
    if (kind == "t5") return unigram_pieces();
    not_supported("tokenizer.ggml.model", *kind);
    return std::nullopt;
  } catch (const refusal& r) {
    in_.fail(r.why.code, r.why.message);
    return std::nullopt;
  }

 private:
  void not_supported(std::string_view key, std::string_view value) {
    in_.fail(errc::not_supported,
             fmt::format("{}: '{}' {} is not supported yet", in_.what(), key, value.substr(0, 60)));
  }
  void bad(std::string_view key, std::string_view why) {
    in_.fail(errc::bad_file, fmt::format("{}: '{}': {}", in_.what(), key, why));
  }

  void read_tokens() {
    const auto* texts = in_.texts("tokenizer.ggml.tokens");
    if (!texts) return in_.missing("tokenizer.ggml.tokens");
    if (texts->empty() || texts->size() > most_tokens)
      return bad("tokenizer.ggml.tokens", fmt::format("{} tokens", texts->size()));
    const auto* types = in_.numbers("tokenizer.ggml.token_type");
    const auto* scores = in_.numbers("tokenizer.ggml.scores");
    for (const auto& [key, list] :
         {std::pair{"tokenizer.ggml.token_type", types}, std::pair{"tokenizer.ggml.scores", scores}})
      if (list && list->size != texts->size())
        return bad(key, fmt::format("{} items for {} tokens", list->size, texts->size()));
    for (std::size_t i = 0; i < texts->size(); ++i) {
      scored_piece t{(*texts)[i]};
      const double type = types ? types->number(i) : 1;
      if (!(type >= 1 && type <= 6))
        return bad("tokenizer.ggml.token_type", fmt::format("[{}] is {}", i, type));
      t.kind = static_cast<piece_kind>(static_cast<int>(type));
      if (scores) t.score = static_cast<float>(scores->number(i));
      if (!std::isfinite(t.score)) return bad("tokenizer.ggml.scores", fmt::format("[{}] is not finite", i));
      if (!is_valid_utf8(t.text)) return bad("tokenizer.ggml.tokens", fmt::format("[{}] is not UTF-8", i));
      tokens_.push_back(t);
    }
  }

  // The id that a key names; nullopt where there is no such key.
  std::optional<std::uint32_t> id_at(std::string_view key) {
    const auto id = in_.count(key, most_tokens);
    if (id && *id >= tokens_.size())
      return bad(key, fmt::format("{} is outside the vocabulary of {}", *id, tokens_.size())), std::nullopt;
    return id;
  }

  // Control tokens are not shown; user-defined ones are text that is one token.
  json::array added_tokens() const {
    json::array out;
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      const piece_kind kind = tokens_[id].kind;
      const bool special = kind == piece_kind::control || kind == piece_kind::unknown;
      if (!special && kind != piece_kind::user_defined) continue;
      out.push_back(json::object{{"id", static_cast<std::int64_t>(id)},
                                 {"content", tokens_[id].text},
                                 {"single_word", false},
                                 {"lstrip", false},
                                 {"rstrip", false},
                                 {"normalized", false},
                                 {"special", special}});
    }
    return out;
  }

  // Without added tokens and without unused ones, which are fillers and have no piece.
  json::object vocabulary() {
    json::object out;
    out.reserve(tokens_.size());
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      const piece_kind kind = tokens_[id].kind;
      if (kind != piece_kind::normal && kind != piece_kind::byte) continue;
      if (!out.emplace(tokens_[id].text, static_cast<std::int64_t>(id)).second)
        bad("tokenizer.ggml.tokens", fmt::format("[{}] is there twice", id));
    }
    return out;
  }

  json::value post_processor(bool adds_bos_by_default, std::optional<std::uint32_t> bos,
                             bool adds_eos_by_default, std::optional<std::uint32_t> eos) {
    json::array single;
    json::object specials;
    const auto add = [&](std::string_view key, std::optional<std::uint32_t> id) {
      if (!id) return in_.missing(key);
      const json::value name(tokens_[*id].text);
      single.push_back(json::object{{"SpecialToken", {{"id", name}, {"type_id", 0}}}});
      specials[tokens_[*id].text] = json::object{{"id", name}, {"ids", json::array{std::int64_t{*id}}}};
    };
    if (in_.boolean("tokenizer.ggml.add_bos_token").value_or(adds_bos_by_default))
      add("tokenizer.ggml.bos_token_id", bos);
    single.push_back(json::object{{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
    if (in_.boolean("tokenizer.ggml.add_eos_token").value_or(adds_eos_by_default))
      add("tokenizer.ggml.eos_token_id", eos);
    if (specials.empty()) return nullptr;
    return json::object{{"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", specials}};
  }

  // Merges as the file lists them, "left right", cut at the first space that is not their first character.
  json::array listed_merges(const std::vector<std::string_view>& lines) {
    json::array out;
    out.reserve(lines.size());
    for (const std::string_view line : lines) {
      const std::size_t cut = line.find(' ', 1);
      if (cut == line.npos || !is_valid_utf8(line)) {
        bad("tokenizer.ggml.merges", fmt::format("[{}] is not two pieces", out.size()));
        return out;
      }
      out.push_back(json::array{line.substr(0, cut), line.substr(cut + 1)});
    }
    return out;
  }

  std::optional<tokenizer_parts> parts(const json::object& file) {
    if (in_.failure()) return std::nullopt;
    const json::value document(file);
    return parts_of(json_field(document, in_.what() + ": tokenizer"));
  }
  std::optional<tokenizer_parts> parts(const json::object& file, word_model model) {
    if (in_.failure()) return std::nullopt;
    const json::value document(file);
    return parts_of(json_field(document, in_.what() + ": tokenizer"), std::move(model));
  }

  std::optional<tokenizer_parts> byte_level() {
    const auto name = in_.text("tokenizer.ggml.pre");
    if (!name) {
      if (!in_.failure())
        in_.fail(errc::not_supported,
                 fmt::format("{}: 'tokenizer.ggml.pre' is missing: it says how a text is cut into words",
                             in_.what()));
      return std::nullopt;
    }
    const gguf_rule* rule = find_gguf_rule(*name);
    if (!rule) return not_supported("tokenizer.ggml.pre", *name), std::nullopt;
    const auto* merges = in_.texts("tokenizer.ggml.merges");
    if (!merges) return in_.missing("tokenizer.ggml.merges"), std::nullopt;

    json::array steps;
    if (rule->single_digits) steps.push_back(json::object{{"type", "Digits"}, {"individual_digits", true}});
    for (const std::string_view expression : rule->expressions)
      steps.push_back(json::object{{"type", "Split"},
                                   {"pattern", {{"Regex", expression}}},
                                   {"behavior", "Isolated"},
                                   {"invert", false}});
    const json::object bytes{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
    steps.push_back(bytes);

    json::object out{{"added_tokens", added_tokens()}};
    if (rule->composes) out["normalizer"] = json::object{{"type", "NFC"}};
    out["pre_tokenizer"] = json::object{{"type", "Sequence"}, {"pretokenizers", steps}};
    out["post_processor"] = post_processor(rule->adds_bos, id_at("tokenizer.ggml.bos_token_id"), false,
                                           id_at("tokenizer.ggml.eos_token_id"));
    out["decoder"] = bytes;
    out["model"] = json::object{{"type", "BPE"},
                                {"ignore_merges", rule->ignore_merges},
                                {"vocab", vocabulary()},
                                {"merges", listed_merges(*merges)}};
    return parts(out);
  }

  std::optional<std::uint32_t> id_with_default(std::string_view key, std::uint32_t id) {
    const auto named = id_at(key);
    return named ? named : id < tokens_.size() ? std::optional(id) : std::nullopt;
  }

  // Checks what the models of pieces require. Unused tokens are fillers, which may be there twice, and get no
  // piece.
  scored_pieces pieces(std::uint32_t unknown) {
    if (tokens_[unknown].kind == piece_kind::unused)
      bad("tokenizer.ggml.unknown_token_id", fmt::format("{} is an unused token", unknown));
    std::unordered_set<std::string_view> seen;
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      const scored_piece& t = tokens_[id];
      if (t.kind == piece_kind::unused) continue;
      if (!seen.insert(t.text).second)
        bad("tokenizer.ggml.tokens", fmt::format("[{}] is there twice", id));
      if (t.kind != piece_kind::control && t.text.size() > most_piece_bytes)
        bad("tokenizer.ggml.tokens",
            fmt::format("[{}] has {} bytes, {} are the most", id, t.text.size(), most_piece_bytes));
    }
    scored_pieces out{tokens_, static_cast<token_id>(unknown), false};
    for (scored_piece& t : out.all)
      if (t.kind == piece_kind::unused) t.text = {};
    return out;
  }

  // `leads`: a text has a space in front.
  json::object decoder_of_pieces(bool leads) const {
    json::array steps{json::object{{"type", "Replace"}, {"pattern", {{"String", space}}}, {"content", " "}},
                      json::object{{"type", "ByteFallback"}}, json::object{{"type", "Fuse"}}};
    if (leads) steps.push_back(json::object{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    return json::object{{"type", "Sequence"}, {"decoders", steps}};
  }

  std::optional<tokenizer_parts> joined_pieces() {
    const auto* merges = in_.texts("tokenizer.ggml.merges");
    if (!merges && !in_.find("tokenizer.ggml.scores")) in_.missing("tokenizer.ggml.scores");
    const bool leads = in_.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
    const auto unknown = id_with_default("tokenizer.ggml.unknown_token_id", 0);
    if (!unknown || in_.failure()) return std::nullopt;

    json::array before;
    if (leads) before.push_back(json::object{{"type", "Prepend"}, {"prepend", space}});
    before.push_back(json::object{{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", space}});
    json::object out{{"added_tokens", added_tokens()}};
    out["normalizer"] = json::object{{"type", "Sequence"}, {"normalizers", before}};
    out["post_processor"] = post_processor(true, id_with_default("tokenizer.ggml.bos_token_id", 1), false,
                                           id_with_default("tokenizer.ggml.eos_token_id", 2));
    out["decoder"] = decoder_of_pieces(leads);
    if (merges) {
      out["model"] = listed_model(*merges, *unknown);
      return parts(out);
    }
    scored_pieces all = pieces(*unknown);
    all.byte_fallback = true;
    if (in_.failure()) return std::nullopt;
    return parts(out, word_model(piece_bpe(all)));
  }

  // Pieces with scores whose joins are listed all the same.
  json::object listed_model(const std::vector<std::string_view>& merges, std::uint32_t unknown) {
    json::object vocab;
    const scored_pieces all = pieces(unknown);
    for (std::size_t id = 0; id < all.all.size(); ++id)
      if (!all.all[id].text.empty()) vocab.emplace(all.all[id].text, static_cast<std::int64_t>(id));
    return json::object{{"type", "BPE"},           {"unk_token", tokens_[unknown].text},
                        {"fuse_unk", true},        {"byte_fallback", true},
                        {"vocab", std::move(vocab)}, {"merges", listed_merges(merges)}};
  }

  // The table of replacements, which files have as numbers.
  std::string replacements() {
    constexpr std::string_view key = "tokenizer.ggml.precompiled_charsmap";
    std::string out;
    const auto* bytes = in_.find(key) ? in_.numbers(key) : nullptr;
    if (bytes && bytes->size > charsmap::most_bytes) return bad(key, "is too long"), out;
    for (std::size_t i = 0; bytes && i < bytes->size; ++i) {
      const double byte = bytes->number(i);
      if (!(byte >= -128 && byte <= 255)) return bad(key, fmt::format("[{}] is not a byte", i)), out;
      out.push_back(static_cast<char>(static_cast<int>(byte)));
    }
    return out;
  }

  std::optional<tokenizer_parts> unigram_pieces() {
    if (!in_.find("tokenizer.ggml.scores")) in_.missing("tokenizer.ggml.scores");
    const auto unknown = id_with_default("tokenizer.ggml.unknown_token_id", 2);
    const std::string table = replacements();
    if (!unknown || in_.failure()) return std::nullopt;
    const std::string path = in_.what() + ": tokenizer.ggml.precompiled_charsmap";
    sentence_rules rules;
    if (!table.empty()) rules.replacements.emplace(table, path);
    rules.leading_space = in_.boolean("tokenizer.ggml.add_space_prefix").value_or(false);
    rules.removes_extra_spaces = in_.boolean("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
    json::object out{{"added_tokens", added_tokens()}};
    out["post_processor"] = post_processor(false, id_at("tokenizer.ggml.bos_token_id"), true,
                                           id_with_default("tokenizer.ggml.eos_token_id", 1));
    out["decoder"] = decoder_of_pieces(rules.leading_space);
    const scored_pieces all = pieces(*unknown);
    if (in_.failure()) return std::nullopt;
    auto made = parts(out, word_model(unigram(all)));
    if (made) made->normal = normalizer(std::move(rules), path);
    return made;
  }

  gguf_reader& in_;
  std::vector<scored_piece> tokens_;  // [id]
};

constexpr std::string_view template_key = "tokenizer.chat_template";

}  // namespace

std::optional<tokenizer_parts> gguf_tokenizer(gguf_reader& keys) { return builder(keys).build(); }

json::object gguf_special_tokens(gguf_reader& keys) {
  json::object out;
  const auto* texts = keys.texts("tokenizer.ggml.tokens");
  if (!texts) return out;
  const bool pieces = keys.text("tokenizer.ggml.model") == "llama";
  const auto add = [&](const char* name, std::string_view key, std::optional<std::uint32_t> absent) {
    const auto id = keys.find(key) ? keys.count(key, most_tokens) : absent;
    if (id && *id < texts->size() && is_valid_utf8((*texts)[*id])) out[name] = (*texts)[*id];
  };
  const auto usual = [&](std::uint32_t id) { return pieces ? std::optional(id) : std::nullopt; };
  add("bos_token", "tokenizer.ggml.bos_token_id", usual(1));
  add("eos_token", "tokenizer.ggml.eos_token_id", usual(2));
  add("unk_token", "tokenizer.ggml.unknown_token_id", usual(0));
  add("pad_token", "tokenizer.ggml.padding_token_id", std::nullopt);
  return out;
}

std::vector<std::pair<std::string, std::string>> gguf_chat_templates(gguf_reader& keys) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [key, value] : keys.keys()) {
    if (!key.starts_with(template_key)) continue;
    const std::string_view rest = std::string_view(key).substr(template_key.size());
    if (!rest.empty() && (rest[0] != '.' || rest.size() == 1)) continue;  // "chat_templates" lists the names
    const auto text = keys.text(key);
    if (text) out.emplace_back(rest.empty() ? "default" : std::string(rest.substr(1)), std::string(*text));
  }
  return out;
}

}  // namespace weir::core
