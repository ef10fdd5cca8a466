#include "core/text/tokenizer/word_model.h"

namespace weir::core {
namespace {

void encode_with(const bpe& m, std::string_view word, word_model::workspace& w, std::vector<token_id>& out,
                 turn* at) {
  m.encode(word, w.merging, out, at);
}
void encode_with(const piece_bpe& m, std::string_view word, word_model::workspace& w,
                 std::vector<token_id>& out, turn* at) {
  m.encode(word, w.joining, out, at);
}
void encode_with(const unigram& m, std::string_view word, word_model::workspace& w,
                 std::vector<token_id>& out, turn* at) {
  m.encode(word, w.cutting, out, at);
}

// Old files have no `type`. Such a file is BPE if it has merges.
std::variant<bpe, piece_bpe, unigram> read_model(const json_field& model,
                                                 const std::vector<std::string_view>& control) {
  const auto type = model.find("type");
  if (!type && !model.find("merges")) model.bad("'type' is missing");
  if (!type || type->text() == "BPE") return bpe(model);
  if (type->text() == "Unigram") return unigram(model, control);
  model.refuse(fmt::format("model '{}'", type->text()));
}

}  // namespace

word_model::word_model(const json_field& model, const std::vector<std::string_view>& control)
    : model_(read_model(model, control)) {}

void word_model::encode(std::string_view word, workspace& w, std::vector<token_id>& out, turn* at) const {
  std::visit([&](const auto& m) { encode_with(m, word, w, out, at); }, model_);
}

const vocabulary& word_model::pieces() const noexcept {
  return std::visit([](const auto& m) -> const vocabulary& { return m.pieces(); }, model_);
}

std::string_view word_model::type() const noexcept {
  static constexpr std::string_view names[] = {"BPE", "BPE by scores", "Unigram"};
  return names[model_.index()];
}

}  // namespace weir::core
