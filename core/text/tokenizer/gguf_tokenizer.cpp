#include "core/text/tokenizer/gguf_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "core/text/tokenizer/gguf_rules.h"
#include "core/text/tokenizer/unicode.h"
#include "core/token.h"

namespace weir::core {
namespace json = boost::json;
namespace {

constexpr std::uint32_t most_tokens = 1u << 24;
constexpr std::size_t most_piece_bytes = 512;  // of a piece that is split in all ways
constexpr std::string_view space = "\u2581";

enum class token_type { normal = 1, unknown, control, user_defined, unused, byte };

struct raw_token {
  std::string_view text;
  token_type type = token_type::normal;
  float score = 0;
};

class builder {
 public:
  explicit builder(gguf_reader& in) : in_(in) {}

  json::object build() {
    const auto kind = in_.text("tokenizer.ggml.model");
    if (!kind) in_.missing("tokenizer.ggml.model");
    read_tokens();
    if (in_.failure()) return {};
    if (kind == "gpt2") return byte_level();
    if (kind == "llama") return sentence_pieces();
    not_supported("tokenizer.ggml.model", *kind);
    return {};
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
      raw_token t{(*texts)[i]};
      const double type = types ? types->number(i) : 1;
      if (!(type >= 1 && type <= 6))
        return bad("tokenizer.ggml.token_type", fmt::format("[{}] is {}", i, type));
      t.type = static_cast<token_type>(static_cast<int>(type));
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
      const token_type type = tokens_[id].type;
      const bool special = type == token_type::control || type == token_type::unknown;
      if (!special && type != token_type::user_defined) continue;
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

  // `all`: with the added tokens too. Unused tokens are fillers and have no piece.
  json::object vocabulary(bool all) {
    json::object out;
    out.reserve(tokens_.size());
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      const token_type type = tokens_[id].type;
      if (type == token_type::unused || (!all && type != token_type::normal && type != token_type::byte))
        continue;
      if (!out.emplace(tokens_[id].text, static_cast<std::int64_t>(id)).second)
        bad("tokenizer.ggml.tokens", fmt::format("[{}] is there twice", id));
    }
    return out;
  }

  json::value post_processor(bool adds_bos_by_default, std::optional<std::uint32_t> bos,
                             std::optional<std::uint32_t> eos) {
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
    if (in_.boolean("tokenizer.ggml.add_eos_token").value_or(false)) add("tokenizer.ggml.eos_token_id", eos);
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

  json::object byte_level() {
    const auto name = in_.text("tokenizer.ggml.pre");
    if (!name) {
      if (!in_.failure())
        in_.fail(errc::not_supported,
                 fmt::format("{}: 'tokenizer.ggml.pre' is missing: it says how a text is cut into words",
                             in_.what()));
      return {};
    }
    const gguf_rule* rule = find_gguf_rule(*name);
    if (!rule) return not_supported("tokenizer.ggml.pre", *name), json::object();
    const auto* merges = in_.texts("tokenizer.ggml.merges");
    if (!merges) return in_.missing("tokenizer.ggml.merges"), json::object();

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
    out["post_processor"] = post_processor(rule->adds_bos, id_at("tokenizer.ggml.bos_token_id"),
                                           id_at("tokenizer.ggml.eos_token_id"));
    out["decoder"] = bytes;
    out["model"] = json::object{{"type", "BPE"},
                                {"ignore_merges", rule->ignore_merges},
                                {"vocab", vocabulary(false)},
                                {"merges", listed_merges(*merges)}};
    return out;
  }

  // SentencePiece joins the two neighbours whose piece has the highest score. A list of merges has the same
  // effect: it has all ways to split each piece into two pieces, pieces of higher scores first.
  json::array merges_of_scores() {
    std::unordered_map<std::string_view, std::size_t> known;
    std::vector<std::size_t> order;
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (tokens_[id].type != token_type::normal && tokens_[id].type != token_type::user_defined) continue;
      known.emplace(tokens_[id].text, id);
      order.push_back(id);
    }
    std::ranges::stable_sort(
        order, [&](std::size_t a, std::size_t b) { return tokens_[a].score > tokens_[b].score; });
    json::array out;
    for (const std::size_t id : order) {
      const std::string_view text = tokens_[id].text;
      if (text.size() > most_piece_bytes) {
        bad("tokenizer.ggml.tokens",
            fmt::format("[{}] has {} bytes, {} are the most", id, text.size(), most_piece_bytes));
        return out;
      }
      for (std::size_t cut = text.empty() ? 0 : character_size(text[0]); cut < text.size();
           cut += character_size(text[cut]))
        if (known.contains(text.substr(0, cut)) && known.contains(text.substr(cut)))
          out.push_back(json::array{text.substr(0, cut), text.substr(cut)});
    }
    return out;
  }

  json::object sentence_pieces() {
    const auto* merges = in_.texts("tokenizer.ggml.merges");
    if (!merges && !in_.find("tokenizer.ggml.scores")) in_.missing("tokenizer.ggml.scores");
    const bool leads = in_.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
    const auto with_default = [&](const char* key, std::uint32_t id) {
      const auto named = id_at(key);
      return named ? named : id < tokens_.size() ? std::optional(id) : std::nullopt;
    };
    const auto unknown = with_default("tokenizer.ggml.unknown_token_id", 0);
    if (!unknown || in_.failure()) return {};

    const json::object to_text{{"type", "Replace"}, {"pattern", {{"String", space}}}, {"content", " "}};
    json::array before,
        after{to_text, json::object{{"type", "ByteFallback"}}, json::object{{"type", "Fuse"}}};
    if (leads) before.push_back(json::object{{"type", "Prepend"}, {"prepend", space}});
    before.push_back(json::object{{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", space}});
    if (leads) after.push_back(json::object{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});

    json::object out{{"added_tokens", added_tokens()}};
    out["normalizer"] = json::object{{"type", "Sequence"}, {"normalizers", before}};
    out["post_processor"] = post_processor(true, with_default("tokenizer.ggml.bos_token_id", 1),
                                           with_default("tokenizer.ggml.eos_token_id", 2));
    out["decoder"] = json::object{{"type", "Sequence"}, {"decoders", after}};
    out["model"] = json::object{{"type", "BPE"},
                                {"unk_token", tokens_[*unknown].text},
                                {"fuse_unk", true},
                                {"byte_fallback", true},
                                {"vocab", vocabulary(true)},
                                {"merges", merges ? listed_merges(*merges) : merges_of_scores()}};
    return out;
  }

  gguf_reader& in_;
  std::vector<raw_token> tokens_;
};

constexpr std::string_view template_key = "tokenizer.chat_template";

}  // namespace

json::object gguf_tokenizer(gguf_reader& keys) { return builder(keys).build(); }

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
