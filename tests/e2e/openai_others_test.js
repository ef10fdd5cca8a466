// Clients that speak OpenAI's protocol and know nothing of weir: the ai package with its provider for
// compatible servers, LangChain's, and curl. The first two hold a conversation of several rounds.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { before, describe, test } from "node:test";

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { AIMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import { ChatOpenAI, OpenAI as CompletionOpenAI } from "@langchain/openai";
import { generateText, streamText } from "ai";

import { all_cancelled, post, rill, sim, skip, user } from "./openai_kit.js";

const rounds = ["My name is Zoë.", "What is 12 + 30?", "What day comes after Monday?", "What is my name?"];

/** The conversation as the server itself answers it, message by message. */
async function conversation_with(server) {
  const messages = [];
  for (const text of rounds) {
    messages.push(user(text));
    const answer = await post(server, "/v1/chat/completions", { model: "rill", messages, temperature: 0 });
    const { message } = (await answer.json()).choices[0];
    messages.push({ role: "assistant", content: message.content });
  }
  return messages;
}

describe("openai: other clients", { skip }, () => {
  let server, spoken, baseURL;
  before(async () => {
    server = await rill();
    baseURL = `${server.url}/v1`;
    spoken = await conversation_with(server);
    assert.match(spoken.at(-1).content, /Zoë/, "the last answer needs the first round");
    assert.equal(spoken[3].content, "42");
  });

  test("the ai package: a conversation of four rounds, whole and streamed", async () => {
    const model = createOpenAICompatible({ name: "weir", baseURL, includeUsage: true })("rill");
    const whole = [], streamed = [];
    for (const text of rounds) {
      whole.push(user(text));
      const answer = await generateText({ model, messages: whole, temperature: 0 });
      assert.equal(answer.finishReason, "stop");
      assert.ok(answer.usage.inputTokens > 0 && answer.usage.outputTokens > 0);
      whole.push({ role: "assistant", content: answer.text });

      streamed.push(user(text));
      const stream = streamText({ model, messages: streamed, temperature: 0 });
      let said = "";
      for await (const piece of stream.textStream) said += piece;
      assert.equal(await stream.finishReason, "stop");
      assert.equal((await stream.usage).outputTokens, answer.usage.outputTokens);
      streamed.push({ role: "assistant", content: said });
    }
    assert.deepEqual(whole, spoken);
    assert.deepEqual(streamed, spoken);
  });

  test("the ai package: a refusal is its APICallError with the server's message", async () => {
    const model = createOpenAICompatible({ name: "weir", baseURL })("rill");
    await assert.rejects(generateText({ model, prompt: "hi", temperature: 9, maxRetries: 0 }), (e) => {
      assert.equal(e.name, "AI_APICallError");
      assert.equal(e.statusCode, 400);
      assert.match(e.message, /temperature/);
      return true;
    });
  });

  test("LangChain: a conversation of four rounds, whole and streamed", async () => {
    const model = new ChatOpenAI({
      model: "rill", apiKey: "none", temperature: 0, configuration: { baseURL }, maxRetries: 0,
    });
    const whole = [], streamed = [];
    for (const text of rounds) {
      whole.push(new HumanMessage(text));
      const answer = await model.invoke(whole);
      assert.equal(answer.response_metadata.finish_reason, "stop");
      assert.match(answer.id, /^chatcmpl-/);
      assert.ok(answer.usage_metadata.output_tokens > 0);
      whole.push(answer);

      streamed.push(new HumanMessage(text));
      let said = null;
      for await (const chunk of await model.stream(streamed)) said = said?.concat(chunk) ?? chunk;
      assert.equal(said.usage_metadata.output_tokens, answer.usage_metadata.output_tokens);
      streamed.push(new AIMessage(said.content));
    }
    const texts = (messages) => messages.map((message) => message.content);
    assert.deepEqual(texts(whole), texts(spoken));
    assert.deepEqual(texts(streamed), texts(spoken));
  });

  test("LangChain: a system message, a completion, and a batch of prompts", async () => {
    const configuration = { baseURL };
    const chat = new ChatOpenAI({ model: "rill", apiKey: "none", temperature: 0, configuration });
    const system = new SystemMessage("Answer in capitals.");
    const day = await chat.invoke([system, new HumanMessage("What day comes after Monday?")]);
    assert.equal(day.content, "TUESDAY");
    const plain = new CompletionOpenAI({
      model: "rill", apiKey: "none", temperature: 0, maxTokens: 8, configuration,
    });
    const prompts = ["Once upon", "The river"];
    const { generations } = await plain.generate(prompts);
    const answer = await post(server, "/v1/completions", { prompt: prompts, temperature: 0, max_tokens: 8 });
    assert.deepEqual(generations.map(([first]) => first.text),
      (await answer.json()).choices.map((choice) => choice.text));
  });

  const curl = promisify(execFile);
  const body = JSON.stringify({ messages: [user("What is 12 + 30?")], temperature: 0 });
  const head = ["-sS", "--fail-with-body", "-H", "Content-Type: application/json"];

  test("curl: a whole answer and a stream", async () => {
    const { stdout } = await curl("curl", [...head, `${baseURL}/chat/completions`, "-d", body]);
    assert.equal(JSON.parse(stdout).choices[0].message.content, "42");
    const streamed = body.replace("{", '{"stream":true,');
    const to = [`${baseURL}/chat/completions`, "-d", streamed];
    const { stdout: events } = await curl("curl", [...head, "-N", ...to]);
    const lines = events.split("\n").filter((line) => line.startsWith("data: "));
    const data = lines.map((line) => line.slice(6));
    assert.equal(data.pop(), "[DONE]");
    const said = data.map((text) => JSON.parse(text).choices[0].delta.content ?? "");
    assert.equal(said.join(""), "42");
  });

  test("curl: a refusal is a status and a message", async () => {
    const wrong = body.replace("0}", '9}');
    await assert.rejects(curl("curl", [...head, `${baseURL}/chat/completions`, "-d", wrong]), (e) => {
      assert.equal(e.code, 22);
      assert.match(JSON.parse(e.stdout).error.message, /temperature must be in/);
      return true;
    });
  });

  test("curl: when it ends, its job ends", async () => {
    const slow = await sim("rate=20,prefill=1000000");
    const child = execFile("curl", [...head, "-N", `${slow.url}/v1/completions`, "-d",
      '{"prompt":"x","max_tokens":100000,"stream":true}']);
    await new Promise((resolve) => child.stdout.once("data", resolve));
    child.kill();
    await all_cancelled(slow);
  });
});
