#include "net/protocol/openai.h"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>

#include "net/http/reply.h"
#include "net/protocol/answer_id.h"

#include "tests/support/answer_pieces.h"

namespace weir::tests::openai_test {

using namespace weir::net;
using openai::dialect;

namespace {

core::result<openai::parsed_request> completion(const std::string& fields) {
  return openai::parse(dialect::completion, R"({"prompt":"hi")" + (fields.empty() ? "" : "," + fields) + "}");
}

boost::json::object event(std::string_view text) {
  REQUIRE(text.starts_with("data: "));
  REQUIRE(text.ends_with("\n\n"));
  return boost::json::parse(boost::json::string_view(text.data() + 6, text.size() - 8)).as_object();
}

}  // namespace

TEST_CASE("openai: a completion's fields reach the request") {
  auto p = completion(R"("model":"m","max_tokens":5,"temperature":0,"stream":true,
      "stream_options":{"include_usage":true},"return_token_ids":true,"stop":"x","user":"me","n":1,"logprobs":null,
      "ignore_eos":true,"top_k":5,"add_special_tokens":false,"skip_special_tokens":false,"seed":-2)");
  REQUIRE(p.has_value());
  CHECK(p->request.model == "m");
  CHECK(p->request.input_param == "prompt");
  CHECK(std::get<std::string>(p->request.input) == "hi");
  CHECK(p->request.max_tokens == 5);
  CHECK(p->request.sampling.temperature == 0.0);
  CHECK(p->request.stop == std::vector<std::string>{"x"});
  CHECK(p->request.sampling.seed == 18446744073709551614ull);
  CHECK(p->stream);
  CHECK(p->include_usage);
  CHECK(p->return_token_ids);
  auto ids = openai::parse(dialect::completion, R"({"prompt":[1,2,3]})");
  REQUIRE(ids.has_value());
  CHECK(std::get<actors::prompt_ids>(ids->request.input) == actors::prompt_ids{1, 2, 3});
}

TEST_CASE("openai: a bad body is refused naming the field") {
  const struct {
    const char *body, *param, *says;
  } rows[] = {
      {"", "", "not JSON"},
      {"[]", "", "object"},
      {"{}", "prompt", "missing"},
      {R"({"prompt":null})", "prompt", "must be"},
      {R"({"prompt":5})", "prompt", "must be"},
      {R"({"prompt":["a",5]})", "prompt[1]", "must be a string or token ids, not a number"},
      {R"({"prompt":[[1],["a"]]})", "prompt[1]", "integer"},
      {R"({"prompt":[[1],[-1]]})", "prompt[1]", "prompt[1][0]: -1 is not a token id"},
      {R"({"prompt":["a",null]})", "prompt[1]", "must be"},
      {R"({"prompt":[1,"a"]})", "prompt", "integer"},
      {R"({"prompt":"x","max_tokens":"5"})", "max_tokens", "integer"},
      {R"({"prompt":"x","n":65})", "n", "[1, 64]"},
      {R"({"prompt":"x","best_of":2})", "best_of", "unless it is n, which is 1"},
      {R"({"prompt":"x","best_of":1,"n":2})", "best_of", "unless it is n, which is 2"},
      {R"({"prompt":"x","best_of":0})", "best_of", "at least 1"},
      {R"({"prompt":"x","echo":"yes"})", "echo", "true or false"},
      {R"({"prompt":"x","echo":true,"logprobs":1,"stream":true})", "echo", "not streamed"},
      {R"({"prompt":"x","echo":true,"max_tokens":0,"stream":true})", "max_tokens", "not streamed"},
      {R"({"prompt":"x","store":true})", "store", "not supported yet"},
      {R"({"prompt":"x","service_tier":"priority"})", "service_tier", "there is one tier"},
      {R"({"prompt":"x","service_tier":1})", "service_tier", "string"},
      {R"({"prompt":"x","user":5})", "user", "user must be a string, not a number"},
      {R"({"prompt":"x","metadata":"a"})", "metadata", "metadata must be an object, not a string"},
      {R"({"prompt":"x","max_completion_tokens":5})", "max_completion_tokens", "unknown field"},
      {R"({"prompt":"x","suffix":"y"})", "suffix", "not supported yet"},
      {R"({"prompt":"x","logprobs":true})", "logprobs", "integer"},
      {R"({"prompt":"x","prompt_logprobs":true})", "prompt_logprobs", "integer"},
      {R"({"prompt":"x","prompt_logprobs":1,"stream":true})", "prompt_logprobs", "not streamed"},
      {R"({"prompt":"x","stream":"yes"})", "stream", "true or false"},
      {R"({"prompt":"x","stream":true,"stream_options":5})", "stream_options", "object"},
      {R"({"prompt":"x","stream":true,"stream_options":{"include_usage":1}})", "stream_options.include_usage",
       "true"},
      {R"({"prompt":"x","stream":true,"stream_options":{"include_obfuscation":true}})",
       "stream_options.include_obfuscation", "not supported yet"},
      {R"({"prompt":"x","stream_options":{"include_usage":true}})", "stream_options", "stream:true"},
      {R"({"prompt":"x","messages":[]})", "messages", "unknown field"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.body);
    auto p = openai::parse(dialect::completion, r.body);
    REQUIRE(!p);
    CHECK(p.error().code == core::errc::invalid_param);
    CHECK(p.error().param == r.param);
    CHECK_THAT(p.error().message, Catch::Contains(r.says));
  }
}

TEST_CASE("openai: a chat takes messages, and max_completion_tokens") {
  auto p = openai::parse(dialect::chat, R"({"messages":[{"role":"system","content":"be brief"},
      {"role":"user","content":[{"type":"text","text":"hi"}]}],"max_completion_tokens":9,"tools":[],"tool_choice":"none"})");
  REQUIRE(p.has_value());
  CHECK(p->request.max_tokens == 9);
  const auto& said = std::get<core::conversation>(p->request.input);
  REQUIRE(said.messages.size() == 2);
  CHECK(said.messages[0].at("content") == "be brief");
  CHECK(said.messages[1].at("content").at(0).at("text") == "hi");
  CHECK(said.tools.is_null());
  for (const char* bad : {R"({})", R"({"messages":"hi"})", R"({"messages":[]})", R"({"messages":[5]})"}) {
    CAPTURE(bad);
    auto r = openai::parse(dialect::chat, bad);
    REQUIRE(!r);
    CHECK(r.error().param == "messages");
  }
}

