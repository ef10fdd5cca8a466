#include "core/text/tokenizer/sentencepiece_tokenizer.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/text/tokenizer/sentencepiece_model.h"

namespace weir::core {
namespace {

namespace json = boost::json;

const std::string file_name = "tokenizer.model";

// Classes of Hugging Face's that hand a text to the library and add a BOS unless told otherwise. `legacy`:
// where no file says so; such a tokenizer begins the text behind an added token like a new text.
struct known_class {
  std::string_view name;
  bool legacy;
};
constexpr std::array classes{
    known_class{"", true},  // no file names one
    known_class{"LlamaTokenizer", true},
    known_class{"LlamaTokenizerFast", true},
    known_class{"CodeLlamaTokenizer", false},
    known_class{"CodeLlamaTokenizerFast", false},
    known_class{"GemmaTokenizer", true},
    known_class{"GemmaTokenizerFast", true},
    known_class{"BaichuanTokenizer", true},
    known_class{"InternLMTokenizer", true},
    known_class{"InternLM2Tokenizer", true},
    known_class{"InternLM2TokenizerFast", true},
};

const known_class& class_of(const tokenizer_settings& settings) {
  const auto* found = std::ranges::find(classes, settings.class_name, &known_class::name);
  if (found == classes.end())
    unsupported("tokenizer_config.json.tokenizer_class",
                fmt::format("'{}' with {}", settings.class_name, file_name));
  return *found;
}

class builder {
 public:
  builder(std::string_view file, const tokenizer_settings& settings)
      : settings_(settings),
        class_(class_of(settings)),
        model_(parse_sentencepiece_model(file, file_name)),
        leading_space_(settings.leading_space.value_or(true) && model_.leading_space) {}

  std::shared_ptr<const tokenizer> build() {
    tokenizer_config config = settings_.config();
    if (!settings_.bos && is_control(model_.bos)) config.bos = model_.bos;
    config.clean_up_spaces = settings_.clean_up_spaces.value_or(false);
    normalizer normal(rules(), path() + ".normalizer_spec.precompiled_charsmap");
    added_tokens added(added_list(), normal, "token");
    tokenizer_parts parts{std::move(normal), std::move(added), pretokenizer(std::nullopt),
                          word_model_of_pieces(), around(config.bos), back()};
    return std::make_shared<const hf_tokenizer>(std::move(parts), config, path());
  }

 private:
  static const std::string& path() { return file_name; }
  const std::vector<scored_piece>& pieces() const { return model_.pieces.all; }

  std::optional<token_id> find(std::string_view text) const {
    if (text.empty()) return std::nullopt;
    const auto found = std::ranges::find(pieces(), text, &scored_piece::text);
    return found == pieces().end() ? std::nullopt : std::optional<token_id>(found - pieces().begin());
  }
  bool is_control(std::string_view text) const {
    const auto id = find(text);
    return id && pieces()[static_cast<std::size_t>(*id)].kind == piece_kind::control;
  }

  sentence_rules rules() const {
    sentence_rules out;
    if (!model_.replacements.empty())
      out.replacements.emplace(model_.replacements, path() + ".normalizer_spec.precompiled_charsmap");
    std::vector<std::pair<std::string_view, std::int32_t>> fixed;
    for (const scored_piece& p : pieces())
      if (p.kind == piece_kind::user_defined) fixed.emplace_back(p.text, 0);
    out.user_defined = piece_trie(std::move(fixed));
    out.leading_space = leading_space_;
    out.at_the_start_alone = !settings_.legacy.value_or(class_.legacy);
    out.removes_extra_spaces = model_.removes_extra_spaces;
    return out;
  }

  word_model word_model_of_pieces() const {
    if (model_.kind == sentencepiece_model::type::bpe) return word_model(piece_bpe(model_.pieces));
    return word_model(unigram(model_.pieces));
  }

  // Control pieces and the unknown piece, then what the files beside the model add. A special token that they
  // name without an id is the piece of that spelling, if there is one.
  std::vector<added_token> added_list() const {
    std::map<token_id, added_token> all;
    const auto add_piece = [&](std::size_t id) {
      const auto i = static_cast<token_id>(id);
      all[i] = {.content = std::string(pieces()[id].text), .id = i, .special = true};
    };
    for (std::size_t id = 0; id < pieces().size(); ++id)
      if (pieces()[id].kind == piece_kind::control || pieces()[id].kind == piece_kind::unknown) add_piece(id);
    std::map<std::string_view, std::size_t> ids;
    if (!settings_.special.empty())
      for (std::size_t id = 0; id < pieces().size(); ++id) ids.emplace(pieces()[id].text, id);
    for (const std::string& name : settings_.special)
      if (const auto found = ids.find(name); found != ids.end()) add_piece(found->second);
    std::vector<added_token> out;
    for (const added_token& t : settings_.added) {
      all[t.id] = t;
      all[t.id].normalized = false;  // the library's classes cut all of them out of the text as it is
    }
    for (auto& [id, t] : all) out.push_back(std::move(t));
    return out;
  }

  std::optional<token_id> id_of(std::string_view spelling) const {
    const auto added = std::ranges::find(settings_.added, spelling, &added_token::content);
    return added != settings_.added.end() ? std::optional(added->id) : find(spelling);
  }

  // `key`: what asked for the token, if a file did.
  std::vector<token_id> one(std::string_view spelling, std::optional<bool> asked, bool by_default,
                            std::string_view key) const {
    if (!asked.value_or(by_default)) return {};
    if (const auto id = id_of(spelling)) return {*id};
    if (asked) bad_field(fmt::format("tokenizer_config.json.{}", key), "there is no such token");
    return {};
  }

  post_processor around(std::string_view bos) const {
    const std::string eos = settings_.eos.value_or(std::string(model_.eos));
    return {one(bos, settings_.adds_bos, true, "add_bos_token"),
            one(eos, settings_.adds_eos, false, "add_eos_token")};
  }

  // A model that removes spaces in front of a text has none in front of a decoded text.
  decoder back() const {
    constexpr std::string_view space = "\u2581";
    json::array steps{json::object{{"type", "Replace"}, {"pattern", {{"String", space}}}, {"content", " "}}};
    if (model_.pieces.byte_fallback) steps.push_back(json::object{{"type", "ByteFallback"}});
    steps.push_back(json::object{{"type", "Fuse"}});
    const int most = model_.removes_extra_spaces ? 1 << 20 : leading_space_ ? 1 : 0;
    if (most > 0)
      steps.push_back(json::object{{"type", "Strip"}, {"content", " "}, {"start", most}, {"stop", 0}});
    const json::value all = json::object{{"type", "Sequence"}, {"decoders", steps}};
    return decoder(json_field(all, "decoder"));
  }

  const tokenizer_settings& settings_;
  const known_class& class_;
  const sentencepiece_model model_;
  const bool leading_space_;
};

}  // namespace

std::shared_ptr<const tokenizer> sentencepiece_tokenizer(std::string_view file,
                                                         const tokenizer_settings& settings) {
  return builder(file, settings).build();
}

}  // namespace weir::core
