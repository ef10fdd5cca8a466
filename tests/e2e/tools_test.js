// Tools and reasoning, with the clients of several dialects, against a scripted model.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, streamText, tool, jsonSchema } from "ai";
import OpenAI from "openai";

import { start_real } from "./real_server.js";

const skip = process.env.WEIR_BIN ? false : "WEIR_BIN is not set";
const here = new URL(".", import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), "weir-tools-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const call = (name, input) => `<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call>`;
// The last lines of the prompt decide: a result is answered, a question asks for a call.
const script = [
  {
    when: "</tool_response><|im_end|>\n<|im_start|>assistant",
    say: "<think>\nI know.\n</think>\n\nIt is 18 °C.",
  },
  {
    when: "two calls",
    say: `I look twice.\n${call("look", { place: "Köln" })}\n${call("look", { place: "a\"b\n" })}`,
  },
  { when: "broken", say: "<tool_call>\n{\"name\": oops}\n</tool_call>" },
  { when: "weather", say: `<think>\nI should look.\n</think>\n\n${call("look", { place: "Köln" })}` },
  { say: "<think>\nA greeting.\n</think>\n\nHello." },
];

const parameters = { type: "object", properties: { place: { type: "string" } }, required: ["place"] };
const tools = [{ type: "function", function: { name: "look", description: "the weather", parameters } }];
const user = (content) => ({ role: "user", content });

describe("tools and reasoning", { skip }, () => {
  let server, openai, anthropic;
  before(async () => {
    const file = join(folder, "script.jsonl");
    writeFileSync(file, script.map((line) => JSON.stringify(line)).join("\n"));
    server = await start_real({
      args: ["--device", `sim:script=${file},rate=0`, "--chat-template", join(here, "qwen_like.jinja")],
    });
    openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
    anthropic = new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0 });
  });
  after(() => server?.stop());

  test("an answer's reasoning stands beside its content", async () => {
    const whole = await openai.chat.completions.create({ model: "sim", messages: [user("hi")] });
    assert.equal(whole.choices[0].message.content, "Hello.");
    assert.equal(whole.choices[0].message.reasoning_content, "A greeting.");
    assert.equal(whole.choices[0].finish_reason, "stop");
    assert.ok(whole.usage.completion_tokens_details.reasoning_tokens > 0);
  });

  test("streamed calls come to the calls of the whole answer", async () => {
    const asked = { model: "sim", messages: [user("two calls")], tools };
    const whole = await openai.chat.completions.create(asked);
    const streamed = await openai.chat.completions.stream(asked).finalChatCompletion();
    const of = ({ choices: [{ message, finish_reason }] }) => ({
      content: message.content,
      calls: message.tool_calls.map(({ function: f }) => [f.name, f.arguments]),
      finish_reason,
    });
    assert.deepEqual(of(streamed), of(whole));
    assert.deepEqual(of(whole), {
      content: "I look twice.",
      calls: [["look", '{"place":"Köln"}'], ["look", '{"place":"a\\"b\\n"}']],
      finish_reason: "tool_calls",
    });
  });

  test("what cannot be read as a call is text, with a warning", async () => {
    const answer = await openai.chat.completions.create({ model: "sim", messages: [user("broken")], tools });
    assert.equal(answer.choices[0].message.content, '<tool_call>\n{"name": oops}\n</tool_call>');
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.equal(answer.warnings.length, 1);
  });

  test("OpenAI's client runs tools until the answer", async () => {
    const asked = [];
    const runner = openai.chat.completions.runTools({
      model: "sim",
      messages: [user("weather?")],
      tools: [{ type: "function", function: { name: "look", parameters, parse: JSON.parse, description: "d",
        function: ({ place }) => (asked.push(place), "18") } }],
    });
    assert.equal(await runner.finalContent(), "It is 18 °C.");
    assert.deepEqual(asked, ["Köln"]);
  });

  test("Anthropic's client gets thinking and tool_use blocks, and its results go back", async () => {
    const tools = [{ name: "look", input_schema: parameters }];
    const messages = [user("weather?")];
    const asked = { model: "sim", max_tokens: 500, messages, tools };
    const whole = await anthropic.messages.create(asked);
    const streamed = await anthropic.messages.stream(asked).finalMessage();
    assert.deepEqual(whole.content.map(({ type }) => type), ["thinking", "tool_use"]);
    const without_ids = ({ content }) => content.map(({ id, ...block }) => block);
    assert.deepEqual(without_ids(streamed), without_ids(whole));
    assert.equal(whole.stop_reason, "tool_use");
    const use = whole.content[1];
    assert.deepEqual(use.input, { place: "Köln" });
    messages.push({ role: "assistant", content: whole.content });
    const content = [{ type: "text", text: "18" }];
    messages.push(user([{ type: "tool_result", tool_use_id: use.id, content }]));
    const last = await anthropic.messages.create(asked);
    assert.equal(last.content.at(-1).text, "It is 18 °C.");
    assert.equal(last.stop_reason, "end_turn");
  });

  test("the AI SDK runs tools, streamed and whole", async () => {
    const model = createOpenAICompatible({ name: "weir", baseURL: `${server.url}/v1` })("sim");
    const execute = async ({ place }) => `18 ${place}`;
    const look = tool({ description: "d", inputSchema: jsonSchema(parameters), execute });
    const asked = { model, prompt: "weather?", tools: { look }, stopWhen: stepCountIs(3) };
    const whole = await generateText(asked);
    assert.equal(whole.text, "It is 18 °C.");
    assert.equal(whole.steps[0].reasoningText, "I should look.");
    assert.equal(whole.steps[0].toolCalls[0].input.place, "Köln");
    const streamed = streamText(asked);
    assert.equal(await streamed.text, "It is 18 °C.");
  });

  test("a response has items, streamed and whole, and its calls are answered", async () => {
    const tools = [{ type: "function", name: "look", parameters, strict: false }];
    const asked = { model: "sim", input: "weather?", tools, store: false };
    const whole = await openai.responses.create(asked);
    assert.deepEqual(whole.output.map(({ type }) => type), ["reasoning", "function_call"]);
    const streamed = await openai.responses.stream(asked).finalResponse();
    assert.deepEqual(streamed.output.map(({ type }) => type), ["reasoning", "function_call"]);
    const [reasoning, made] = whole.output;
    assert.equal(made.arguments, '{"place":"Köln"}');
    const result = { type: "function_call_output", call_id: made.call_id, output: "18" };
    const input = [user("weather?"), reasoning, made, result];
    const last = await openai.responses.create({ ...asked, input });
    assert.equal(last.output_text, "It is 18 °C.");
    assert.equal(last.status, "completed");
    // it was not stored
    await assert.rejects(openai.responses.create({ ...asked, previous_response_id: whole.id }), (e) => {
      assert.equal(e.status, 400);
      return e.code === "previous_response_not_found";
    });
  });

  test("tools that cannot be served are refused by name", async () => {
    const refused = (more) => assert.rejects(
      openai.chat.completions.create({ model: "sim", messages: [user("hi")], tools, ...more }),
      (e) => e.status === 400 && Boolean(e.param));
    await refused({ tool_choice: "sometimes" });
    await refused({ tool_choice: { type: "function", function: { name: "nobody" } } });
    await refused({ tools: [...tools, ...tools] });
    await refused({ tools: [{ type: "function", function: { name: "a b" } }] });
  });
});