TEST_CASE("openai: a chat's fields that are refused, by name") {
  const std::string said = R"("messages":[{"role":"user","content":"hi"}])";
  const struct {
    std::string body, param, says;
  } rows[] = {
      {R"("messages":[{"role":"user","content":"a"},{"role":"king","content":"b"}])", "messages",
       "messages[1].role must be system, developer, user, assistant or tool, not 'king'"},
      {R"("messages":[{"role":"assistant","content":"a","refusal":"no"}])", "messages",
       "messages[0].refusal is not supported yet"},
      {R"("messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])", "messages",
       "parts of type 'image_url' are not supported yet"},
      {said + R"(,"max_tokens":5,"max_completion_tokens":6)", "max_completion_tokens", "set one of them"},
      {said + R"(,"tools":[{}],"parallel_tool_calls":false)", "tools", "tools of type ''"},
      {said + R"(,"parallel_tool_calls":5)", "parallel_tool_calls", "true or false"},
      {said + R"(,"reasoning_effort":5)", "reasoning_effort", "string"},
      {said + R"(,"guidance_scale":1.5)", "guidance_scale", "not supported yet"},
      {said + R"(,"cfg_scale":1.5)", "cfg_scale", "not supported yet"},
      {said + R"(,"negative_prompt_ids":[5])", "negative_prompt_ids", "not supported yet"},
      {said + R"(,"logits_processors":["a.b"])", "logits_processors", "not supported yet"},
      {said + R"(,"logits_processor":["a.b"])", "logits_processor", "not supported yet"},
      {said + R"(,"custom_logit_processor":"a")", "custom_logit_processor", "not supported yet"},
      {said + R"(,"use_beam_search":true)", "use_beam_search", "not supported yet"},
      {said + R"(,"length_penalty":1.2)", "length_penalty", "not supported yet"},
      {said + R"(,"echo":true)", "echo", "unknown field"},
      {said + R"(,"prompt":"x")", "prompt", "unknown field"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.body);
    const auto p = openai::parse(dialect::chat, "{" + r.body + "}");
    REQUIRE(!p);
    CHECK(p.error().code == core::errc::invalid_param);
    CHECK(p.error().param == r.param);
    CHECK_THAT(p.error().message, Catch::Contains(r.says));
  }
}

