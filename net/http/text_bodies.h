// text_bodies.h — the bodies of /v1/tokenize and /v1/detokenize. Each holds what it is made of.
//
// Pure functions: any thread.
#pragma once

#include <memory>

#include "actors/service.h"
#include "net/protocol/body_parts.h"

namespace weir::net {

// {"ids":[…],"pieces":[…]}
std::shared_ptr<body_parts> tokenized_body(actors::tokenized t);
// {"text":…}
std::shared_ptr<body_parts> detokenized_body(actors::detokenized t);

}  // namespace weir::net
