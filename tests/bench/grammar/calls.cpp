// calls.cpp — compiles answers with many tools: 128 tools of 8 parameters, 400 functions, 2,000 functions.
//
//   bench_calls [TOKENIZER-DIR]
//
// Without an argument: qwen2.5's tokenizer of the test data. Times are of one thread: rules and symbols, then
// the mask before the name of the tool. What a tokenizer remembers of terminals is made by a first round.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "core/grammar/calls.h"
#include "core/grammar/constraint.h"
#include "tests/support/data.h"

using namespace weir;
using namespace weir::core::grammar;

namespace {

using clock_type = std::chrono::steady_clock;

double milliseconds(clock_type::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

call_rules tools_of(const char* format, int tools, int parameters) {
  static const char* const types[] = {R"({"type":"string"})", R"({"type":"integer","minimum":0})",
                                      R"({"enum":["red","green","blue"]})",
                                      R"({"type":"array","items":{"type":"string"},"maxItems":10})"};
  call_rules r;
  r.format = format;
  r.tools.how = core::tool_wishes::choice::required;
  for (int i = 0; i < tools; ++i) {
    auto& t = r.tools.tools.emplace_back();
    t.name = fmt::format("tool_{}", i);
    t.strict = true;
    std::string members, names;
    for (int p = 0; p < parameters; ++p) {
      const char* const comma = p == 0 ? "" : ",";
      members += fmt::format(R"({}"of_{}_{}":{})", comma, i, p, types[p % 4]);
      names += fmt::format(R"({}"of_{}_{}")", comma, i, p);
    }
    t.parameters =
        fmt::format(R"({{"type":"object","properties":{{{}}},"required":[{}],"additionalProperties":false}})",
                    members, names);
  }
  return r;
}

void measure(const char* format, int tools, int parameters, std::shared_ptr<terminal_views> views) {
  const auto asked = tools_of(format, tools, parameters);
  std::vector<double> rules, whole, mask;
  std::uint64_t burnt = 0;
  for (int round = 0; round < 6; ++round) {
    fuel budget({});
    const auto begin = clock_type::now();
    auto made = compile_answer(asked, &views->trie().words(), &budget);
    const auto written = clock_type::now();
    auto over = made ? constraint::make(std::move(*made), views, {}, &budget) : made.error();
    const auto bound = clock_type::now();
    if (!over) {
      std::printf("%s: %s\n", format, over.error().message.c_str());
      return;
    }
    auto at = (*over)->start();
    for (const auto id : views->trie().words().encode("<tool_call>", {})) at = (*over)->accept(at, id);
    at = (*over)->step(at, "\n{\"name\": \"tool_");
    const auto before = clock_type::now();
    (*over)->mask(at);
    const auto after = clock_type::now();
    burnt = budget.burnt();
    if (round == 0) continue;
    rules.push_back(milliseconds(written - begin));
    whole.push_back(milliseconds(bound - begin));
    mask.push_back(milliseconds(after - before));
  }
  const auto middle = [](std::vector<double>& v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
  };
  std::printf("%-14s %5d tools x %2d  rules %8.2f ms  compiled %8.2f ms  mask %8.2f ms  fuel %llu\n", format,
              tools, parameters, middle(rules), middle(whole), middle(mask),
              static_cast<unsigned long long>(burnt));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string dir = argc > 1 ? argv[1] : (weir::tests::data_dir() / "tokenizers" / "qwen2.5").string();
  const auto words = core::load_tokenizer(dir);
  if (!words) {
    std::fprintf(stderr, "%s\n", words.error().message.c_str());
    return 1;
  }
  const auto views = std::make_shared<terminal_views>(std::make_shared<const token_trie>(*words));
  for (const auto* format : {"hermes", "qwen-coder", "gemma", "lfm2", "kimi"})
    for (const auto& [tools, parameters] : {std::pair{128, 8}, {400, 4}, {2'000, 4}})
      measure(format, tools, parameters, views);
  return 0;
}