TEST_CASE("openai: fields that change nothing are taken, and so are an assistant's own answers") {
  const auto p = openai::parse(dialect::chat, R"({"messages":[{"role":"developer","content":"d","name":"n"},
      {"role":"assistant","content":"a","refusal":null,"annotations":[],"audio":null,"function_call":null},
      {"role":"tool","tool_call_id":"1","content":"t"},{"role":"user","content":"hi"}],
      "user":"u","metadata":{"a":"b"},"store":false,"service_tier":"auto","safety_identifier":"s",
      "prompt_cache_key":"k","prompt_cache_retention":"24h","parallel_tool_calls":true,"n":2,"best_of":2,
      "max_tokens":5,"max_completion_tokens":5,"modalities":["text"],"logprobs":false,"top_logprobs":0,
      "verbosity":"medium","response_format":{"type":"text"},"stream":true,
      "stream_options":{"include_usage":null,"include_obfuscation":false,"continuous_usage_stats":false}})");
  INFO((p ? "" : p.error().message));
  REQUIRE(p.has_value());
  CHECK(p->n == 2);
  CHECK(p->request.max_tokens == 5);
  CHECK_FALSE(p->include_usage);
}

TEST_CASE("openai: every sampling field is read, on both routes") {
  const std::string all =
      R"("temperature":0.5,"top_k":3,"top_p":0.25,"min_p":0.125,"repetition_penalty":1.5,
         "frequency_penalty":1,"presence_penalty":-1,"seed":7,"logit_bias":{"3":2},"repetition_range":64,"repetition_decay":32,
         "top_n_sigma":1.5,"top_a":0.5,"typical_p":0.75,"tfs":0.875,"xtc_probability":0.5,
         "xtc_threshold":0.25,"dynatemp_range":0.25,"dynatemp_exponent":2,"smoothing_factor":0.5,"smoothing_curve":3,
         "temperature_last":1,"disallow_tokens":[4,5],"allowed_token_ids":[6],"no_repeat_ngram_size":3,
         "bad_words":["no",[7,8]],"dry_multiplier":0.5,"dry_base":2,"dry_allowed_length":3,"dry_range":64,
         "dry_sequence_breakers":"[\"\\n\",\":\"]","mirostat_mode":2,"mirostat_tau":3,"mirostat_eta":0.5)";
  for (const bool chat : {false, true}) {
    const std::string said = chat ? R"("messages":[{"role":"user","content":"hi"}])" : R"("prompt":"hi")";
    const auto how = chat ? dialect::chat : dialect::completion;
    const auto p = openai::parse(how, "{" + said + "," + all + "}", SIZE_MAX, true);
    INFO((p ? "" : p.error().message));
    REQUIRE(p.has_value());
    CHECK(p->ignored.empty());
    const auto& s = p->request.sampling;
    int unset = 0;
    const core::sampling_request none;
    core::visit_sampling(
        [&](const core::sampling_field&, auto sent, auto) { unset += s.*sent == none.*sent; });
    CHECK(unset == 0);
    CHECK(
        (s.repetition_range == 64 && s.repetition_decay == 32 && s.tfs == 0.875 && s.xtc_threshold == 0.25));
    CHECK((s.temperature_last == true && s.smoothing_curve == 3.0));
    CHECK(s.disallow_tokens == std::vector<std::int64_t>{4, 5});
    CHECK(s.allowed_token_ids == std::vector<std::int64_t>{6});
    CHECK(s.dry_sequence_breakers == std::vector<std::string>{"\n", ":"});
    REQUIRE(s.bad_words.size() == 2);
    CHECK(std::get<std::string>(s.bad_words[0]) == "no");
    CHECK(std::get<1>(s.bad_words[1]) == std::vector<std::int64_t>{7, 8});
    for (const auto& [name, more] : std::initializer_list<std::pair<std::string, std::string>>{
             {"allowed_token_ids", R"("allowed_token_ids":[])"},
             {"disallow_tokens", R"("disallow_tokens":"5")"},
             {"temperature_last", R"("temperature_last":2)"},
             {"bad_words", R"("bad_words":[5])"},
             {"dry_sequence_breakers", R"("dry_sequence_breakers":"x")"},
             {"dry_sequence_breakers", R"("dry_sequence_breakers":[1])"},
             {"mirostat", R"("mirostat_mode":1,"mirostat":2)"},
             {"mirostat", R"("mirostat":true)"},
             {"custom_token_bans", R"("custom_token_bans":"5,x")"},
             {"custom_token_bans", R"("custom_token_bans":"5,,6")"},
             {"dynamic_temperature", R"("dynamic_temperature":true)"},
             {"dynamic_temperature", R"("dynamic_temperature":"x")"},
             {"dynamic_temperature", R"("dynamic_temperature":true,"dynatemp_low":1)"},
             {"dynatemp_low", R"("dynamic_temperature":true,"dynatemp_low":1,"dynatemp_high":0.5)"},
             {"dynatemp_high", R"("dynamic_temperature":true,"dynatemp_low":1,"dynatemp_high":4.5)"},
             {"dynatemp_range",
              R"("dynamic_temperature":1,"dynatemp_low":0,"dynatemp_high":2,"dynatemp_range":0.5)"},
             {"typical", R"("typical_p":0.5,"typical":0.6)"},
             {"typical_p", R"("typical":0.5,"typical_p":0.6)"},
             {"penalty_range", R"("repeat_last_n":5,"penalty_range":6)"},
             {"xtc_probability", R"("xtc_probability":"1")"}}) {
      const auto refused = openai::parse(how, "{" + said + "," + more + "}", SIZE_MAX, true);
      INFO(name);
      REQUIRE_FALSE(refused.has_value());
      CHECK(refused.error().param == name);
    }
  }
}

