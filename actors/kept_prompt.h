// kept_prompt.h — which tokens of a prompt stay when older ones leave a full context (core::job::kept).
//
// Of a conversation these are the tokens of its leading messages of system or developer, with what the chat
// template writes before and around them. Of any other prompt, and of a conversation without such a message,
// it is a BOS token at the beginning.
//
// Thread safety: a pure function; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "actors/request.h"
#include "actors/served_model.h"
#include "core/text/template/template.h"
#include "core/token.h"
#include "core/turn.h"

namespace weir::actors {

// How many of the first tokens stay. `prompt`: all of them. `made`: the conversation as the chat template
// rendered it; null: the prompt is none. `now`: the time that the template was given.
std::uint32_t kept_tokens(const request& r, const core::jinja::rendering* made,
                          std::span<const core::token_id> prompt, const served_model& m,
                          const core::jinja::limits& most, std::chrono::local_seconds now);

}  // namespace weir::actors
