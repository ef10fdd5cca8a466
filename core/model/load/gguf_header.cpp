#include "core/model/load/gguf_header.h"

#include <filesystem>

namespace weir::core {

bool is_gguf_path(const std::string& path) noexcept {
  std::error_code ec;
  return path.ends_with(".gguf") ? !std::filesystem::is_directory(path, ec)
                                 : std::filesystem::is_regular_file(path, ec);
}

result<gguf_header> open_gguf_header(const std::string& path) {
  auto file = opened_file::open(path);
  if (!file) return file.error();
  auto content = parse_gguf(file->bytes(), path, fetching(*file));
  if (!content) return content.error();
  return gguf_header{std::move(*file), std::move(*content)};
}

}  // namespace weir::core