TEST_CASE("openai: other servers' names of sampling fields are read, twice with the same value too") {
  const auto p = openai::parse(dialect::completion,
                               R"({"prompt":"hi","repeat_penalty":1.5,"repeat_last_n":5,"penalty_range":5,
      "repetition_penalty_range":5,"typical":0.5,"typical_p":0.5,"tfs_z":0.25,"tfs":null,"nsigma":1,
      "dry_penalty_last_n":7,"mirostat":2,"custom_token_bans":"5, 17","dynamic_temperature":true,
      "dynatemp_low":0.5,"dynatemp_high":1.5,"dynatemp_range":0.5,"temperature":0.7})",
                               SIZE_MAX, true);
  INFO((p ? "" : p.error().message));
  REQUIRE(p.has_value());
  CHECK(p->ignored.empty());
  const auto& s = p->request.sampling;
  CHECK((s.repetition_penalty == 1.5 && s.repetition_range == 5 && s.typical_p == 0.5 && s.tfs == 0.25));
  CHECK((s.top_n_sigma == 1.0 && s.dry_range == 7 && s.mirostat_mode == 2));
  CHECK(s.disallow_tokens == std::vector<std::int64_t>{5, 17});
  CHECK((s.temperature == 1.0 && s.dynatemp_range == 0.5));
}

TEST_CASE("openai: values that ask for nothing are taken without a word") {
  for (const char* more :
       {R"("mirostat":0,"mirostat_mode":0,"mirostat_tau":5,"mirostat_eta":0.1)", R"("typical_p":0)",
        R"("typical_p":1,"typical":1,"tfs":1,"tfs_z":1,"top_a":0)", R"("temperature_last":0)",
        R"("mirostat":false,"dynamic_temperature":false,"dynatemp_low":1,"dynatemp_high":1)",
        R"("banned_strings":"","custom_token_bans":"")", R"("xtc_threshold":0.1,"xtc_probability":0)",
        R"("xtc_threshold":0.1)", R"("dry_multiplier":0,"dry_base":1.75,"dry_sequence_breakers":["\n"])",
        R"("dynatemp_range":0,"dynatemp_exponent":1,"smoothing_factor":0,"smoothing_curve":1)",
        R"("length_penalty":1,"use_beam_search":false,"early_stopping":false)",
        R"("spaces_between_special_tokens":true,"include_stop_str_in_output":false,"bad_words":[])",
        R"("parallel_tool_calls":false)", R"("reasoning_effort":"high")",
        R"("parallel_tool_calls":false,"tools":[])", R"("max_tokens":-1,"seed":-1)"}) {
    CAPTURE(more);
    for (const bool chat : {false, true}) {
      const std::string said = chat ? R"("messages":[{"role":"user","content":"hi"}])" : R"("prompt":"hi")";
      if (!chat && std::string_view(more).find("tools\"") != std::string_view::npos) continue;
      const auto p = openai::parse(chat ? dialect::chat : dialect::completion, "{" + said + "," + more + "}",
                                   SIZE_MAX, true);
      INFO((p ? "" : p.error().message));
      REQUIRE(p.has_value());
      CHECK(p->ignored.empty());
      CHECK_FALSE(p->request.max_tokens);
      CHECK_FALSE(p->request.sampling.seed);
    }
  }
  CHECK_FALSE(openai::parse(dialect::chat,
                            R"({"messages":[{"role":"user","content":"a"}],"max_completion_tokens":-1})")
                  ->request.max_tokens);
}

