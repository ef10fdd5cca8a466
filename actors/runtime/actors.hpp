// actors.hpp — #include <weir/actors.hpp>: the whole actor runtime, for programs outside this repository.
//
// Installed, and where this folder is copied as `weir`, that name is this file itself.
#pragma once

#include <variant>  // what protocols are made of

#include "actor.h"
#include "with_timeout.h"
