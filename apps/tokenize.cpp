#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fstream>
#include <iostream>
#include <memory>

#include "apps/commands.h"
#include "apps/engine_options.h"
#include "apps/printable.h"
#include "core/text/tokenizer/tokenizer.h"

namespace weir::apps {
namespace {

namespace json = boost::json;
using core::token_id;
using core::tokenizer;

struct tokenize_options {
  std::string model, text, batch;
  std::vector<token_id> ids;
  bool given_text = false, given_ids = false;
  bool no_special = false;
};

std::string decoded(const tokenizer& t, const std::vector<token_id>& ids) {
  return t.decode(ids, {.skip_special = false, .clean_up_spaces = t.clean_up_spaces()});
}

// Answers a line {"text":…,"add_special":bool} with {"ids":[…],"text":decoded}. An error names the field.
core::result<json::object> answer(const tokenizer& t, const std::string& line) {
  json::error_code ec;
  const auto value = json::parse(line, ec);
  const auto* o = ec ? nullptr : value.if_object();
  if (!o) return core::bad_param("", "not a JSON object");
  const auto* text = o->if_contains("text");
  if (!text || !text->is_string()) return core::bad_param("text", "text must be a string");
  bool add = true;
  if (const auto* a = o->if_contains("add_special")) {
    if (!a->is_bool()) return core::bad_param("add_special", "add_special must be true or false");
    add = a->get_bool();
  }
  const auto ids = t.encode(text->get_string(), {.add_special = add, .parse_special = true});
  json::object out;
  out["ids"] = json::value_from(ids);
  out["text"] = decoded(t, ids);
  return out;
}

int run_batch(const tokenizer& t, const std::string& file) {
  std::ifstream in(file);
  if (!in) return fail("--batch " + file + ": cannot be read");
  std::size_t number = 0;
  int exit = exit_code::done;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty()) continue;
    const auto out = answer(t, line);
    // One line of output for each line of input, errors too, so that the lines correspond.
    std::cout << json::serialize(out ? *out : json::object{{"error", out.error().message}}) << '\n';
    if (!out) exit = fail(file + ", line " + std::to_string(number) + ": " + out.error().message);
  }
  return exit;
}

int run(const tokenize_options& o) {
  const auto t = core::load_tokenizer(o.model.empty() ? bundled_model() : o.model);
  if (!t) return fail(t.error().message);
  if (!o.batch.empty()) return run_batch(**t, o.batch);
  if (o.given_ids) {
    for (auto id : o.ids)
      if (id < 0 || static_cast<std::uint32_t>(id) >= (*t)->vocab_size())
        return fail("--ids: " + std::to_string(id) + " is outside the vocabulary");
    std::cout << printable(decoded(**t, o.ids)) << '\n';
    return exit_code::done;
  }
  std::string text = o.text;
  if (!o.given_text) text.assign(std::istreambuf_iterator<char>(std::cin), {});
  for (auto id : (*t)->encode(text, {.add_special = !o.no_special, .parse_special = true}))
    std::cout << id << '\t' << printable((*t)->piece(id)) << '\n';
  return exit_code::done;
}

}  // namespace

command add_tokenize(CLI::App& app) {
  auto o = std::make_shared<tokenize_options>();
  app.add_option("--model", o->model,
                 "a directory with tokenizer.json, or a GGUF file; none: the bundled rill")
      ->type_name("PATH");
  auto* text = app.add_option("text", o->text, "what to tokenize; standard input where it is missing");
  auto* ids = app.add_option("--ids", o->ids, "decode these ids instead")->delimiter(',')->type_name("1,2,3");
  app.add_option("--batch", o->batch,
                 "lines {\"text\":…,\"add_special\":bool} in, {\"ids\":[…],\"text\":…} out")
      ->type_name("F.jsonl");
  app.add_flag("--no-special", o->no_special, "without BOS and the like");
  return [o, text, ids] {
    o->given_text = text->count() > 0;
    o->given_ids = ids->count() > 0;
    return run(*o);
  };
}

}  // namespace weir::apps