TEST_CASE("openai: unknown fields are taken and named, so many and no more, or refused if that is asked") {
  const std::string body = R"({"prompt":"x","temprature":1,"stream":true,"stream_options":{"other":true}})";
  const auto p = openai::parse(dialect::completion, body);
  REQUIRE(p.has_value());
  CHECK(p->ignored.told() == std::vector<std::string>{"temprature", "stream_options.other"});
  const auto strict = openai::parse(dialect::completion, body, SIZE_MAX, true);
  REQUIRE(!strict);
  CHECK(strict.error().param == "temprature");
  CHECK(strict.error().message == "unknown field 'temprature'");

  std::string many = R"({"prompt":"x")";
  for (int i = 0; i < 1000; ++i) many += fmt::format(R"(,"f{}":1)", i);
  const auto bounded = openai::parse(dialect::completion, many + "}")->ignored;
  CHECK(bounded.told().size() == ignored_fields::most_names + 1);
  CHECK(bounded.told().back() == "and 984 more");
  CHECK(bounded.warnings().back().message == "984 more unknown fields are ignored");
}

TEST_CASE("openai: a reasoning effort goes with the messages, and none is as if it were not there") {
  const auto effort = [](const char* value) {
    const auto p = openai::parse(
        dialect::chat,
        fmt::format(R"({{"reasoning_effort":{},"messages":[{{"role":"user","content":"a"}}]}})", value));
    REQUIRE(p.has_value());
    return std::get<core::conversation>(p->request.input).reasoning_effort;
  };
  CHECK(effort(R"("low")") == "low");
  CHECK_FALSE(effort(R"("none")"));
  CHECK_FALSE(effort("null"));
}

TEST_CASE("openai: echo beside logprobs asks for the logprobs of the prompt, and max_tokens 0 for it alone") {
  const auto p = completion(R"("echo":true,"logprobs":3,"max_tokens":0)");
  REQUIRE(p.has_value());
  CHECK(p->prompt_alone);
  CHECK(p->request.max_tokens == 1);
  CHECK(p->request.prompt_logprobs == 3);
  CHECK_FALSE(p->prompt_logprobs);
  const auto both = completion(R"("echo":true,"logprobs":3,"prompt_logprobs":5)");
  CHECK(both->request.prompt_logprobs == 5);
  CHECK(both->prompt_logprobs);
  CHECK_FALSE(both->prompt_alone);
  CHECK_FALSE(completion(R"("echo":true)")->request.prompt_logprobs);
  CHECK(completion(R"("max_tokens":0)")->request.max_tokens == 0);  // refused when its range is checked
}

