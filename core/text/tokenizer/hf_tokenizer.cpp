#include "core/text/tokenizer/hf_tokenizer.h"

#include <algorithm>

#include "core/text/byte_joiner.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

vocabulary pieces_of(const std::vector<added_token>& tokens) {
  std::vector<std::pair<std::string_view, token_id>> pieces;
  for (const added_token& t : tokens) pieces.emplace_back(t.content, t.id);
  return vocabulary(pieces);
}

std::vector<std::string_view> spellings_of_special(const added_tokens& tokens) {
  std::vector<std::string_view> out;
  for (const added_token& t : tokens.all())
    if (t.special) out.push_back(t.content);
  return out;
}

// The fields `truncation` and `padding` are ignored on purpose, since they are for batches of training.
tokenizer_parts parts_with(const json_field& file, const auto& make_model) {
  normalizer normal(file.find("normalizer"));
  added_tokens added(file.find("added_tokens"), normal);
  word_model model = make_model(added);
  return {std::move(normal),
          std::move(added),
          pretokenizer(file.find("pre_tokenizer")),
          std::move(model),
          post_processor(file.find("post_processor")),
          decoder(file.find("decoder"))};
}

}  // namespace

tokenizer_parts parts_of(const json_field& file) {
  return parts_with(
      file, [&](const added_tokens& t) { return word_model(file.at("model"), spellings_of_special(t)); });
}

tokenizer_parts parts_of(const json_field& file, word_model model) {
  return parts_with(file, [&](const added_tokens&) { return std::move(model); });
}

hf_tokenizer::hf_tokenizer(tokenizer_parts parts, const tokenizer_config& config, const std::string& path)
    : normalizer_(std::move(parts.normal)),
      added_(std::move(parts.added)),
      pretokenizer_(std::move(parts.cuts)),
      model_(std::move(parts.model)),
      post_processor_(std::move(parts.around)),
      decoder_(std::move(parts.back)),
      added_pieces_(pieces_of(added_.all())),
      clean_up_spaces_(config.clean_up_spaces) {
  read_pieces();
  if (!config.bos.empty()) bos_ = id_of(config.bos);
  const auto outside = [&](token_id id) { return index(id) >= traits_.size(); };
  if (std::any_of(post_processor_.before().begin(), post_processor_.before().end(), outside) ||
      std::any_of(post_processor_.after().begin(), post_processor_.after().end(), outside)) {
    bad_field(path + ".post_processor", "names an id outside the vocabulary");
  }
}

void hf_tokenizer::read_pieces() {
  traits_.resize(std::max(model_.pieces().id_limit(), added_pieces_.id_limit()));
  for (const added_token& t : added_.all()) traits_[index(t.id)].special |= t.special;
  for (std::size_t id = 0; id < traits_.size(); ++id) {
    const std::string_view piece = spelling(static_cast<token_id>(id));
    const auto reading = piece.empty() ? decoder::reading{} : decoder_.read(piece);
    bytes_.add(reading.bytes);
    traits_[id].byte_piece = reading.byte_piece;
  }
}

std::string_view hf_tokenizer::spelling(token_id id) const noexcept {
  const std::string_view added = added_pieces_.piece(id);
  return added.empty() ? model_.pieces().piece(id) : added;
}

std::optional<token_id> hf_tokenizer::id_of(std::string_view piece) const {
  const auto added = added_pieces_.find(piece);
  return added ? added : model_.pieces().find(piece);
}

bool hf_tokenizer::adds_bos() const {
  return bos_ && !post_processor_.before().empty() && post_processor_.before().front() == *bos_;
}

std::vector<token_id> hf_tokenizer::encode(std::string_view utf8, encode_options how) const try {
  const std::string repaired = is_valid_utf8(utf8) ? std::string() : to_valid_utf8(utf8);
  const std::string_view text = repaired.empty() ? utf8 : repaired;
  work_steps(how.at).add(text.size());
  std::vector<span_of_text> plain;
  if (!how.parse_special) plain.push_back({0, text.size()});
  std::vector<token_id> ids = encode_text(text, plain, how.at);
  if (how.add_special) {
    ids.insert(ids.begin(), post_processor_.before().begin(), post_processor_.before().end());
    ids.insert(ids.end(), post_processor_.after().begin(), post_processor_.after().end());
  }
  return ids;
} catch (const nobody_waits&) {
  return {};
}

std::vector<token_id> hf_tokenizer::encode_parts(std::span<const part> parts, turn* at) const try {
  std::string text;
  std::vector<span_of_text> plain;
  for (const part& p : parts) {
    const std::size_t begin = text.size();
    append_valid_utf8(text, p.text);
    if (!p.control && begin < text.size()) plain.push_back({begin, text.size()});
  }
  return encode_text(text, plain, at);
} catch (const nobody_waits&) {
  return {};
}

std::vector<token_id> hf_tokenizer::encode_text(std::string_view text, const std::vector<span_of_text>& plain,
                                                turn* at) const {
  std::vector<token_id> ids;
  scratch s{.at = at};
  work_steps all(at);
  for (const text_segment& segment : added_.cut(added_tokens::stage::raw, text, plain, at)) {
    all.add();
    if (segment.id) {
      ids.push_back(*segment.id);
    } else {
      encode_segment(segment.at.of(text), segment.at.begin == 0, overlaps_any(plain, segment.at), s, ids);
    }
  }
  return ids;
}

// `plain`: the segment contains user text. Normalization loses which bytes those are, so no special token is
// recognised in the normalized text of such a segment.
void hf_tokenizer::encode_segment(std::string_view text, bool opens, bool plain, scratch& s,
                                  std::vector<token_id>& out) const {
  s.text = text;
  opens = normalizer_.apply(s.text, opens, s.at) && opens;
  if (!added_.has(added_tokens::stage::normalized)) return encode_words(s.text, opens, s, out);
  std::vector<span_of_text> all_plain;
  if (plain) all_plain.push_back({0, s.text.size()});
  for (const text_segment& segment : added_.cut(added_tokens::stage::normalized, s.text, all_plain, s.at)) {
    if (segment.id) {
      out.push_back(*segment.id);
    } else {
      encode_words(segment.at.of(s.text), opens && segment.at.begin == 0, s, out);
    }
  }
}

void hf_tokenizer::encode_words(std::string_view text, bool opens, scratch& s,
                                std::vector<token_id>& out) const {
  pretokenizer_.cut(text, opens, s.words, s.at);
  work_steps all(s.at);
  for (const span_of_text& word : s.words.words) {
    all.add(1 + word.end - word.begin);
    model_.encode(word.of(s.words.text), s.model, out, s.at);
  }
}

std::string hf_tokenizer::decode(std::span<const token_id> ids, decode_options how) const {
  std::string text;
  byte_joiner joiner;
  std::string_view first;
  for (const token_id id : ids) {
    if (how.skip_special && is_special(id)) continue;
    if (first.empty()) first = spelling(id);
    joiner.push(token_bytes(id), is_byte_piece(id), text);
  }
  joiner.finish(text);
  decoder_.finish(text, first);
  return how.clean_up_spaces ? weir::core::clean_up_spaces(std::move(text)) : text;
}

}  // namespace weir::core
