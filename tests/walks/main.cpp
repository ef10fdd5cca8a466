// Walks the schemas of files at random and prints each text as a line of JSON, for other judges.
//
//   walks TOKENIZER-DIR SEED SHARE FILE.jsonl...
//
// A line of a file is an object with a `schema`. SHARE of 1,000 schemas are drawn. A schema is compiled
// strictly, or relaxed if it is refused strictly. If it is refused both ways, its line says why. The draws of
// a schema depend only on the seed and on the places of its file and line. Lines printed:
//
//   {"name","schema","relaxed","space","steps","text","fault"}    {"name","schema","refused"}
#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "core/grammar/compile.h"
#include "core/text/tokenizer/tokenizer.h"
#include "core/text/tokenizer/unicode.h"
#include "tests/support/compact_json.h"
#include "tests/support/seed.h"
#include "tests/walks/walk.h"

namespace weir::walks {
namespace {

using namespace core::grammar;
namespace json = boost::json;

struct bound_schema {
  std::shared_ptr<constraint> over;
  bool relaxed = false;
};

core::result<std::shared_ptr<constraint>> bound(const constraint_text& text,
                                                const std::shared_ptr<terminal_views>& views) {
  fuel budget({});
  auto rules = compile(text, budget);
  if (!rules) return rules.error();
  return constraint::make(std::move(*rules), views, {}, &budget);
}

core::result<bound_schema> bind_schema(constraint_text text, const std::shared_ptr<terminal_views>& views) {
  text.strict = true;
  auto strict = bound(text, views);
  if (strict) return bound_schema{std::move(*strict), false};
  text.strict = false;
  auto relaxed = bound(text, views);
  if (!relaxed) return relaxed.error();
  return bound_schema{std::move(*relaxed), true};
}

struct space_choice {
  json_space space;
  const char* name;
};
constexpr space_choice spaces[] = {
    {json_space::compact, "compact"}, {json_space::bounded, "bounded"}, {json_space::any, "any"}};
constexpr unsigned hurries[] = {0, 3, 25, 80};

// 10 to 10,000, each magnitude as likely as any other.
std::size_t draw_steps(std::mt19937_64& random) {
  return static_cast<std::size_t>(std::pow(10.0, 1 + static_cast<double>(random() % 3001) / 1000));
}

// Prints `line` with the member `schema`, whose text is copied as it is.
void print(json::object line, const std::string& schema) {
  auto text = json::serialize(line);
  text.pop_back();
  std::cout << text << ",\"schema\":" << schema << "}\n";
}

void walk_schema(const std::string& name, const std::string& schema,
                 const std::shared_ptr<terminal_views>& views, std::mt19937_64& random) {
  const auto& space = spaces[random() % std::size(spaces)];
  constraint_text text{.what = constraint_text::kind::json_schema, .text = schema, .space = space.space};
  auto made = bind_schema(std::move(text), views);
  json::object line{{"name", name}};
  if (!made) {
    line["refused"] = made.error().param + ": " + made.error().message;
    return print(std::move(line), schema);
  }
  walk_options how;
  how.most_steps = draw_steps(random);
  how.hurry = hurries[random() % std::size(hurries)];
  auto walked = walk(made->over, how, random);
  if (walked.fault.empty() && !core::is_valid_utf8(walked.text)) walked.fault = "the text is not UTF-8";
  line["relaxed"] = made->relaxed;
  line["space"] = space.name;
  line["steps"] = walked.steps;
  if (core::is_valid_utf8(walked.text)) line["text"] = walked.text;
  line["fault"] = walked.fault;
  print(std::move(line), schema);
}

std::string name_of(const json_tree& t, const std::string& file, std::size_t number) {
  const auto own = t.member(json_tree::root, "name");
  if (own && t[*own].kind == json_kind::string) return t[*own].text;
  return file + ":" + std::to_string(number);
}

// Walks the schemas of a file; false: it cannot be read. `seed`: the file's own.
bool walk_file(const std::filesystem::path& file, const std::shared_ptr<terminal_views>& views,
               std::uint64_t seed, std::uint64_t share) {
  std::ifstream in(file);
  if (!in) return false;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::seed_seq from{seed, std::uint64_t{number}};
    std::mt19937_64 random(from);
    if (random() % 1000 >= share) continue;
    const auto tree = read_json_tree(line, {.bytes = std::size_t{1} << 22, .depth = 200});
    const auto schema = tree ? tree->member(json_tree::root, "schema") : std::nullopt;
    if (!schema) return false;
    walk_schema(name_of(*tree, file.filename().string(), number), tests::compact(*tree, *schema), views,
                random);
  }
  return true;
}

int run(int argc, char** argv) {
  if (argc < 5) return std::fprintf(stderr, "walks TOKENIZER-DIR SEED SHARE FILE.jsonl...\n"), 2;
  const auto words = core::load_tokenizer(argv[1]);
  if (!words) return std::fprintf(stderr, "%s\n", words.error().message.c_str()), 2;
  const auto views = std::make_shared<terminal_views>(std::make_shared<const token_trie>(*words));
  const auto seed = tests::drawn_seed(std::strtoull(argv[2], nullptr, 10));
  const auto share = std::strtoull(argv[3], nullptr, 10);
  for (int i = 4; i < argc; ++i)
    if (!walk_file(argv[i], views, 1000 * seed + static_cast<std::uint64_t>(i), share))
      return std::fprintf(stderr, "%s: cannot be read\n", argv[i]), 2;
  return 0;
}

}  // namespace
}  // namespace weir::walks

int main(int argc, char** argv) { return weir::walks::run(argc, argv); }