TEST_CASE("openai: a list of prompts is several prompts, of text or of ids, and not too many") {
  const auto texts = openai::parse(dialect::completion, R"({"prompt":["a","b","c"],"echo":true})");
  REQUIRE(texts.has_value());
  CHECK(std::get<std::string>(texts->request.input) == "a");
  REQUIRE(texts->request.more_inputs.size() == 2);
  CHECK(std::get<std::string>(texts->request.more_inputs[1]) == "c");
  CHECK(texts->request.echo);
  const auto ids = openai::parse(dialect::completion, R"({"prompt":[[1,2],[3]]})");
  REQUIRE(ids.has_value());
  CHECK(std::get<actors::prompt_ids>(ids->request.input) == actors::prompt_ids{1, 2});
  CHECK(std::get<actors::prompt_ids>(ids->request.more_inputs.at(0)) == actors::prompt_ids{3});
  const auto one = openai::parse(dialect::completion, R"({"prompt":["a"]})");
  REQUIRE(one.has_value());
  CHECK(one->request.more_inputs.empty());

  const auto prompts = [](std::size_t count, int n) {
    std::string list;
    for (std::size_t i = 0; i < count; ++i) list += i == 0 ? R"("x")" : R"(,"x")";
    return openai::parse(dialect::completion, fmt::format(R"({{"prompt":[{}],"n":{}}})", list, n));
  };
  CHECK(prompts(openai::most_choices_in_all, 1).has_value());
  CHECK(prompts(openai::most_choices_in_all / 64, 64).has_value());
  const auto many = prompts(openai::most_choices_in_all / 64 + 1, 64);
  REQUIRE(!many);
  CHECK(many.error().param == "prompt");
  CHECK(many.error().message == "5 prompts with 64 choices each are over 256 choices");
}

TEST_CASE("openai: an answer's id is its first job's, with the prefix of the route") {
  const core::job_id id{0x0123456789abcdef, 0xfedcba9876543210};
  CHECK(openai::id_of(dialect::chat, id) == "chatcmpl-0123456789abcdeffedcba9876543210");
  CHECK(openai::id_of(dialect::completion, id) == "cmpl-0123456789abcdeffedcba9876543210");
  for (const char* prefix : {"", "chatcmpl-", "cmpl-", "resp_", "msg_"})
    CHECK(job_named(prefix + id.text()) == id);
  for (const char* prefix : {"cmpl", "chatcmpl-cmpl-", "CMPL-", "job-", " "})
    CHECK_FALSE(job_named(prefix + id.text()).has_value());
  CHECK_FALSE(job_named("cmpl-").has_value());
  CHECK_FALSE(job_named("").has_value());
}

TEST_CASE("openai: a key that is there twice is refused by name, wherever it stands") {
  const struct { const char *body, *key; } rows[] = {
      {R"({"prompt":"x","prompt":"y"})", "prompt"},
      {R"({"prompt":"x","metadata":{"a":1,"b":{"c":1,"c":1}}})", "c"},
      {R"({"prompt":"x","logit_bias":{"5":1,"6":1,"5":2}})", "5"},
      {R"({"prompt":"x","pr\u006fmpt":"y"})", "prompt"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.body);
    const auto p = openai::parse(dialect::completion, r.body);
    REQUIRE(!p);
    CHECK(p.error().code == core::errc::invalid_param);
    CHECK(p.error().param == r.key);
    CHECK(p.error().message == std::string("'") + r.key + "' is there twice");
  }
  CHECK(openai::parse(dialect::completion,
                      R"({"prompt":"x","metadata":{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}})")
            .has_value());
  CHECK(openai::parse_tokenize(R"({"text":"x","text":"x"})").error().param == "text");
}

TEST_CASE("openai: a number that no double holds is refused, and infinity is never told of") {
  for (const char* field : {"seed", "temperature", "max_tokens", "user"}) {
    const auto p = completion(std::string("\"") + field + "\":-1e400");
    CAPTURE(field);
    REQUIRE(!p);
    CHECK(p.error().code == core::errc::invalid_param);
    CHECK(p.error().message.find("inf") == std::string::npos);
  }
}

TEST_CASE("openai: names that come back in an error are no longer than 64 bytes") {
  const std::string longest(100000, 'n');
  const std::string cut = std::string(61, 'n') + "…";
  const auto unknown = completion("\"" + longest + "\":1")->ignored.warnings();
  REQUIRE(unknown.size() == 1);
  CHECK(unknown[0].where == cut);
  CHECK(unknown[0].message == "unknown field '" + cut + "': it is ignored");
  const auto option = completion(R"("stream":true,"stream_options":{")" + longest + "\":true}");
  CHECK(option->ignored.told().front().size() <= 64);
  CHECK(openai::parse_tokenize(R"({"text":"x",")" + longest + "\":1}").error().param == cut);
  CHECK(completion("\"" + longest + "\":1,\"" + longest + "\":1").error().param == cut);
}

