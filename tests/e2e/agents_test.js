// Frameworks of agents, against a scripted model: OpenAI's Agents SDK with a hand-over from one agent to
// another, LangChain's agents, and schemas of zod by way of OpenAI's client and the ai package.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI } from "@langchain/openai";
import {
  Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, tool as agent_tool,
} from "@openai/agents";
import { generateObject, generateText, Output, streamObject, tool } from "ai";
import { createAgent, providerStrategy, tool as chain_tool } from "langchain";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

import { start_real } from "./real_server.js";

const skip = process.env.WEIR_BIN ? false : "WEIR_BIN is not set";
const old = Number(process.versions.node.split(".")[0]) < 20 && "LangChain's agents need Node 20";
const here = new URL(".", import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), "weir-agents-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const call = (name, input) => `<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call>`;
const ada = { name: "Ada", age: 36, tags: ["x", "naß ☔"] };
const person = z.object({ name: z.string(), age: z.number().int(), tags: z.array(z.string()) });

// The prompt's last result decides; then the question.
const script = [
  { when: "<tool_response>18 °C in Oslo", say: "<think>\nBoth are known.\n</think>\n\nKöln 18, Oslo 18." },
  { when: "<tool_response>18 °C in Köln", say: call("look", { place: "Oslo" }) },
  { when: '<tool_response>{"assistant":"Meteorologist"}',
    say: `<think>\nI am asked now.\n</think>\n\n${call("look", { place: "Köln" })}` },
  { when: "hand over", say: `<think>\nNot mine.\n</think>\n\n${call("transfer_to_Meteorologist", {})}` },
  { when: "weather", say: `<think>\nI look.\n</think>\n\n${call("look", { place: "Köln" })}` },
  { when: "save", say: call("save", ada) },
  { when: "Ada", say: JSON.stringify(ada) },
  { say: "Hello." },
];

globalThis.AI_SDK_LOG_WARNINGS = false;  // it warns of a schema that goes into the prompt alone
const user = (content) => ({ role: "user", content });
const place = z.object({ place: z.string() });
const look_up = async ({ place }) => `18 °C in ${place}`;

let server, openai, baseURL;
before(async () => {
  if (skip) return;
  const file = join(folder, "script.jsonl");
  writeFileSync(file, script.map((line) => JSON.stringify(line)).join("\n"));
  server = await start_real({
    args: ["--device", `sim:script=${file},rate=2000`, "--chat-template", join(here, "qwen_like.jinja")],
  });
  baseURL = `${server.url}/v1`;
  openai = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
});
after(() => server?.stop());

describe("OpenAI's Agents SDK", { skip }, () => {
  const runner = new Runner({ tracingDisabled: true });
  const models = {
    "/v1/responses": () => new OpenAIResponsesModel(openai, "sim"),
    "/v1/chat/completions": () => new OpenAIChatCompletionsModel(openai, "sim"),
  };

  /** Two agents: the one who is asked, and the one who has the tool. */
  function team(model) {
    const look = agent_tool({ name: "look", description: "weather", parameters: place, execute: look_up });
    const second = new Agent({ name: "Meteorologist", instructions: "You know.", tools: [look], model });
    return new Agent({ name: "Desk", instructions: "You ask others.", handoffs: [second], model });
  }

  const steps = (result) => result.newItems.map(({ type, rawItem, agent, sourceAgent }) =>
    [(agent ?? sourceAgent).name, type, rawItem.name].filter(Boolean).join(" "))
    .filter((step) => !step.includes("reasoning"));
  const expected = [
    "Desk handoff_call_item transfer_to_Meteorologist",
    "Desk handoff_output_item transfer_to_Meteorologist",
    "Meteorologist tool_call_item look",
    "Meteorologist tool_call_output_item look",
    "Meteorologist tool_call_item look",
    "Meteorologist tool_call_output_item look",
    "Meteorologist message_output_item",
  ];

  for (const [route, model] of Object.entries(models)) {
    test(`hands over, over ${route}`, async () => {
      const result = await runner.run(team(model()), "hand over, please");
      assert.equal(result.finalOutput, "Köln 18, Oslo 18.");
      assert.equal(result.lastAgent.name, "Meteorologist");
      assert.deepEqual(steps(result), expected);
      assert.ok(result.state.usage.inputTokens > 0 && result.state.usage.outputTokens > 0);
    });

    test(`hands over in a stream, over ${route}`, async () => {
      const result = await runner.run(team(model()), "hand over, please", { stream: true });
      let said = "";
      for await (const piece of result.toTextStream()) said += piece;
      await result.completed;
      assert.equal(said, "Köln 18, Oslo 18.");
      assert.equal(result.finalOutput, said);
      assert.deepEqual(steps(result), expected);
    });

    test(`a call is demanded, over ${route}`, async () => {
      const look = agent_tool({ name: "look", description: "d", parameters: place, execute: look_up });
      const agent = new Agent({
        name: "Caller", tools: [look], model: model(), toolUseBehavior: "stop_on_first_tool",
        modelSettings: { toolChoice: "required", parallelToolCalls: false },
      });
      assert.equal((await runner.run(agent, "weather?")).finalOutput, "18 °C in Köln");
    });

    test(`an output type is kept, over ${route}`, async () => {
      const agent = new Agent({ name: "Clerk", outputType: person, model: model() });
      const result = await runner.run(agent, "Ada?");
      assert.deepEqual(result.finalOutput, ada);
    });
  }
});

