#include "core/fleet/file_list.h"

#include <algorithm>

#include "core/fleet/bytes.h"

namespace weir::core::fleet {
namespace {

constexpr std::string_view of_directory[] = {"config.json",
                                             "generation_config.json",
                                             "tokenizer.json",
                                             "tokenizer_config.json",
                                             "special_tokens_map.json",
                                             "added_tokens.json",
                                             "tokenizer.model",
                                             "tekken.json",
                                             "tiktoken.model",
                                             "qwen.tiktoken",
                                             "chat_template.jinja",
                                             "chat_template.json",
                                             "additional_chat_templates/rag.jinja",
                                             "additional_chat_templates/tool_use.jinja"};
constexpr std::string_view of_gguf[] = {"model.gguf", "rope_freqs.weight", "rope_factors_long.weight",
                                        "rope_factors_short.weight"};
constexpr std::uint64_t largest_gguf = std::uint64_t{1} << 44;
constexpr std::size_t most_files = 16, longest_made = 64;
constexpr std::string_view random_model = "random:";

error no_list(const char* why) { return bad_param("files", "this is no list of a model's files: {}", why); }

template <class IO, class File>
void file_fields(IO& io, File& f) {
  io(f.name);
  io(f.size);
  io(f.at);
  for (auto& b : f.sum) io(b);
}

// Each name is in `known`, behind the one before it.
bool in_order(const std::vector<listed_file>& files, std::span<const std::string_view> known) {
  auto from = known.begin();
  for (const auto& f : files) {
    from = std::find(from, known.end(), f.name);
    if (from == known.end()) return false;
    ++from;
  }
  return true;
}

result<void> check_files(const file_list& l) {
  const bool gguf = l.gguf_size != 0;
  if (l.gguf_size > largest_gguf) return no_list("the GGUF file is too large");
  if (l.files.empty()) return no_list("it has no file");
  if (!in_order(l.files, gguf ? gguf_pieces() : directory_files())) return no_list("it has other names");
  const auto needed = gguf ? of_gguf[0] : of_directory[0];
  if (l.files.front().name != needed || l.files.front().at != 0)
    return no_list("its first file is another one");
  std::uint64_t all = 0;
  for (const auto& f : l.files) {
    if (f.size > most_file_bytes || (all += f.size) > most_file_bytes)
      return make_error(errc::does_not_fit, "the files of the model beside its weights have more than {} MiB",
                        most_file_bytes >> 20);
    if (gguf ? f.at > l.gguf_size || f.size > l.gguf_size - f.at : f.at != 0)
      return no_list("a file is no piece of the whole");
  }
  return {};
}

}  // namespace

std::span<const std::string_view> directory_files() { return of_directory; }
std::span<const std::string_view> gguf_pieces() { return of_gguf; }

bool is_made(std::string_view source) {
  if (source == "sim") return true;
  if (source.size() > longest_made || !source.starts_with(random_model)) return false;
  return std::ranges::all_of(source.substr(random_model.size()), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == ':';
  });
}

std::string bytes_of(const file_list& l) {
  std::string out;
  byte_writer to(out);
  to(l.made_of);
  to(l.gguf_size);
  to.list(l.files, most_files, [&](const listed_file& f) { file_fields(to, f); });
  return out;
}

result<void> check_file_list(const file_list& l) {
  if (l.made_of.empty()) return check_files(l);
  if (!is_made(l.made_of) || l.gguf_size != 0 || !l.files.empty()) return no_list("nothing is made of it");
  return {};
}

result<file_list> read_file_list(std::string_view bytes) {
  if (bytes.size() > longest_file_list) return no_list("it is too long");
  byte_reader from(bytes);
  file_list l;
  from(l.made_of);
  from(l.gguf_size);
  from.list(l.files, most_files, [&](listed_file& f) { file_fields(from, f); });
  if (from.failed() || !from.at_end()) return no_list("it is cut, or too long");
  if (auto ok = check_file_list(l); !ok) return ok.error();
  return l;
}

std::string digest_text(const sha256_bytes& d) {
  std::string out;
  for (const auto b : d) out += fmt::format("{:02x}", b);
  return out;
}

std::optional<sha256_bytes> parse_digest(std::string_view text) {
  sha256_bytes out{};
  if (text.size() != 2 * out.size()) return std::nullopt;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out[i] = static_cast<std::uint8_t>(16 * high + low);
  }
  return out;
}

}  // namespace weir::core::fleet
