#include "tests/support/source_dir.h"

namespace weir::tests {

std::filesystem::path source_dir() { return WEIR_SOURCE_DIR; }

}  // namespace weir::tests
