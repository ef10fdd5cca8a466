// turned_matrix.h — a matrix that files have with its inputs first, [inputs, outputs], as [outputs, inputs].
//
// Thread safety: immutable; any thread. Errors: bad_file for a file that cannot be read.
#pragma once

#include <memory>
#include <string_view>

#include "core/model/load/checkpoint.h"

namespace weir::core {

// Whether files name a plain type so.
bool is_plain_type(std::string_view stored);

// `from`: of a plain type. `paired`: the outputs of its first and of its second half alternate in the file.
// REQUIRES: `from` has two dimensions; the number of outputs is even where `paired`
std::shared_ptr<const converted_tensor> make_turned(stored_tensor from, bool paired);

}  // namespace weir::core
