// text_files.h — the files of a model beside its weights, at both ends of their way: open in a worker, which
// gives them to gateways, and written for a moment in a gateway, which opens the model.
//
// Thread safety: immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/fleet/far_model.h"
#include "core/error.h"
#include "core/fleet/file_list.h"
#include "core/model/load/opened_file.h"

namespace weir::actors::fleet {

class text_files {
 public:
  // Opens the files of a model and adds them up. `source`: a directory, a GGUF file, random:SHAPE or sim.
  // Takes some 0.1 s for 30 MB. Errors: not_supported, by name, for what gateways do not open from a list: a
  // GGUF model in several files, a sim with a script, files with other names that the model is read from;
  // does_not_fit where they are more than core::fleet::most_file_bytes; bad_file.
  static core::result<std::shared_ptr<const text_files>> open(const std::string& source);

  const core::fleet::sha256_bytes& digest() const noexcept { return digest_; }
  const core::fleet::file_list& list() const noexcept { return list_; }
  // At most `most` bytes from byte `at` on: of the list itself (0) or of its n-th file. nullopt: there are
  // none, or the file cannot be read any more.
  std::optional<std::string> read(std::uint32_t file, std::uint64_t at, std::size_t most) const;

 private:
  core::result<> open_directory(const std::string& dir);
  core::result<> open_gguf(const std::string& path);
  core::result<> add(const std::string& name, std::size_t in, std::uint64_t at, std::uint64_t size);

  core::fleet::file_list list_;
  std::string list_bytes_;
  core::fleet::sha256_bytes digest_{};
  std::vector<core::opened_file> opened_;
  std::vector<std::size_t> in_;  // of each listed file: the index of opened_ that has it
};

// Opens a model of such files. `contents`: of each file of the list. They are written below a directory that
// nobody else may read, which is gone when the call returns. `spec.source` has no effect. Errors: those of
// open_far_model(); internal, where there is no room for the files.
core::result<far_model> open_listed_model(const core::fleet::file_list& list,
                                          const std::vector<std::string>& contents, model_spec spec,
                                          const owner_options& o, std::shared_ptr<const core::clock> time,
                                          std::shared_ptr<core::grammar::constraint_cache> constraints);

}  // namespace weir::actors::fleet
