// source_dir.h — where the sources are. A function of one file, not a macro of all: the tests of two clones
// are then the same to a compiler's cache.
#pragma once

#include <filesystem>

namespace weir::tests {

std::filesystem::path source_dir();

}  // namespace weir::tests
