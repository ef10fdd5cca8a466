// sim_script.h — what a scripted sim answers: a text for each prompt in which another text stands.
//
// File: a JSON object a line, {"when":TEXT,"say":TEXT}; empty lines say nothing. The first line counts whose
// `when` stands in the last sim_script_window bytes of a prompt; a line without `when` counts for every
// prompt. Where no line counts, the answer is empty.
//
// Thread safety: immutable once read; any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/token.h"

namespace weir::core {

inline constexpr std::size_t sim_script_window = 4096;     // bytes of a prompt that are searched
inline constexpr std::size_t sim_script_bytes = 4u << 20;  // most of a file
inline constexpr std::size_t sim_script_lines = 10'000;    // most of a file, empty ones included
inline constexpr std::uint32_t sim_script_vocab = 257;     // ids 0 to 255 are bytes
inline constexpr token_id sim_script_end = 256;            // ends an answer

class sim_script {
 public:
  // Errors: invalid_param, param `device`, naming the file and, where there is one, the line.
  static result<std::shared_ptr<const sim_script>> read(const std::string& path);
  // `name`: of the file, for errors.
  static result<std::shared_ptr<const sim_script>> parse(std::string_view text, std::string_view name);

  // The answer to a prompt of bytes, of which the end is enough. Takes time for each line: the search of its
  // `when` in the window. Valid as long as the script.
  std::string_view answer(std::span<const token_id> prompt) const;

 private:
  struct line {
    std::string when, say;
  };
  std::vector<line> lines_;
};

}  // namespace weir::core
