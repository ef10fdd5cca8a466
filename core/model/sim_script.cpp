#include "core/model/sim_script.h"

#include <sys/stat.h>
#include <array>
#include <fstream>

#include "core/read_json.h"
#include "core/shortened.h"

namespace weir::core {
namespace {

namespace json = boost::json;

constexpr std::string_view script_spaces = " \t\r";

result<std::string> text_member(const json::value& v, std::string_view key) {
  if (!v.is_string()) return bad_param("device", "{} has to be a string", key);
  return std::string(v.get_string());
}

}  // namespace

result<std::shared_ptr<const sim_script>> sim_script::parse(std::string_view text, std::string_view name) {
  if (text.size() > sim_script_bytes)
    return bad_param("device", "sim: script={} has more than {} bytes", name, sim_script_bytes);
  auto made = std::make_shared<sim_script>();
  for (std::size_t number = 1; !text.empty(); ++number) {
    if (number > sim_script_lines)
      return bad_param("device", "sim: script={} has more than {} lines", name, sim_script_lines);
    const auto end = text.find('\n');
    const std::string_view written = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (written.find_first_not_of(script_spaces) == written.npos) continue;
    const auto wrong = [&](std::string_view why) {
      return bad_param("device", "sim: script={}, line {}: {}", name, number, why);
    };
    const auto read = read_json(written, {});
    if (!read) return wrong(read.error().message);
    if (!read->is_object()) return wrong("an object is wanted, with `say` and perhaps `when`");
    line l;
    bool says = false;
    for (const auto& [key, value] : read->get_object()) {
      if (key != "when" && key != "say")
        return wrong(fmt::format("there is no key «{}», only `when` and `say`", shortened(key)));
      auto got = text_member(value, std::string_view(key));
      if (!got) return wrong(got.error().message);
      says |= key == "say";
      (key == "say" ? l.say : l.when) = std::move(*got);
    }
    if (!says) return wrong("say is missing");
    made->lines_.push_back(std::move(l));
  }
  return std::shared_ptr<const sim_script>(std::move(made));
}

result<std::shared_ptr<const sim_script>> sim_script::read(const std::string& path) {
  struct stat is {};
  if (::stat(path.c_str(), &is) != 0 || !S_ISREG(is.st_mode))
    return bad_param("device", "sim: script={} is no file that can be read", path);
  std::ifstream file(path, std::ios::binary);
  std::string text(sim_script_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad())
    return bad_param("device", "sim: script={} is no file that can be read", path);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return parse(text, path);
}

std::string_view sim_script::answer(std::span<const token_id> prompt) const {
  std::array<char, sim_script_window> bytes;
  const auto last = prompt.last(std::min(prompt.size(), bytes.size()));
  for (std::size_t i = 0; i < last.size(); ++i) bytes[i] = static_cast<char>(last[i]);
  const std::string_view window(bytes.data(), last.size());
  for (const line& l : lines_)
    if (window.find(l.when) != window.npos) return l.say;
  return {};
}

}  // namespace weir::core
