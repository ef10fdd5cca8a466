// actors.hpp — what <weir/actors.hpp> means in a source tree (add_subdirectory, FetchContent).
#pragma once

#include "actors/runtime/actors.hpp"