TEST_CASE("openai: a body has so many values and no more") {
  const std::string ids = R"({"prompt":[1,2,3]})";  // an object, a key, an array and three numbers
  CHECK(openai::parse(dialect::completion, ids, 6).has_value());
  const auto e = openai::parse(dialect::completion, ids, 5).error();
  CHECK(e.code == core::errc::invalid_param);
  CHECK(e.message == "the JSON has too many values");
}

TEST_CASE("openai: tokenize and detokenize bodies are strict") {
  auto t = openai::parse_tokenize(R"({"model":"m","text":"a","add_special":false})");
  REQUIRE(t.has_value());
  CHECK(t->model == "m");
  CHECK(t->text == "a");
  CHECK(!t->add_special);
  CHECK(openai::parse_tokenize("{}").error().param == "text");
  CHECK(openai::parse_tokenize(R"({"text":5})").error().param == "text");
  CHECK(openai::parse_tokenize(R"({"text":"a","more":1})").error().param == "more");
  auto d = openai::parse_detokenize(R"({"ids":[1,2]})");
  REQUIRE(d.has_value());
  CHECK(d->ids == std::vector<std::int64_t>{1, 2});
  CHECK(openai::parse_detokenize(R"({"ids":["1"]})").error().param == "ids");
}

TEST_CASE("openai: endings map to their words") {
  using core::finish_reason;
  const std::pair<finish_reason, const char*> rows[] = {
      {finish_reason::stop, "stop"},      {finish_reason::length, "length"},
      {finish_reason::timeout, "length"}, {finish_reason::repetition, "length"},
      {finish_reason::cancel, "cancel"},  {finish_reason::error, "error"},
  };
  for (const auto& [reason, word] : rows) {
    actors::outcome how;
    how.reason = reason;
    CHECK(openai::finish_reason(how) == word);
    how.calls = 1;
    CHECK(openai::finish_reason(how) == (reason == finish_reason::stop ? "tool_calls" : word));
  }
}

namespace {

boost::json::value whole(body_parts body) {
  std::string out;
  while (body.append(out)) {
  }
  return boost::json::parse(out);
}

}  // namespace

TEST_CASE("openai: a response object has text, reason, ids if asked, and usage") {
  actors::outcome how;
  how.input_tokens = 3;
  how.output_tokens = 2;
  how.cached_tokens = 1;
  const auto first = log_of_tokens({{7, "a"}, {8, "\"b"}}), second = log_of_tokens({{9, "c"}}),
             only = log_of_tokens({{9, "x"}});
  const std::vector<openai::choice> two = {{&first, how, true}, {&second, how}};
  const openai::answer_head head{"id1", 12, "m", "fp_1"};
  auto o = whole(openai::response_body(dialect::completion, head, two, 2)).as_object();
  CHECK(o.at("id") == "id1");
  CHECK(o.at("object") == "text_completion");
  CHECK(o.at("created") == 12);
  CHECK(o.at("model") == "m");
  CHECK(o.at("system_fingerprint") == "fp_1");
  auto choice = o.at("choices").at(0);
  CHECK(choice.at("text") == "a\"b");
  CHECK(choice.at("finish_reason") == "stop");
  CHECK(choice.at("token_ids") == boost::json::array{7, 8});
  CHECK(o.at("choices").at(1).at("index") == 1);
  CHECK(o.at("choices").at(1).at("text") == "c");
  CHECK(o.at("usage") == boost::json::parse(R"({"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,
                                               "prompt_tokens_details":{"cached_tokens":1}})"));
  const auto two_prompts = whole(openai::response_body(dialect::completion, head, two, 1));
  CHECK(two_prompts.at("usage").at("prompt_tokens") == 6);
  CHECK(two_prompts.at("usage").at("completion_tokens") == 4);
  CHECK(two_prompts.at("usage").at("prompt_tokens_details").at("cached_tokens") == 2);
  const std::vector<openai::choice> one = {{&only, how, false, "echo "}};
  const auto chat = whole(openai::response_body(dialect::chat, {"id1", 12, "m", ""}, one));
  CHECK(chat.at("system_fingerprint").is_null());
  CHECK(chat.at("object") == "chat.completion");
  CHECK(chat.at("choices").at(0).at("message") ==
        boost::json::parse(R"({"role":"assistant","content":"echo x","refusal":null})"));
  CHECK(!chat.at("choices").at(0).as_object().contains("token_ids"));
}

