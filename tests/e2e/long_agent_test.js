// An agent's conversation of 40 turns and 60,000 tokens, with templates of models that reason. The prompt of
// a turn is the one before, its answer and a result, and only what is new in it is computed. As Claude Code
// sends it to /v1/messages: with a billing header that changes with every request, and system messages late
// in the conversation. As other agents send it to /v1/chat/completions: with the reasoning they were given.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

import { start_real } from "./real_server.js";

const here = new URL(".", import.meta.url).pathname;
const data = join(process.env.TEST_DATA_DIR ?? resolve(here, "../../../shared/data"), "templates");
const folder = mkdtempSync(join(tmpdir(), "weir-long-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const page = 64;  // tokens, which are bytes here: docs/memory.md
const turns = 40;

// `end`: what the template writes behind an answer. `drops`: it leaves out the reasoning before the last
// question, so the prompt of a new question agrees with the last one up to the question before.
const templates = [
  { name: "of this folder", path: join(here, "qwen_like.jinja"), end: "<|im_end|>\n", drops: false },
  { name: "Qwen3", path: join(data, "Qwen-Qwen3-0.6B.jinja"), end: "<|im_end|>\n", drops: true },
  { name: "Qwen3.5", path: join(data, "Qwen3.5-4B.jinja"), end: "<|im_end|>\n", drops: true },
  { name: "GLM-4.6", path: join(data, "GLM-4.6.jinja"), end: "", drops: true },
  { name: "Nemotron 3", path: join(data, "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.jinja"), end: "<|im_end|>\n",
    drops: true },
];

const words = (text, bytes) => text.repeat(Math.ceil(bytes / text.length)).slice(0, bytes).trim();
const system = words("You are an agent that works in a repository, with care. ", 12_000);
const parameters = { type: "object", properties: { command: { type: "string" } }, required: ["command"] };
const described = ["bash", "read", "search"].map((name) =>
  ({ name, description: words(`The tool ${name} runs a command and returns what it says. `, 3_000) }));
const chat_tools = described.map((tool) => ({ type: "function", function: { ...tool, parameters } }));

// What happens before turn i: a question, or the result of turn i - 1. Its first word is the turn's own.
const asks = (i) => i % 14 === 0;
const event = (i) => asks(i) ? `EVENT-${i}; Why is part ${i} of the build slow?` :
  `EVENT-${i};\n${words(`${i} ms of this part & that one\n`, 900)}`;
// Turn i: the model thinks, says something or nothing, and calls a tool where no question comes next.
const reasoning = (i) => words(`Turn ${i}: the last result does not explain it, so I look further. `, 300);
const said = (i) => i % 3 && !ends(i) ? "" : `Part ${i}, naß ☔.`;
const ends = (i) => asks(i + 1) || i === turns - 1;
const command = (i) => `sed -n ${i}p "build log" | grep '<took>' > /tmp/${i}`;

const user = (content) => ({ role: "user", content });
const result = (id, i) => ({ role: "tool", tool_call_id: id, content: event(i) });

/** What the template writes of each answer behind the prompt that asks for it: so the model says it, too. */
function script_of({ path, end }) {
  const messages = [{ role: "system", content: system }];
  const line = (more) =>
    JSON.stringify({ messages, tools: chat_tools, now: "2026-01-01T12:00:00", ...more });
  const lines = [];
  for (let i = 0, id; i < turns; i++) {
    messages.push(asks(i) ? user(event(i)) : result(id, i));
    lines.push(line());
    const answer = { role: "assistant", content: said(i), reasoning_content: reasoning(i) };
    id = `call_${i}_0000000000`;
    const called = { name: "bash", arguments: JSON.stringify({ command: command(i) }) };
    if (!ends(i)) answer.tool_calls = [{ id, type: "function", function: called }];
    messages.push(answer);
    lines.push(line({ add_generation_prompt: false }));
  }
  const batch = join(folder, "batch.jsonl");
  writeFileSync(batch, lines.join("\n"));
  const rendered = execFileSync(process.env.WEIR_BIN, ["render", "--template", path, "--batch", batch],
    { encoding: "utf8", maxBuffer: 1 << 28 });
  const texts = rendered.trim().split("\n").map((written) => JSON.parse(written).text);
  const script = [];
  for (let i = 0; i < turns; i++) {
    const [prompt, whole] = texts.slice(2 * i, 2 * i + 2);
    assert.ok(whole.startsWith(prompt) && whole.endsWith(end), whole.slice(-600));
    script.push({ when: `EVENT-${i};`, say: whole.slice(prompt.length, whole.length - end.length) });
  }
  return script.reverse();  // what happened last decides
}

/** Judges the usage of turn after turn. */
function meter({ drops }) {
  let known = 0, question = 0;  // tokens: of the last turn, of the prompt of the last question
  return (i, { prompt, cached, answer }) => {
    const expected = drops && asks(i) ? question : known;
    assert.ok(cached >= expected - page, `turn ${i}: ${cached} of ${prompt} cached, ${expected} known`);
    known = prompt + answer;
    if (asks(i)) question = prompt;
    if (i === turns - 1) assert.ok(known > 60_000, `${known} tokens`);
  };
}

async function over_chat(server, judge) {
  const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
  const messages = [{ role: "system", content: system }];
  for (let i = 0, id; i < turns; i++) {
    messages.push(asks(i) ? user(event(i)) : result(id, i));
    const { choices: [{ message }], usage } = await openai.chat.completions.create({
      model: "sim", messages, tools: chat_tools, max_tokens: 4_000,
    });
    judge(i, { prompt: usage.prompt_tokens, cached: usage.prompt_tokens_details.cached_tokens,
      answer: usage.completion_tokens });
    assert.equal(message.reasoning_content, reasoning(i));
    assert.equal(message.content ?? "", said(i));
    messages.push(message);
    if (ends(i)) continue;
    id = message.tool_calls[0].id;
    assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { command: command(i) });
  }
}

async function over_messages(server, judge) {
  const anthropic = new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0 });
  const tools = described.map((tool) => ({ ...tool, input_schema: parameters }));
  const messages = [];
  for (let i = 0, id; i < turns; i++) {
    messages.push(user([asks(i) ? { type: "text", text: event(i) } :
      { type: "tool_result", tool_use_id: id, content: [{ type: "text", text: event(i) }] }]));
    if (i % 7 === 0 || i % 11 === 8) messages.push({ role: "system", content: `${i} tasks are open.` });
    const cch = (0xabcde + 7919 * i).toString(16).slice(-5);
    const billing = `x-anthropic-billing-header: cc_version=2.1.232; cc_entrypoint=cli; cch=${cch};`;
    const { content, usage } = await anthropic.messages.stream({
      model: "sim", messages, tools, max_tokens: 4_000, thinking: { type: "adaptive" },
      system: [billing, system].map((text) => ({ type: "text", text })),
    }).finalMessage();
    const cached = usage.cache_read_input_tokens;
    judge(i, { prompt: usage.input_tokens + cached, cached, answer: usage.output_tokens });
    assert.equal(content[0].thinking, reasoning(i));
    assert.equal(content.find(({ type }) => type === "text")?.text ?? "", said(i));
    messages.push({ role: "assistant", content });
    if (ends(i)) continue;
    assert.deepEqual(content.at(-1).input, { command: command(i) });
    id = content.at(-1).id;
  }
}

for (const template of templates) {
  const skip = !process.env.WEIR_BIN ? "WEIR_BIN is not set" :
    !existsSync(template.path) ? "its template is not in the data folder" : false;

  describe(`a long conversation, template ${template.name}`, { skip }, () => {
    let server;
    before(async () => {
      const file = join(folder, "script.jsonl");
      writeFileSync(file, script_of(template).map((line) => JSON.stringify(line)).join("\n"));
      server = await start_real({
        args: ["--device", `sim:script=${file},rate=0`, "--chat-template", template.path],
      });
    });
    after(() => server?.stop());

    test("over /v1/chat/completions, with the reasoning sent back", () => over_chat(server, meter(template)));
    test("over /v1/messages, as Claude Code sends it", () => over_messages(server, meter(template)));
  });
}
