// masks.cpp — compiles every schema of a corpus and walks its valid instances token by token, a mask before
// each: MaskBench's protocol (github.com/guidance-ai/jsonschemabench, maskbench), on one thread.
//
//   bench_masks [TOKENIZER-DIR] [FOLDER-OF-JSONL]
//
// Without arguments: llama3's tokenizer and schemas/maskbench of the test data. Each schema is compiled anew;
// what a tokenizer remembers of terminals is shared by all schemas, as it is in a server. The second pass
// walks the same instances again with the same compiled constraint.
#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>

#include "core/grammar/accept.h"
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

// As json::serialize(), but numbers as people write them: 0.5, not 5E-1.
std::string written(const json::value& v) {
  if (v.is_double()) return fmt::format("{}", v.get_double());
  if (const auto* a = v.if_array()) {
    std::string out = "[";
    for (const auto& x : *a) out += (out.size() > 1 ? "," : "") + written(x);
    return out + "]";
  }
  if (const auto* o = v.if_object()) {
    std::string out = "{";
    for (const auto& m : *o)
      out += (out.size() > 1 ? "," : "") + json::serialize(json::string(m.key())) + ":" + written(m.value());
    return out + "}";
  }
  return json::serialize(v);
}

struct totals {
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

void schema_of(const json::object& o, const core::tokenizer& words, std::shared_ptr<terminal_views> views,
               totals& t) {
  const auto schema = written(o.at("schema"));
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
  if (t.compile.back() > 50'000)
    std::fprintf(stderr, "%.0f us: %s\n", t.compile.back(), o.at("name").as_string().c_str());
  t.fuel.push_back(static_cast<double>(budget.burnt()));
  t.bytes.push_back(static_cast<double>((*over)->bytes()));
  for (const auto& test : o.at("tests").as_array()) {
    const auto& instance = test.as_object();
    if (!instance.at("valid").as_bool() || instance.contains("py") || instance.contains("order")) continue;
    const auto ids =
        words.encode(written(instance.at("data")), {.add_special = false, .parse_special = false});
    ++t.instances;
    if (!walk(**over, ids, t.mask, t.accept)) {
      ++t.rejected;
      std::fprintf(stderr, "rejected: %s %s\n", o.at("name").as_string().c_str(),
                   written(instance.at("data")).substr(0, 300).c_str());
      continue;
    }
    std::vector<double> unused;
    walk(**over, ids, t.warm_mask, unused);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto dir = argc > 1 ? std::filesystem::path(argv[1]) : test::data_dir() / "tokenizers/llama3";
  const auto folder = argc > 2 ? std::filesystem::path(argv[2]) : test::data_dir() / "schemas/maskbench";
  const auto words = core::load_tokenizer(dir.string());
  if (!words) return std::fprintf(stderr, "%s\n", words.error().message.c_str()), 2;
  const auto begin = clock_type::now();
  const auto views = std::make_shared<terminal_views>(std::make_shared<const token_trie>(*words));
  std::printf("tree of tokens: %.1f ms, %u nodes\n", microseconds(clock_type::now() - begin) / 1000,
              views->trie().tree().size());
  totals t;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    std::ifstream in(file);
    json::parse_options how;
    how.max_depth = 200;
    for (std::string line; std::getline(in, line);)
      schema_of(json::parse(line, {}, how).as_object(), **words, views, t);
  }
  std::printf("schemas %zu, refused %zu, failed %zu; valid instances %zu, rejected %zu\n", t.schemas,
              t.refused, t.failed, t.instances, t.rejected);
  print("compile and first mask", t.compile);
  print("fuel", t.fuel, "units");
  print("memory behind the first mask", t.bytes, "B");
  print("mask", t.mask);
  print("mask, second pass", t.warm_mask);
  print("accept", t.accept);
}
