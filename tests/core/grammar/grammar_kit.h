// grammar_kit.h — what tests of grammars share: vocabularies, walks, and the facts of other engines.
#pragma once

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/grammar/compile.h"
#include "core/grammar/constraint.h"
#include "tests/core/grammar/schema/schema_kit.h"
#include "tests/support/data.h"

namespace weir::tests {

inline std::shared_ptr<core::grammar::terminal_views> bundled_views() {
  static const auto views = [] {
    auto t = core::load_tokenizer(bundled_models().front().string());
    REQUIRE(t.has_value());
    return std::make_shared<core::grammar::terminal_views>(
        std::make_shared<const core::grammar::token_trie>(*t));
  }();
  return views;
}

inline core::grammar::constraint_text grammar_of(std::string source, std::string syntax) {
  core::grammar::constraint_text c;
  c.what = core::grammar::constraint_text::kind::grammar;
  c.text = std::move(source);
  c.syntax = std::move(syntax);
  return c;
}

// Compiled and bound; the error of either.
inline core::result<std::shared_ptr<core::grammar::constraint>> bound(
    const core::grammar::constraint_text& text,
    std::shared_ptr<core::grammar::terminal_views> views = byte_views()) {
  auto c = core::grammar::compile(text);
  if (!c) return c.error();
  return core::grammar::constraint::make(std::move(*c), std::move(views));
}

// The index of the first byte that is not allowed, or the text's length where only the end is not allowed.
// nullopt: the text is accepted.
inline std::optional<std::size_t> refused_at(core::grammar::constraint& over, std::string_view text) {
  auto at = over.start();
  for (std::size_t i = 0; i < text.size(); ++i) {
    at = over.step(at, static_cast<unsigned char>(text[i]));
    REQUIRE(at != core::grammar::constraint::failed);
    if (at == core::grammar::constraint::dead) return i;
  }
  if (over.may_end(at)) return std::nullopt;
  return text.size();
}

inline std::shared_ptr<core::grammar::constraint> bound_grammar(
    const std::string& source, const char* syntax,
    std::shared_ptr<core::grammar::terminal_views> views = byte_views()) {
  auto out = bound(grammar_of(source, syntax), std::move(views));
  if (!out) FAIL(out.error().message);
  return *out;
}

// Texts that a grammar allows, and texts that it does not.
struct grammar_texts {
  std::string source;
  std::vector<std::string> in, out;
};

inline void check_texts(const std::vector<grammar_texts>& all, const char* syntax) {
  for (const auto& f : all) {
    INFO(f.source);
    const auto over = bound_grammar(f.source, syntax);
    for (const auto& text : f.in) {
      INFO(text);
      CHECK_FALSE(refused_at(*over, text));
    }
    for (const auto& text : f.out) {
      INFO(text);
      CHECK(refused_at(*over, text));
    }
  }
}

// Writes random tokens that the masks allow, and compares each mask with its definition. False: a mask was
// empty where the text may not end, or a token of a mask was not accepted.
inline bool masks_are_exact(core::grammar::constraint& over, std::mt19937& random, int longest) {
  auto at = over.start();
  for (int n = 0; n < longest && !over.must_end(at); ++n) {
    const auto* mask = over.mask(at);
    if (!mask || mask->count() == 0) return false;
    const auto ids = mask->ids();
    if (ids != over.mask_by_definition(at).ids()) return false;
    at = over.accept(at, ids[random() % ids.size()]);
    if (at <= core::grammar::constraint::failed) return false;
  }
  return true;
}

inline void check_masks(const std::vector<grammar_texts>& all, const char* syntax) {
  std::mt19937 random(11);
  for (const auto& f : all) {
    INFO(f.source);
    const auto over = bound(grammar_of(f.source, syntax), bundled_views());
    if (over) CHECK(masks_are_exact(**over, random, 12));
  }
}

// What other engines say of grammars; empty where the data is missing.
inline std::vector<boost::json::object> grammar_facts(std::string_view syntax) {
  std::vector<boost::json::object> out;
  std::ifstream in(data_dir() / "schemas" / "engines" / "grammars.jsonl");
  for (std::string line; std::getline(in, line);) {
    auto fact = boost::json::parse(line).as_object();
    if (fact.at("syntax").as_string() == syntax) out.push_back(std::move(fact));
  }
  if (out.empty()) WARN("no data");
  return out;
}

}  // namespace weir::tests
