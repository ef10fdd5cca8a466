// The model in the box means something: greedy answers of `weir generate` and of the server, which takes it
// by default, are right, end by themselves and keep to the system prompt. Prompts and answers are fixed; none
// of them is at a knife's edge.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { after, before, describe, test } from "node:test";

import { start_real } from "./real_server.js";

const binary = process.env.WEIR_BIN;
const skip = binary ? false : "WEIR_BIN is not set";

const user = (content) => ({ role: "user", content });
const assistant = (content) => ({ role: "assistant", content });
const system = (content) => ({ role: "system", content });

const asked = [
  [[user("What is 12 + 30?")], "42"],
  [[user("What is 403 - 57?")], "346"],
  [[user("Sort these numbers: 7, 3, 9")], "3, 7, 9"],
  [[user("Spell 'river' backwards.")], "r e v i r"],
  [[user("What day is 10 days after Friday?")], "Monday"],
  [[system("Answer in capitals."), user("What day comes after Monday?")], "TUESDAY"],
  [[user("My name is Zoë."), assistant("Hello, Zoë!"), user("What is my name?")], "Your name is Zoë."],
  [[user("Daisy is 54 years old. Omar is 55. He lives in Oslo.\n\nIs Daisy 55 years old?")], "No"],
  [[user("Daisy is 54 years old. Omar is 55. He lives in Oslo.\n\nDoes Omar live in Oslo?")], "Yes"],
  [[user("What is the capital of France?")], "I don't know."],
];
const form = "Extract name, age (integer) and city as JSON: Ada Berg is 34 years old and lives in Oslo.";

describe("rill", { skip }, () => {
  let server;
  before(async () => {
    server = await start_real({ args: [] });
  });
  after(() => server?.stop());

  async function chat(messages, rest = {}) {
    const answer = await fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "rill", messages, temperature: 0, max_tokens: 800, ...rest }),
    });
    const body = await answer.json();
    assert.equal(answer.status, 200, JSON.stringify(body));
    assert.equal(body.choices[0].finish_reason, "stop", "it stops by itself");
    return body.choices[0].message.content;
  }

  for (const [messages, right] of asked)
    test(`${messages.at(-1).content} ${right}`, async () => assert.equal(await chat(messages), right));

  test("a conversation of 30 turns: what was computed of it is cached, turn after turn", async () => {
    const messages = [];
    let before = { cached: -1, prompt: 0 };
    for (let turn = 0; turn < 30; turn++) {
      messages.push(user(`What is ${turn} + 5?`));
      const answer = await fetch(`${server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ messages, temperature: 0, max_tokens: 16 }),
      });
      const { choices, usage } = await answer.json();
      const { prompt_tokens: prompt, prompt_tokens_details: { cached_tokens: cached } } = usage;
      assert.ok(cached >= before.cached, `turn ${turn}: ${cached} cached tokens after ${before.cached}`);
      assert.ok(cached > before.prompt - 64, `turn ${turn}: ${cached} of ${before.prompt} tokens are cached`);
      before = { cached, prompt };
      messages.push(choices[0].message);
    }
    assert.ok(before.cached > 400, `${before.cached} cached tokens in the last turn`);
  });

  test("JSON with the keys and types that were asked for", async () => {
    assert.deepEqual(JSON.parse(await chat([user(form)])), { name: "Ada Berg", age: 34, city: "Oslo" });
  });

  test("ten birds, none twice", async () => {
    const birds = (await chat([user("List ten birds.")])).split("\n");
    assert.equal(birds.length, 10);
    birds.forEach((line, i) => assert.ok(line.startsWith(`${i + 1}. `), line));
    assert.equal(new Set(birds.map((line) => line.split(". ")[1])).size, 10);
  });

  test("a story that names its hero, and ends", async () => {
    const wish = user("Tell me a funny story about a fox named Ada.");
    const story = await chat([wish], { temperature: 0.8, seed: 1 });
    assert.match(story, /\bAda\b/);
    assert.match(story, /\bfox\b/);
    assert.ok(story.split(/\s+/).length > 100, story);
  });

  test("a batch of chats on the command line, answered in order by the default model", async () => {
    const folder = mkdtempSync(join(tmpdir(), "weir-rill-"));
    try {
      const file = join(folder, "questions.jsonl");
      const lines = asked.map(([input], i) => JSON.stringify({ id: `${i}`, input, temperature: 0 }));
      writeFileSync(file, lines.join("\n") + "\n");
      const { stdout } = await promisify(execFile)(binary, ["generate", "--batch", file]);
      const answers = stdout.trim().split("\n").map((line) => JSON.parse(line));
      assert.deepEqual(
        answers.map((a) => [a.id, a.text, a.finish_reason]),
        asked.map(([, right], i) => [`${i}`, right, "stop"]),
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
