// A gateway that is started without any model serves what its workers have: it gets tokenizer, template and
// configuration from one of them, and what its clients read is what `weir serve` says, token for token.
// Workers that compute alike say the same class, and a strict gateway lets a job move between them.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { Nats, boards, completion, fleet, skip, start_weir, until } from "./fleet_kit.js";
import { start_real } from "./real_server.js";
import { drawn } from "./seeds.js";

const rill = new URL("../../models/rill", import.meta.url).pathname;
const engine = ["--device", "cpu", "--threads", "1", "--model", `rill=${rill}`];
const patient = ["--write-ms", "600000"]; // this process reads as slowly as a busy machine lets it

describe("a gateway without a model", { skip }, () => {
  const nats = new Nats();
  const workers = [];
  let gateway;
  let alone;
  const join = () => ["--join", nats.url];
  const start_worker = () => start_weir(["worker", ...join(), ...engine, "--drain-s", "1"]);
  const models = async () => (await (await fetch(`${gateway.url}/v1/models`)).json()).data;
  const is_ready = async () => (await models()).some(({ id, state }) => id === "rill" && state === "ready");
  const bodies_of = (n) =>
    Array.from({ length: 4 }, (_, i) => ({
      model: "rill",
      prompt: `Once upon a time, in year ${i},`,
      seed: drawn(100 * n + i) % 100000,
      temperature: 0.8,
      max_tokens: 400,
      ignore_eos: true,
    }));
  const right_ones = (bodies) => Promise.all(bodies.map((b) => completion(alone.url, b).done));

  before(async () => {
    await nats.start();
    const listen = ["--listen", "127.0.0.1:0", ...patient];
    gateway = await start_weir(["gateway", ...join(), "--strict-class", ...listen]);
    alone = await start_real({ args: [...engine, ...patient] });
  });
  after(async () => {
    for (const one of [gateway, ...workers]) await one?.kill();
    await alone?.stop();
    await nats.remove();
  });

  test("it serves its page, and no model before a worker has one", async () => {
    const page = await fetch(gateway.url);
    assert.equal(page.status, 200);
    assert.match(await page.text(), /<html/i);
    assert.deepEqual(await models(), []);
    const none = await fetch(`${gateway.url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "rill", prompt: "x" }),
    });
    assert.equal(none.status, 404);
  });

  test("a worker comes, and the gateway answers in the words of weir serve", async () => {
    workers.push(await start_worker());
    await until(is_ready, "the gateway has the model");
    assert.match(gateway.log(), /rill: its tokenizer, template and configuration came from a worker/);
    const bodies = bodies_of(1);
    const said = await Promise.all(bodies.map((b) => completion(gateway.url, b).done));
    assert.deepEqual(said, await right_ones(bodies));
    const talk = (url) =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          model: "rill",
          seed: 5,
          max_tokens: 40,
          messages: [{ role: "user", content: "Hello" }],
        }),
      }).then(async (r) => (await r.json()).choices[0].message.content);
    assert.equal(await talk(gateway.url), await talk(alone.url)); // the template came, too
  });

  test("workers that are alike have one class, and a strict gateway moves jobs between them", async () => {
    workers.push(await start_worker());
    await until(async () => (await boards(nats)).length === 2, "both workers say what they have");
    const all = (await boards(nats)).map(({ models: [m] }) => m);
    for (const m of all) {
      assert.match(m.class, /^[0-9a-f]{16}$/);
      assert.match(m.files, /^[0-9a-f]{64}$/);
    }
    assert.equal(all[0].class, all[1].class);
    assert.equal(all[0].files, all[1].files);
    const { text } = await fleet(nats, []);
    assert.ok(text.includes(all[0].class), text);
    assert.ok(!text.includes("different files"), text);
    const bodies = bodies_of(2);
    const running = bodies.map((b) => completion(gateway.url, b));
    await until(() => running.every(({ text: t }) => t.length > 50), "all streams run");
    await workers[0].kill();
    assert.deepEqual(await Promise.all(running.map(({ done }) => done)), await right_ones(bodies));
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    assert.match(metrics, /^weir_fleet_moves_between_classes_total 0$/m);
    assert.match(metrics, /^weir_fleet_models_fetched_total 1$/m);
    assert.match(metrics, /^weir_fleet_fetch_failures_total 0$/m);
  });
});
