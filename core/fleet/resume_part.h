// resume_part.h — what a job's frame has for another gateway than the one that sent it: whose the job is, and
// how text is made of its tokens, so that a client whose gateway is gone goes on elsewhere.
//
// Workers keep these bytes and do not read them.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/grammar/rules.h"
#include "core/job.h"
#include "core/text/answer/tools.h"

namespace weir::core::fleet {

struct resume_part {
  std::uint64_t user = 0;     // of the key, whose the job is (actors::principal)
  bool skip_special = true;   // special tokens add no text
  bool shows_prompt = false;  // the answer's text begins with the prompt's
  // How the answer is taken apart (core/text/answer/plan.h); not `parted`: it is one text.
  bool parted = false;
  bool separate_reasoning = false, begins_in_reasoning = false, calls_only = false;
  std::vector<tool_definition> tools;
  std::vector<grammar::warning> warnings;  // as job_stream::warnings()
  // The first choice has the ids of all jobs of its answer, in order, and the others that of the first.
  std::vector<job_id> choices;
  std::string client;  // of the gateway's protocols alone
};

std::string bytes_of(const resume_part& p);
// nullopt: the bytes are cut, or have a value that they may not have.
std::optional<resume_part> read_resume(std::string_view bytes);

}  // namespace weir::core::fleet
