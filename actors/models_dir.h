// models_dir.h — the models of a directory of models, which can be loaded by name while a service runs.
//
// A model is a GGUF file, by its name without .gguf, or a directory with a config.json. A directory without
// one is looked into, one level deep: its GGUF files and its sub-directories with a config.json or
// safetensors are models called DIRECTORY/NAME. A directory in which there is none is listed as a model
// itself, and its load fails with the reason. Hidden entries, and links that lead out of the directory, are
// no models.
//
// Thread safety: any thread; reads the file system.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actors/host.h"
#include "core/error.h"

namespace weir::actors {

inline constexpr std::size_t most_models_in_dir = 1000;

// All of them, by name. Errors: bad_file for a directory that cannot be read or has too many entries;
// the message names it.
core::result<std::vector<model_spec>> models_in(const std::string& dir);

// Whether `name` can be the name of a model of a directory: one or two parts of a path, none of which is
// hidden, and no absolute path.
bool is_name_in_dir(std::string_view name);

// The path of one of them, which may have come after the others were listed. Error: bad_file, where there is
// none of that name.
core::result<std::string> model_in_dir(const std::string& dir, const std::string& name);

}  // namespace weir::actors
