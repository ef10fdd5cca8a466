#include "tests/stranger/messages.h"

#include "tests/stranger/bytes.h"
#include "tests/stranger/constraints.h"
#include "tests/stranger/json_text.h"
#include "tests/stranger/tools.h"

namespace weir::stranger {
namespace {

std::string words(random_source& draw, std::size_t n) {
  static const std::string some[] = {
      "river ", "the ", "weir ", "evens ", "out ", "water\n", "\xC3\xA9t\xC3\xA9 ", "<|im_end|>"};
  std::string text;
  for (; n > 0; --n) text += draw.pick(some);
  return text;
}

std::string conversation_list(random_source& draw, bool with_calls = false) {
  static const std::string roles[] = {"system", "user", "assistant"};
  std::string out = "[";
  if (with_calls) out += called_turns(draw);
  for (std::size_t n = draw.between(1, 4); n > 0; --n) {
    if (out.back() == '}') out += ',';
    out += object({{"role", quoted(draw.pick(roles))}, {"content", quoted(words(draw, draw.between(0, 8)))}});
  }
  return out + ']';
}

// Some of the fields that every kind of job has, within their ranges.
void add_sampling(random_source& draw, std::vector<field>& fields) {
  const field all[] = {{"temperature", "0.7"},
                       {"top_k", "40"},
                       {"top_p", "0.9"},
                       {"min_p", "0.05"},
                       {"seed", "42"},
                       {"repetition_penalty", "1.1"},
                       {"frequency_penalty", "-1"},
                       {"presence_penalty", "1"},
                       {"stop", "[\"zzz\"]"},
                       {"logit_bias", "{\"5\":-1}"},
                       {"min_tokens", "1"},
                       {"max_repeats", "2"},
                       {"return_token_ids", "true"},
                       {"cache_salt", "\"s\""},
                       {"stop_token_ids", "[3]"}};
  for (std::size_t n = draw.below(4); n > 0; --n) fields.push_back(draw.pick(all));
}

void add(std::vector<field>& fields, std::vector<field> more) {
  for (auto& f : more) fields.push_back(std::move(f));
}

// An endless job gets neither a constraint nor sampling: either could end it.
std::vector<field> job_fields(random_source& draw, job_shape shape) {
  std::vector<field> fields = {{"max_tokens", std::to_string(shape.max_tokens)}, {"ignore_eos", "true"}};
  if (shape.max_tokens == endless_tokens) return fields;
  add_sampling(draw, fields);
  if (draw.chance(15)) add(fields, easy_constraint(draw, constraint_names::ours));
  return fields;
}

std::vector<field> http_fields(random_source& draw, job_shape shape, field input) {
  std::vector<field> fields = job_fields(draw, shape);
  fields.insert(fields.begin(), std::move(input));
  if (shape.stream) fields.push_back({"stream", "true"});
  if (shape.lasting) fields.push_back({"on_disconnect", "\"continue\""});
  return fields;
}

// A chat, now and then with tools.
std::vector<field> chat_fields(random_source& draw, job_shape shape) {
  const bool tools = shape.max_tokens != endless_tokens && draw.chance(25);
  auto fields = http_fields(draw, shape, {"messages", conversation_list(draw, tools && draw.chance(50))});
  if (tools) add(fields, tool_fields(draw, tool_names::chat));
  return fields;
}

// The fields of a job on Anthropic's route, which has other names for some of them.
std::vector<field> message_fields(random_source& draw, job_shape shape) {
  std::vector<field> fields = {{"messages", conversation_list(draw)},
                               {"max_tokens", std::to_string(shape.max_tokens)},
                               {"ignore_eos", "true"}};
  if (draw.chance(30)) fields.push_back({"system", quoted(words(draw, 4))});
  if (draw.chance(30)) fields.push_back({"stop_sequences", "[\"zzz\"]"});
  if (draw.chance(30)) fields.push_back({"metadata", object({{"user_id", quoted(words(draw, 4))}})});
  if (draw.chance(15)) add(fields, easy_constraint(draw, constraint_names::anthropic));
  if (shape.max_tokens != endless_tokens && draw.chance(25))
    add(fields, tool_fields(draw, tool_names::messages));
  if (shape.stream) fields.push_back({"stream", "true"});
  if (shape.lasting) fields.push_back({"on_disconnect", "\"continue\""});
  return fields;
}

std::vector<field> create_fields(random_source& draw, std::string_view lane, job_shape shape) {
  std::vector<field> fields = job_fields(draw, shape);
  const bool tools = shape.max_tokens != endless_tokens && draw.chance(20);
  const std::string inputs[] = {quoted(words(draw, 4)), conversation_list(draw), number_list(draw, 5, 200)};
  const std::string& input = tools ? inputs[1] : draw.pick(inputs);
  fields.insert(fields.begin(), {{"type", "\"response.create\""}, {"id", quoted(lane)}, {"input", input}});
  if (tools) add(fields, tool_fields(draw, tool_names::chat));
  if (draw.chance(30)) fields.push_back({"on_disconnect", draw.chance(50) ? "\"cancel\"" : "\"continue\""});
  if (draw.chance(30)) fields.push_back({"timing", "true"});
  if (draw.chance(10)) fields.push_back({"priority", "3"});
  if (draw.chance(30)) fields.push_back({"window", draw.chance(50) ? "1" : "64"});
  if (draw.chance(30)) fields.push_back({"on_lag", draw.chance(50) ? "\"pause\"" : "\"buffer\""});
  if (draw.chance(20)) fields.push_back({"pace", "\"even\""});
  if (draw.chance(20)) fields.push_back({"pad", "true"});
  if (draw.chance(20)) fields.push_back({"metadata", object({{"note", quoted(words(draw, 20))}})});
  return fields;
}

std::string response_items(random_source& draw) {
  static const std::string items[] = {
      R"({"role":"user","content":"x"})",
      R"({"type":"message","role":"assistant","content":[{"type":"output_text","text":"y"}]})",
      R"({"type":"item_reference","id":"{answer}_0"})",
      R"({"type":"item_reference","id":"msg_"})",
      R"({"type":"reasoning","id":"rs_1","summary":[]})",
      R"({"type":"function_call","call_id":"c","name":"f","arguments":"{}"})",
      R"({"type":"function_call_output","call_id":"c","output":"z"})"};
  std::string out = "[";
  for (std::size_t n = draw.between(0, 5); n > 0; --n) out += draw.pick(items) + (n > 1 ? "," : "");
  return out + ']';
}

// The fields of a response, and those of response.create over a WebSocket.
std::vector<field> response_fields(random_source& draw, job_shape shape, bool of_socket) {
  std::vector<field> fields = {{"input", draw.chance(60) ? quoted(words(draw, 4)) : response_items(draw)},
                               {"max_output_tokens", std::to_string(shape.max_tokens)},
                               {"ignore_eos", "true"}};
  if (of_socket) fields.insert(fields.begin(), {"type", "\"response.create\""});
  if (of_socket && draw.chance(20)) fields.push_back({"generate", "false"});
  if (draw.chance(30)) fields.push_back({"store", draw.chance(50) ? "true" : "false"});
  if (draw.chance(40)) fields.push_back({"previous_response_id", "\"{answer}\""});
  if (draw.chance(40)) add(fields, tool_fields(draw, tool_names::responses));
  if (draw.chance(20)) fields.push_back({"instructions", quoted(words(draw, 20))});
  if (draw.chance(20)) fields.push_back({"metadata", object({{"a", quoted(words(draw, 3))}})});
  if (!of_socket && draw.chance(30)) fields.push_back({"background", "true"});
  if (shape.stream) fields.push_back({"stream", "true"});
  if (shape.lasting) fields.push_back({"on_disconnect", "\"continue\""});
  return fields;
}

struct shaped {
  std::string path;
  std::vector<field> fields;
};

shaped any_request(random_source& draw) {
  const job_shape shape{draw.between(1, 64), draw.chance(50), draw.chance(20)};
  switch (draw.below(7)) {
    case 0:
      return {"/v1/completions", http_fields(draw, shape, {"prompt", quoted(words(draw, draw.below(40)))})};
    case 1:
      return {"/v1/chat/completions", chat_fields(draw, shape)};
    case 2:
      return {"/v1/tokenize", {{"text", quoted(words(draw, 20))}, {"add_special", "true"}}};
    case 3:
      return {"/v1/messages", message_fields(draw, shape)};
    case 4:
      return {"/v1/messages/count_tokens", message_fields(draw, shape)};
    case 5:
      return {"/v1/responses", response_fields(draw, shape, false)};
    default:
      return {"/v1/detokenize", {{"ids", number_list(draw, draw.below(50), 300)}}};
  }
}

}  // namespace

body completion(random_source& draw, job_shape shape) {
  return {"/v1/completions",
          object(http_fields(draw, shape, {"prompt", quoted(words(draw, draw.between(1, 20)))}))};
}

body chat(random_source& draw, job_shape shape) {
  return {"/v1/chat/completions", object(chat_fields(draw, shape))};
}

body message(random_source& draw, job_shape shape) {
  return {"/v1/messages", object(message_fields(draw, shape))};
}

body response(random_source& draw, job_shape shape) {
  return {"/v1/responses", object(response_fields(draw, shape, false))};
}

body honest_body(random_source& draw) {
  const shaped r = any_request(draw);
  return {r.path, object(r.fields)};
}

body hostile_body(random_source& draw) {
  shaped r = any_request(draw);
  const field greedy[] = {
      {"n", "64"}, {"max_tokens", "1000000000"}, {"deadline_ms", "9223372036854775808"}, {"n", "65"}};
  if (draw.chance(20)) r.fields.push_back(draw.pick(greedy));
  if (draw.chance(10)) add(r.fields, hostile_constraint(draw, constraint_names::ours));
  return {r.path, spoiled_object(draw, std::move(r.fields))};
}

body constrained_body(random_source& draw) {
  const job_shape shape{draw.between(1, 200), draw.chance(50)};
  const auto hard = [&](constraint_names names) {
    return draw.chance(80) ? hostile_constraint(draw, names) : easy_constraint(draw, names);
  };
  if (draw.chance(20)) {
    auto fields = message_fields(draw, shape);
    add(fields, hard(constraint_names::anthropic));
    return {"/v1/messages", object(fields)};
  }
  const bool plain = draw.chance(50);
  auto fields = http_fields(
      draw, shape,
      plain ? field{"prompt", quoted(words(draw, 4))} : field{"messages", conversation_list(draw)});
  add(fields, hard(constraint_names::ours));
  return {plain ? "/v1/completions" : "/v1/chat/completions", object(fields)};
}

std::string constrained_message(random_source& draw, std::string_view lane) {
  auto fields = create_fields(draw, lane, {draw.between(1, 200)});
  add(fields, hostile_constraint(draw, constraint_names::ours));
  return object(fields);
}

body many_choices(random_source& draw) {
  const std::vector<field> rest = {{"n", "64"}, {"max_tokens", "4"}};
  const auto with = [&rest](std::string path, field input) {
    std::vector<field> fields = rest;
    fields.push_back(std::move(input));
    return body{std::move(path), object(fields)};
  };
  const std::size_t size = draw.between(1'500'000, 2'000'000);
  switch (draw.below(4)) {
    case 0:
      return with("/v1/completions", {"prompt", number_list(draw, size / 2, 10)});
    case 1:
      return with("/v1/completions", {"prompt", quoted(words(draw, size / 8))});
    case 2:
      return with("/v1/chat/completions",
                  {"messages",
                   "[" + object({{"role", "\"user\""}, {"content", quoted(std::string(size, 'x'))}}) + "]"});
    default:
      return with("/v1/completions", {"prompt", quoted(std::string(size, 'x'))});
  }
}

body many_stops(random_source& draw) {
  constexpr std::size_t most_stop_strings = 64, longest_stop_string = 1'000;
  std::string ids = "[", strings = "[";
  for (std::size_t n = draw.between(1'000, 250'000); n > 0; --n) ids += n > 1 ? "7," : "7]";
  for (std::size_t n = most_stop_strings; n > 0; --n)
    strings += quoted(std::string(longest_stop_string, 's') + std::to_string(n)) + (n > 1 ? "," : "]");
  std::vector<field> fields = {{"prompt", R"(["a","b","c"])"}, {"n", "64"}, {"max_tokens", "4"}};
  fields.push_back(draw.chance(70) ? field{"stop_token_ids", std::move(ids)}
                                   : field{"stop", std::move(strings)});
  return {"/v1/completions", object(fields)};
}

body freshly_constrained_body(random_source& draw, bool slow) {
  auto fields = http_fields(draw, {draw.between(1, 20), draw.chance(50)}, {"prompt", quoted(words(draw, 4))});
  add(fields, fresh_constraint(draw, slow));
  return {"/v1/completions", object(fields)};
}

std::string create_message(random_source& draw, std::string_view lane, job_shape shape) {
  return object(create_fields(draw, lane, shape));
}

std::string cancel_message(std::string_view lane) {
  return object({{"type", "\"response.cancel\""}, {"id", quoted(lane)}});
}

std::string ack_message(std::string_view lane, std::size_t seq) {
  return object({{"type", "\"response.ack\""}, {"id", quoted(lane)}, {"seq", std::to_string(seq)}});
}

std::string ping_message(random_source& draw) {
  return object({{"type", "\"ping\""}, {"ts", draw.chance(50) ? "1" : odd_value(draw)}});
}

std::string auth_message(std::string_view key) {
  return object({{"type", "\"session.auth\""}, {"token", quoted(key)}});
}

std::string hostile_message(random_source& draw, const target& t) {
  static const std::string lanes[] = {"a", "b", "", "lane with spaces", std::string(65, 'x'), "\xFF"};
  static const std::string types[] = {
      "response.resume", "response.ack", "response.delta", "session.created", "", "pong", "x"};
  switch (draw.below(8)) {
    case 0:
      return ping_message(draw);
    case 1:
      return cancel_message(draw.pick(lanes));
    case 2:
      return auth_message(t.keys.empty() || draw.chance(50) ? odd_text(draw) : draw.pick(t.keys));
    case 3:
      return spoiled_object(draw, {{"type", quoted(draw.pick(types))},
                                   {"id", quoted(draw.pick(lanes))},
                                   {"response_id", "\"0\""},
                                   {"after", "0"},
                                   {"seq", "0"}});
    case 4:
      return odd_value(draw);
    case 5:
      return create_message(draw, draw.pick(lanes), {draw.between(1, 50)});
    default:
      return spoiled_object(draw, create_fields(draw, draw.pick(lanes), {draw.between(1, 50)}));
  }
}

std::string response_message(random_source& draw, job_shape shape) {
  return object(response_fields(draw, shape, true));
}

std::string hostile_response_message(random_source& draw) {
  if (draw.chance(10)) return odd_value(draw);
  return spoiled_object(draw, response_fields(draw, {draw.between(1, 50)}, true));
}

}  // namespace weir::stranger
