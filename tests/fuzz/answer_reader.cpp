// Any text as the answer of a model of each format: parts, never a crash, and the same parts however the text
// is cut into tokens.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/text/answer/reader.h"

namespace {

using namespace weir::core;

std::shared_ptr<const answer_plan> plan_of(const call_format& calls, bool begins_in_reasoning) {
  answer_format f;
  f.calls = calls;
  f.reasoning = {"<think>\n", "\n</think>\n\n"};
  if (calls.how == call_format::kind::harmony) f.messages = envelope::harmony;
  auto plan = std::make_shared<answer_plan>();
  plan->format = std::make_shared<const known_format>(f, *make_sim_tokenizer());
  tool_definition tool;
  tool.name = "f";
  tool.parameters = R"({"properties":{"a":{"type":"string"},"b":{"type":"integer"}}})";
  plan->tools = {tool};
  plan->separate_reasoning = true;
  plan->begins_in_reasoning = begins_in_reasoning;
  return plan;
}

struct reading {
  std::string text;
  answer_marks marks;
};

// `each`: bytes of a token, at most up to the end of its last character.
reading read(std::shared_ptr<const answer_plan> plan, std::string_view answer, std::size_t each) {
  reading out;
  answer_reader reader(std::move(plan));
  std::uint32_t n = 0;
  while (!answer.empty()) {
    std::size_t end = std::min(each, answer.size());
    while (end < answer.size() && (static_cast<unsigned char>(answer[end]) & 0xC0) == 0x80) ++end;
    reader.take(n++, 0, answer.substr(0, end), out.text, out.marks);
    answer.remove_prefix(end);
  }
  reader.end(n == 0 ? 0 : n - 1, {}, out.text, out.marks);
  return out;
}

bool same(const reading& a, const reading& b) {
  if (a.text != b.text || a.marks.list.size() != b.marks.list.size()) return false;
  for (std::size_t i = 0; i < a.marks.list.size(); ++i) {
    const auto &x = a.marks.list[i], &y = b.marks.list[i];
    if (x.offset != y.offset || x.what != y.what || x.call != y.call || x.part != y.part) return false;
    if (x.offset > a.text.size() || (i > 0 && x.offset < a.marks.list[i - 1].offset)) return false;
  }
  return a.marks.calls.size() == b.marks.calls.size();
}

// The reader gets text in whole characters: other bytes are left out, as a detokenizer would replace them.
std::string text_of(const std::uint8_t* data, std::size_t size) {
  std::string out;
  for (std::size_t i = 0; i < size; ++i)
    if (data[i] < 0x80) out += static_cast<char>(data[i]);
  return out;
}

}  // namespace

// The first byte chooses the format and the size of tokens.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto formats = call_formats();
  const auto plan = plan_of(formats[data[0] % formats.size()], data[1] & 1);
  const std::string answer = text_of(data + 2, size - 2);
  const reading whole = read(plan, answer, answer.size());
  if (!same(whole, read(plan, answer, 1 + (data[1] >> 1) % 16))) std::abort();
  return 0;
}