TEST_CASE("openai: a stream's events are framed and carry their pieces") {
  const openai::answer_head head{"id1", 12, "m", "fp_1"};
  openai::event_writer w(dialect::completion, head, true);
  std::string out;
  w.open(out, 0);
  CHECK(out.empty());
  w.open(out, 2, "prompt\"");
  CHECK(event(out).at("choices").at(0).at("index") == 2);
  CHECK(event(out).at("choices").at(0).at("text") == "prompt\"");
  CHECK(event(out).at("choices").at(0).at("finish_reason").is_null());
  out.clear();
  w.piece(out, 0, text_piece("a\n"), {}, "");
  auto first = event(out);
  CHECK(first.at("object") == "text_completion");
  CHECK(first.at("choices").at(0).at("text") == "a\n");
  CHECK(first.at("choices").at(0).at("finish_reason").is_null());
  CHECK(first.at("usage").is_null());
  out.clear();
  const core::token_id ids[] = {7};
  w.piece(out, 3, text_piece("b"), ids, "stop");
  CHECK(event(out).at("choices").at(0).at("index") == 3);
  CHECK(event(out).at("choices").at(0).at("finish_reason") == "stop");
  CHECK(event(out).at("choices").at(0).at("token_ids") == boost::json::array{7});
  out.clear();
  actors::outcome how;
  how.output_tokens = 2;
  w.usage(out, how);
  CHECK(event(out).at("choices").as_array().empty());
  CHECK(event(out).at("usage").at("completion_tokens") == 2);
  out.clear();
  w.close(out);
  CHECK(out == "data: [DONE]\n\n");
  out.clear();
  w.keep_alive(out);
  CHECK(out == ": keep-alive\n\n");

  openai::event_writer chat(dialect::chat, head, false);
  out.clear();
  chat.open(out, 1);
  CHECK(event(out).at("choices").at(0).at("index") == 1);
  CHECK(event(out).at("choices").at(0).at("delta") ==
        boost::json::parse(R"({"role":"assistant","content":"","refusal":null})"));
  CHECK(event(out).at("system_fingerprint") == "fp_1");
  CHECK(!event(out).contains("usage"));
  out.clear();
  chat.piece(out, 0, text_piece("x"), {}, "");
  CHECK(event(out).at("object") == "chat.completion.chunk");
  CHECK(event(out).at("choices").at(0).at("delta").at("content") == "x");
  out.clear();
  chat.usage(out, how);
  CHECK(out.empty());
  chat.error(out, core::error{core::errc::internal, "broken", ""});
  CHECK(event(out).at("error").at("message") == "broken");
}

TEST_CASE("openai: errors have their shape, status and Retry-After") {
  using core::errc;
  const std::pair<errc, unsigned> rows[] = {
      {errc::invalid_param, 400}, {errc::not_supported, 400},   {errc::prompt_too_long, 400},
      {errc::does_not_fit, 400},  {errc::model_not_found, 404}, {errc::not_found, 404},
      {errc::overloaded, 429},    {errc::unavailable, 503},     {errc::bad_file, 500},
      {errc::internal, 500},
  };
  for (const auto& [code, status] : rows) {
    net::reply r = error_reply(core::error{code, "because", "field"});
    CHECK(r.status == status);
    auto e = boost::json::parse(r.body).at("error").as_object();
    CHECK(e.at("message") == "because");
    CHECK(e.at("param") == "field");
    CHECK(e.at("type").is_string());
    CHECK(e.at("code").is_string());
    bool later =
        std::any_of(r.headers.begin(), r.headers.end(), [](auto& h) { return h.first == "Retry-After"; });
    CHECK(later == (status == 429 || status == 503));
  }
  CHECK(boost::json::parse(error_reply(404, "not_found", "x").body).at("error").at("param").is_null());
  const auto told = [](std::uint32_t ms) {
    return error_reply(core::error{errc::overloaded, "full", "", ms}).headers;
  };
  using headers = std::vector<std::pair<std::string, std::string>>;
  CHECK(told(0) == headers{{"Retry-After", "1"}});
  CHECK(told(1000) == headers{{"Retry-After", "1"}});
  CHECK(told(2300) == headers{{"Retry-After", "3"}});
}

}  // namespace weir::tests::openai_test