describe("OpenAI's Agents SDK and kept responses", { skip }, () => {
  test("a run goes on with the last response of another", async () => {
    const runner = new Runner({ tracingDisabled: true });
    const agent = new Agent({ name: "Clerk", model: new OpenAIResponsesModel(openai, "sim") });
    const first = await runner.run(agent, "Ada?");
    const more = await runner.run(agent, "again", { previousResponseId: first.lastResponseId });
    assert.equal(more.finalOutput, JSON.stringify(ada));  // a prompt without the first question says hello
    assert.equal((await runner.run(agent, "again")).finalOutput, "Hello.");
  });
});

describe("schemas of zod", { skip }, () => {
  test("OpenAI's client parses chats, responses and calls", async () => {
    const asked = { model: "sim", messages: [user("Ada?")] };
    const response_format = zodResponseFormat(person, "person");
    const chat = await openai.chat.completions.parse({ ...asked, response_format });
    assert.deepEqual(chat.choices[0].message.parsed, ada);
    const stream = openai.chat.completions.stream({ ...asked, response_format });
    assert.deepEqual((await stream.finalChatCompletion()).choices[0].message.parsed, ada);

    const text = { format: zodTextFormat(person, "person") };
    const response = await openai.responses.parse({ model: "sim", input: "Ada?", text });
    assert.deepEqual(response.output_parsed, ada);
    const streamed = openai.responses.stream({ model: "sim", input: "Ada?", text });
    assert.deepEqual((await streamed.finalResponse()).output_parsed, ada);

    const tools = [zodFunction({ name: "save", parameters: person })];
    const called = await openai.chat.completions.parse({ ...asked, messages: [user("save")], tools });
    assert.deepEqual(called.choices[0].message.tool_calls[0].function.parsed_arguments, ada);
  });

  test("the ai package makes objects, whole and streamed", async () => {
    for (const supportsStructuredOutputs of [true, false]) {
      const model = createOpenAICompatible({ name: "weir", baseURL, supportsStructuredOutputs })("sim");
      const whole = await generateObject({ model, schema: person, prompt: "Ada?" });
      assert.deepEqual(whole.object, ada);
      assert.equal(whole.finishReason, "stop");
      const streamed = streamObject({ model, schema: person, prompt: "Ada?" });
      let parts = 0;
      for await (const part of streamed.partialObjectStream) parts += part ? 1 : 0;
      assert.ok(parts > 3, `${parts} parts`);
      assert.deepEqual(await streamed.object, ada);
      const tools = { save: tool({ description: "d", inputSchema: person, strict: true }) };
      const call = await generateText({ model, tools, toolChoice: "required", prompt: "save" });
      assert.deepEqual(call.toolCalls.map(({ toolName, input }) => [toolName, input]), [["save", ada]]);
      const output = Output.object({ schema: person });
      assert.deepEqual((await generateText({ model, output, prompt: "Ada?" })).output, ada);
    }
  });
});

describe("LangChain's agents", { skip: skip || old }, () => {
  const look = chain_tool(look_up, { name: "look", description: "the weather", schema: place });
  const chat = (more) => new ChatOpenAI({
    model: "sim", apiKey: "none", maxRetries: 0, configuration: { baseURL }, ...more,
  });

  for (const useResponsesApi of [false, true]) {
    const route = useResponsesApi ? "/v1/responses" : "/v1/chat/completions";
    const conversation = ["human", "ai", "tool", "ai", "tool", "ai"];
    const weather = { messages: [user("weather?")] };
    const agent_of = () => createAgent({ model: chat({ useResponsesApi }), tools: [look] });

    test(`an agent calls a tool twice, over ${route}`, async () => {
      const { messages } = await agent_of().invoke(weather);
      assert.deepEqual(messages.map((message) => message.type), conversation);
      assert.deepEqual(messages[1].tool_calls.map(({ name, args }) => [name, args]),
        [["look", { place: "Köln" }]]);
      assert.equal(messages.at(-1).text, "Köln 18, Oslo 18.");
      assert.ok(messages.at(-1).usage_metadata.output_tokens > 0);
    });

    test(`an agent calls a tool twice in a stream, over ${route}`, async () => {
      let said = "", last;
      const streamed = await agent_of().stream(weather, { streamMode: ["messages", "values"] });
      for await (const [mode, part] of streamed) {
        if (mode === "values") last = part.messages;
        else if (part[0].type === "ai") said += part[0].text;
      }
      assert.deepEqual(last.map((message) => message.type), conversation);
      assert.equal(said, "Köln 18, Oslo 18.");
    });

    test(`a schema is kept, also as a tool's, over ${route}`, async () => {
      const model = chat({ useResponsesApi });
      const structured = model.withStructuredOutput(person, { name: "person", method: "jsonSchema" });
      assert.deepEqual(await structured.invoke("Ada?"), ada);
      const called = model.withStructuredOutput(person, { name: "save", method: "functionCalling" });
      assert.deepEqual(await called.invoke("save"), ada);
      const agent = createAgent({ model, tools: [], responseFormat: providerStrategy(person) });
      const { structuredResponse } = await agent.invoke({ messages: [user("Ada?")] });
      assert.deepEqual(structuredResponse, ada);
    });
  }
});
