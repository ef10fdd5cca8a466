#include "core/text/read_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace weir::core {

result<std::optional<std::string>> read_file(const std::string& path) {
  std::error_code failed;
  const auto kind = std::filesystem::status(path, failed).type();
  if (kind == std::filesystem::file_type::not_found) return std::optional<std::string>();
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (kind != std::filesystem::file_type::regular || !in || !(text << in.rdbuf() || in.peek() == EOF)) {
    return make_error(errc::bad_file, "{}: cannot be read: {}", path,
                      kind == std::filesystem::file_type::directory ? "a directory" : std::strerror(errno));
  }
  return std::optional(std::move(text).str());
}

}  // namespace weir::core
