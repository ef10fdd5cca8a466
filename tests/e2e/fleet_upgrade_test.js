// The upgrade of two boxes: both workers of a fleet are replaced, one after the other, under 64 streams whose
// answers are longer than any grace. No stream is cut, each says what `weir serve` says, and each box is free
// within ten seconds of its order. 1 round, with 16 streams of rill, and 10 where WEIR_TEST_BUDGET is 10, as
// in a long run.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path_of } from "node:path";
import { after, before, describe, test } from "node:test";

import { Nats, boards, skip, start_weir, until } from "./fleet_kit.js";
import { lane, post, whole_choices } from "./fleet_streams.js";
import { start_real } from "./real_server.js";
import { drawn } from "./seeds.js";

const budget = Number(process.env.WEIR_TEST_BUDGET ?? 1);
const rounds = Math.max(1, budget);
const box_is_free_ms = 10_000;
const patient = ["--write-ms", "600000"]; // this process reads as slowly as a busy machine lets it
const folder = mkdtempSync(path_of(tmpdir(), "weir-upgrade-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const user = (content) => [{ role: "user", content }];
const parameters = { type: "object", properties: { place: { type: "string" } }, required: ["place"] };
const tools = [{ type: "function", function: { name: "look", parameters } }];
const list_of = (items, minItems) => ({
  type: "object",
  properties: { list: { type: "array", items, minItems } },
  required: ["list"],
  additionalProperties: false,
});
const answers_to = (schema) => ({
  response_format: { type: "json_schema", json_schema: { name: "it", strict: true, schema } },
});
const chat = "/v1/chat/completions";

// A scripted model: a token is a byte, and answers come at 40 bytes a second.
const length = 1200;
const thought = "I look at it from all sides, and then from all other sides. ".repeat(40);
const story = (name) => `A story of ${name}: ${"and then the river went on, as rivers do, ".repeat(40)}`;
const call = JSON.stringify({ name: "look", arguments: { place: "Köln on the river, ".repeat(50) } });
const script = [
  { when: "think", say: `<think>\n${thought}` },
  { when: "look", say: `<think>\nI should look.\n</think>\n\n<tool_call>\n${call}\n</tool_call>` },
  { when: "list", say: `<think>\nI write a list.\n</think>\n\n${story("lists")}` },
  { when: "rivers", say: story("rivers") },
  { say: story("everybody") },
];

/** The devices of the two kinds of fleets, and what the i-th stream asks for: a path and a body. */
const kinds = {
  sim: {
    prepare: () => {
      const file = path_of(folder, "script.jsonl");
      writeFileSync(file, script.map((line) => JSON.stringify(line)).join("\n"));
      const template = ["--chat-template", new URL("qwen_like.jinja", import.meta.url).pathname];
      const device = `sim:script=${file},rate=40,burst=4`;
      return { engine: ["--device", device, ...template], model: [`sim=${device}`, ...template] };
    },
    streams: 64,
    asked: [
      () => ["/v1/completions", { model: "sim", prompt: "rivers", n: 2, max_tokens: length }],
      () => [chat, { messages: user("think"), max_reasoning_tokens: 700, max_tokens: length }],
      () => [chat, { messages: user("look"), tools, max_tokens: 4 * length }],
      () => [chat, { messages: user("list"), ...answers_to(list_of({ type: "string", maxLength: 20 }, 50)) }],
      () => ["lane", { input: "rivers", max_tokens: length }],
    ],
    check: ([two, thoughts, calls, list, lane]) => {
      assert.deepEqual(two.map(({ text }) => text.length), [length, length]);
      assert.ok(thoughts[0].reasoning.length > 600 && thoughts[0].text.length > 400);
      assert.equal(JSON.parse(calls[0].calls[0].arguments).place.length, 950);
      assert.match(list[0].text, /^\{\s*"list"\s*:\s*\[(\s*"[^"]{0,20}"\s*,?){10}/);
      assert.equal(lane[0].length, length);
    },
  },
  rill: {
    prepare: () => {
      const rill = new URL("../../models/rill", import.meta.url).pathname;
      return {
        engine: ["--device", "cpu", "--threads", "1", "--model", `rill=${rill}`],
        model: [`rill=${rill}`],
      };
    },
    streams: budget > 1 ? 64 : 16, // it computes, and a busy machine computes slowly
    asked: [
      (seed, tokens) => ["/v1/completions", { prompt: `In year ${seed}`, n: 2, ...long(seed, tokens) }],
      (seed, tokens) => [chat, { messages: user("Tell me of it."), ...long(seed, tokens) }],
      (seed, tokens) => [chat, { messages: user("List it."), ...listed(seed, tokens) }],
      (seed, tokens) => ["lane", { input: `Once upon a time, in year ${seed},`, ...long(seed, tokens) }],
    ],
    tokens: 900, // of an answer, at first: how fast this model answers is the machine's
    check: (expected) => {
      for (let i = 0; i < expected.length; i++)
        if (i % 4 === 2) assert.match(expected[i][0].text, /^\s*\{\s*"list"\s*:\s*\[\s*(\d{3}\s*,\s*){20}/);
    },
  },
};
const long = (seed, tokens) => ({ seed, temperature: 0.8, max_tokens: tokens, ignore_eos: true });
const listed = (seed, tokens) => ({
  seed,
  ...answers_to(list_of({ type: "integer", minimum: 100, maximum: 999 }, tokens / 5)),
  max_tokens: 1800, // of the model's 2048
});

function begin(url, [path, body], model) {
  if (path !== "lane") return post(url, path, { max_tokens: 1500, ...body, model });
  return lane(url, { type: "response.create", ...body, model });
}
async function ended(stream) {
  const last = await stream.done;
  if (last === stream) return whole_choices(stream);
  assert.equal(last.type, "response.done", JSON.stringify(last));
  return [stream.text, last.finish_reason, last.usage.output_tokens];
}
const began = ({ all, text }) => (text ? text.length : all?.length ?? 0) > 3;

for (const [kind, { prepare, streams, asked, tokens, check }] of Object.entries(kinds))
  describe(`two boxes of ${kind}`, { skip }, () => {
    const nats = new Nats();
    const all = ["--max-batch", "160"];
    let workers, gateway, alone, engine;
    const start_worker = () =>
      start_weir(["worker", "--join", nats.url, ...engine, ...all, "--drain-s", "1"]);

    before(async () => {
      const { engine: own, model } = prepare();
      engine = own;
      await nats.start();
      workers = [await start_worker(), await start_worker()];
      const listen = ["--listen", "127.0.0.1:0", ...patient];
      gateway = await start_weir(["gateway", "--join", nats.url, "--model", ...model, ...listen]);
      alone = await start_real({ args: [...engine, ...all, ...patient] });
      await they_are_known();
    });
    after(async () => {
      for (const one of [gateway, ...(workers ?? [])]) await one?.kill();
      await alone?.stop();
      await nats.remove();
    });

    const they_are_known = () =>
      until(async () => {
        const names = (await boards(nats)).map(({ o }) => o);
        return workers.every(({ name }) => names.includes(name));
      }, "both workers say what they have");

    /** A new process takes the place of one that is told to end. The time until the box is free, in ms. */
    async function replace(i) {
      const old = workers[i];
      workers[i] = await start_worker();
      const order = Date.now();
      old.signal("SIGTERM");
      assert.equal(await old.ended, 0, old.log());
      return Date.now() - order;
    }

    /** Begins all streams and replaces both workers under them. False: some were over before that. */
    async function outlived(round, tokens) {
      const wishes = Array.from({ length: streams }, (_, i) =>
        asked[i % asked.length](drawn(1000 * round + i) % 100000, tokens));
      const right = wishes.map((wish) => begin(alone.url, wish, kind));
      const running = wishes.map((wish) => begin(gateway.url, wish, kind));
      await until(() => running.every((s) => began(s) || s.over), "all streams run");
      let still_run = true;
      for (const i of [0, 1]) {
        const ms = await replace(i);
        assert.ok(ms <= box_is_free_ms, `a box was free after ${ms} ms`);
        still_run &&= running.every(({ over }) => !over);
      }
      const got = await Promise.all(running.map(ended));
      const expected = await Promise.all(right.map(ended));
      check(expected);
      assert.deepEqual(got, expected);
      await they_are_known();
      return still_run;
    }

    test("both are replaced, one after the other, and no stream is cut", async () => {
      let of = tokens;
      for (let round = 0; round < rounds; round++)
        while (!(await outlived(round, of))) {
          assert.ok(tokens && of < 1800, "the answers are too short");
          of = 1800;
        }
    });
  });
