// messages.h — what a client of weir says, right and wrong: bodies of requests and messages of weir.v1.
//
// Pure functions of the source of numbers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tests/stranger/random.h"
#include "tests/stranger/target.h"

namespace weir::stranger {

struct body {
  std::string path;  // of the route
  std::string json;
};

struct job_shape {
  std::size_t max_tokens = 8;
  bool stream = false;
  bool lasting = false;  // it goes on when its client is lost
};

// A job that runs on for as long as it may, unless somebody cancels it.
inline constexpr std::size_t endless_tokens = 120'000;

body completion(random_source& draw, job_shape shape);
body chat(random_source& draw, job_shape shape);
body message(random_source& draw, job_shape shape);
// Of OpenAI's Responses API; it may go on with an_answer (conversation.h).
body response(random_source& draw, job_shape shape);
body honest_body(random_source& draw);   // any of the seven routes
body hostile_body(random_source& draw);  // the same, spoiled

// A job with a constraint, mostly a hostile one.
body constrained_body(random_source& draw);
std::string constrained_message(random_source& draw, std::string_view lane);

// A job with a constraint that nobody has asked for before.
body freshly_constrained_body(random_source& draw, bool slow);

// A body of nearly the largest size that asks for the most choices.
body many_choices(random_source& draw);
// The same, of some prompts with a long list of equal stop ids and long stop strings.
body many_stops(random_source& draw);

std::string create_message(random_source& draw, std::string_view lane, job_shape shape);
std::string cancel_message(std::string_view lane);
std::string ack_message(std::string_view lane, std::size_t seq);
std::string ping_message(random_source& draw);
std::string auth_message(std::string_view key);
std::string hostile_message(random_source& draw, const target& t);
// Messages of the WebSocket mode of the Responses API.
std::string response_message(random_source& draw, job_shape shape);
std::string hostile_response_message(random_source& draw);

}  // namespace weir::stranger
