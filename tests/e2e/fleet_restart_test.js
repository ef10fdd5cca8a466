// Both gateways of a fleet are restarted, one after the other, under the answers that they give: a gateway
// that is told to end leaves its jobs to the workers, and its clients go on at the other gateway. Nothing is
// lost, and each client reads what `weir serve` says. 1 round, and 10 where WEIR_TEST_BUDGET is 10.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, describe, test } from "node:test";

import { Nats, boards, skip, start_weir, until } from "./fleet_kit.js";
import { followed, followed_response, lane, post, read_through, resumed_lane } from "./fleet_streams.js";
import { start_real } from "./real_server.js";
import { drawn } from "./seeds.js";

const rounds = Math.max(1, Number(process.env.WEIR_TEST_BUDGET ?? 1));
const patient = ["--write-ms", "600000"];
const device = "sim:rate=40";
const tokens = 700; // 18 s

describe("a rolling restart of gateways", { skip }, () => {
  const nats = new Nats();
  const workers = [];
  const gateways = [];
  let alone;
  const start_gateway = (port, drain_s) => {
    const words = ["--model", `sim=${device}`, "--listen", `127.0.0.1:${port}`, "--drain-s", drain_s];
    return start_weir(["gateway", "--join", nats.url, ...words, ...patient]);
  };

  before(async () => {
    await nats.start();
    for (let i = 0; i < 2; i++)
      workers.push(await start_weir(["worker", "--join", nats.url, "--device", device]));
    for (let i = 0; i < 2; i++) gateways.push(await start_gateway(0, "1"));
    alone = await start_real({ args: ["--device", device, ...patient] });
    await until(async () => (await boards(nats)).length === 2, "both workers say what they have");
  });
  after(async () => {
    for (const one of [...gateways, ...workers]) await one?.kill();
    await alone?.stop();
    await nats.remove();
  });

  /** The gateway is told to end, and another process takes its place at the same address. */
  async function restart(i, drain_s = "1") {
    const old = gateways[i];
    old.signal("SIGTERM");
    assert.equal(await old.ended, 0, old.log());
    gateways[i] = await start_gateway(new URL(old.url).port, drain_s);
    return old.log();
  }

  const wish = { model: "sim", max_tokens: tokens };
  const continued = { ...wish, on_disconnect: "continue" };
  const { max_tokens: max_output_tokens, ...response } = wish;
  /** What clients ask for, and how they go on: how an answer begins behind the part before, and its text. */
  const clients = [
    (seed, input = `lane ${seed}`) => ({
      begin: (url, before) =>
        before ? resumed_lane(url, before) : lane(url, { type: "response.create", ...wish, seed, input }),
      text: (parts) => parts.map((part) => part.text).join(""),
      lost: ({ code, closing }) => assert.deepEqual([code, closing?.reason], [1001, "shutdown"]),
    }),
    (seed, prompt = `events ${seed}`) => ({
      begin: (url, before) =>
        before ? followed(url, before) : post(url, "/v1/completions", { ...continued, seed, prompt, n: 2 }),
      text: (parts) => [0, 1].map((i) => parts.map(({ texts }) => texts[i] ?? "").join("")),
      lost: ({ error }) => assert.equal(error?.code, "handed_over"),
    }),
    (seed, input = `response ${seed}`) => ({
      begin: (url, before) =>
        before
          ? followed_response(url, before)
          : post(url, "/v1/responses", { ...response, max_output_tokens, seed, input, background: true }),
      text: (parts) => parts.map(({ texts }) => texts[0] ?? "").join(""),
      lost: ({ error }) => assert.equal(error?.code, "handed_over"),
    }),
  ];

  test("no answer is lost, and each client reads all of it", async () => {
    for (let round = 0; round < rounds; round++) {
      const all = Array.from({ length: 18 }, (_, i) =>
        clients[i % clients.length](drawn(100 * round + i) % 100000));
      const urls = (i) => [gateways[i % 2].url, gateways[1 - (i % 2)].url];
      const right = all.map(({ begin }) => read_through([alone.url], begin));
      const firsts = [];
      const reading = all.map(({ begin }, i) =>
        read_through(urls(i), (url, before) => {
          const part = begin(url, before);
          if (!before) firsts[i] = part;
          return part;
        }));
      await until(() => firsts.every((s) => s.over || s.seq > 5 || s.texts?.[0]?.length > 20), "all run");
      for (const i of [0, 1]) {
        const log = await restart(i);
        assert.match(log, /(\d+) jobs go on in their workers/);
      }
      const got = await Promise.all(reading);
      for (const [i, { text, lost }] of all.entries()) {
        const { end } = got[i].at(-1);
        if (end.type) assert.equal(end.finish_reason, "length", JSON.stringify(end));
        assert.deepEqual(text(got[i]), text(await right[i]));
        assert.ok(got[i].length >= 2, "its gateway was restarted under it");
        got[i].slice(0, -1).forEach(lost);
      }
    }
  });

  test("weir load follows its streams through it", async () => {
    for (const i of [0, 1]) await restart(i, "0"); // from now on jobs are left at once
    const urls = gateways.map(({ url }) => `${url.replace("http", "ws")}/v1/stream`).join(",");
    const words = ["load", "--url", urls, "--model", "sim", "--streams", "8", "--resume", "--threads", "1"];
    words.push("--max-tokens", "900", "--prompt-tokens", "8", "--duration", "14");
    const conditions = ["gaps==0", "repeats==0", "failed==0", "resumes_expired==0", "cuts>0"];
    for (const so of conditions) words.push("--assert", so);
    const load = spawn(process.env.WEIR_BIN, words, { stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    for (const from of [load.stdout, load.stderr]) from.on("data", (text) => (said += text));
    const ended = new Promise((resolve) => load.once("close", resolve));
    await until(() => /\b2 s +8 streams/.test(said), "eight streams run");
    for (const i of [0, 1]) await restart(i, "0");
    await ended; // not its code: on a busy machine the harness is the bottleneck of its latencies
    for (const so of conditions) assert.ok(said.includes(`holds: ${so}`), said);
  });
});
