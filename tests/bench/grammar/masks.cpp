// masks.cpp — compiles every schema of a corpus and walks its valid instances token by token, a mask before
// each: MaskBench's protocol (github.com/guidance-ai/jsonschemabench, maskbench), on one thread.
//
//   bench_masks [TOKENIZER-DIR [FOLDER-OF-JSONL [EVERY [WALKS.jsonl]]]]
//
// Without arguments: llama3's tokenizer and schemas/maskbench of the test data. Each schema is compiled anew;
// what a tokenizer remembers of terminals is shared by all schemas, as it is in a server. The second pass
// walks the same instances again with the same compiled constraint. EVERY: one in EVERY schemas is taken.
// WALKS: gets the schemas and tokens that were walked, for another engine's bench (xgrammar.js).
#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>

#include "core/grammar/accept.h"
#include "tests/support/compact_json.h"
#include "tests/support/data.h"

using namespace weir;
using namespace weir::core::grammar;
namespace json = boost::json;

namespace {

using clock_type = std::chrono::steady_clock;

double microseconds(clock_type::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

void print(const char* name, std::vector<double>& us, const char* unit = "us") {
  if (us.empty()) return;
  std::sort(us.begin(), us.end());
  double sum = 0;
  for (const auto x : us) sum += x;
  const auto at = [&](double q) {
    return us[static_cast<std::size_t>(q * static_cast<double>(us.size() - 1))];
  };
  std::printf("%-28s n %8zu  avg %9.2f  p50 %9.2f  p95 %9.2f  p99 %9.2f  p99.9 %9.2f  max %9.1f %s\n", name,
              us.size(), sum / static_cast<double>(us.size()), at(0.5), at(0.95), at(0.99), at(0.999),
              us.back(), unit);
}

struct totals {
  std::FILE* walks = nullptr;
  std::vector<double> compile, mask, warm_mask, accept, fuel, bytes;
  std::size_t schemas = 0, refused = 0, instances = 0, rejected = 0, failed = 0;
};

// False: the instance is not accepted.
bool walk(constraint& over, const std::vector<core::token_id>& ids, std::vector<double>& mask_us,
          std::vector<double>& accept_us) {
  auto at = over.start();
  for (const auto id : ids) {
    const auto begin = clock_type::now();
    const auto* mask = over.mask(at);
    const auto made = clock_type::now();
    if (!mask || !mask->has(id)) return false;
    mask_us.push_back(microseconds(made - begin));
    const auto before = clock_type::now();
    at = over.accept(at, id);
    accept_us.push_back(microseconds(clock_type::now() - before));
  }
  return over.may_end(at);
}

// `line`: {"name", "schema", "tests": [{"valid", "data", …}]}
void schema_of(const json_tree& line, const core::tokenizer& words, std::shared_ptr<terminal_views> views,
               totals& t) {
  const auto root = json_tree::root;
  const auto schema = tests::compact(line, line.member(root, "schema").value());
  const auto name = line[line.member(root, "name").value()].text;
  ++t.schemas;
  const auto begin = clock_type::now();
  constraint_text text;
  text.what = constraint_text::kind::json_schema;
  text.text = schema;
  fuel budget({});
  auto c = compile(text, budget);
  if (!c) return void(++t.refused);
  auto over = constraint::make(std::move(*c), std::move(views), {}, &budget);
  if (!over) return void(++t.refused);
  if (!(*over)->mask((*over)->start())) return void(++t.failed);
  t.compile.push_back(microseconds(clock_type::now() - begin));
  if (t.compile.back() > 50'000) std::fprintf(stderr, "%.0f us: %s\n", t.compile.back(), name.c_str());
  t.fuel.push_back(static_cast<double>(budget.burnt()));
  t.bytes.push_back(static_cast<double>((*over)->bytes()));
  json::array walked;
  for (const auto instance : line[line.member(root, "tests").value()].items) {
    if (!line[line.member(instance, "valid").value()].truth || line.member(instance, "py") ||
        line.member(instance, "order"))
      continue;
    const auto data = tests::compact(line, line.member(instance, "data").value());
    const auto ids = words.encode(data, {.add_special = false, .parse_special = false});
    ++t.instances;
    if (!walk(**over, ids, t.mask, t.accept)) {
      ++t.rejected;
      std::fprintf(stderr, "rejected: %s %s\n", name.c_str(), data.substr(0, 300).c_str());
      continue;
    }
    std::vector<double> unused;
    walk(**over, ids, t.warm_mask, unused);
    walked.push_back(json::value_from(ids));
  }
  if (t.walks)
    fmt::print(t.walks, "{}\n",
               json::serialize(json::object{{"name", name}, {"schema", schema}, {"walks", walked}}));
}

}  // namespace

int main(int argc, char** argv) {
  const auto dir = argc > 1 ? std::filesystem::path(argv[1]) : tests::data_dir() / "tokenizers/llama3";
  const auto folder = argc > 2 ? std::filesystem::path(argv[2]) : tests::data_dir() / "schemas/maskbench";
  const std::size_t every = argc > 3 ? std::max(1, std::atoi(argv[3])) : 1;
  const auto words = core::load_tokenizer(dir.string());
  if (!words) return std::fprintf(stderr, "%s\n", words.error().message.c_str()), 2;
  const auto begin = clock_type::now();
  const auto views = std::make_shared<terminal_views>(std::make_shared<const token_trie>(*words));
  std::printf("tree of tokens: %.1f ms, %u nodes\n", microseconds(clock_type::now() - begin) / 1000,
              views->trie().tree().size());
  totals t;
  if (argc > 4) t.walks = std::fopen(argv[4], "w");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::size_t seen = 0;
  for (const auto& file : files) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line); ++seen)
      if (seen % every == 0)
        schema_of(read_json_tree(line, {.bytes = 1 << 22, .depth = 200}).value(), **words, views, t);
  }
  if (t.walks) std::fclose(t.walks);
  std::printf("schemas %zu, refused %zu, failed %zu; valid instances %zu, rejected %zu\n", t.schemas,
              t.refused, t.failed, t.instances, t.rejected);
  print("compile and first mask", t.compile);
  print("fuel", t.fuel, "units");
  print("memory behind the first mask", t.bytes, "B");
  print("mask", t.mask);
  print("mask, second pass", t.warm_mask);
  print("accept", t.accept);
}
