// Models on demand in a fleet of real processes: a gateway, and workers that load what nobody has ready. A
// worker that dies while it loads is left for another, and what no worker has room for is refused by name.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { WebSocket } from "ws";

import { Nats, boards, completion, skip, start_weir, until } from "./fleet_kit.js";

const sim = "sim:rate=500,prefill=100000";

describe("models on demand in a fleet", { skip }, () => {
  const nats = new Nats();
  const workers = [];
  let gateway;
  before(async () => {
    await nats.start();
    for (let i = 0; i < 2; i++)
      workers.push(
        await start_weir([
          "worker", "--join", nats.url, "--device", sim, "--on-demand", "--stay-s", "1",
        ]),
      );
    gateway = await start_weir([
      "gateway", "--join", nats.url, "--listen", "127.0.0.1:0", "--load-wait-s", "60",
      ...["sim", "late"].flatMap((name) => ["--model", `${name}=${sim}`]),
    ]);
    await until(async () => (await boards(nats)).length === 2, "both workers say what they have");
  });
  after(async () => {
    for (const each of [gateway, ...workers]) await each?.kill();
    await nats.remove();
  });

  const post = async (path, body) => {
    const answer = await fetch(gateway.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json() };
  };
  const ask = (more) => post("/v1/completions", { prompt: "a fleet", max_tokens: 5, seed: 3, ...more });
  const state_of = async (name) => {
    const { data } = await (await fetch(`${gateway.url}/v1/models`)).json();
    return data.find(({ id }) => id === name)?.state;
  };
  const loading = async (name) =>
    (await boards(nats)).find((b) => b.known.some((m) => m.name === name && m.state === "loading"))?.o;

  test("options of the other role are refused by name", async () => {
    const gateway_words = ["gateway", "--join", nats.url, "--model", `sim=${sim}`, "--listen", "127.0.0.1:0"];
    for (const words of [["--on-demand"], ["--stay-s", "1"], ["--pinned", "sim"]])
      await assert.rejects(start_weir([...gateway_words, ...words]), /options of workers/);
    const worker_words = ["worker", "--join", nats.url, "--device", sim, "--load-wait-s", "5"];
    await assert.rejects(start_weir(worker_words), /option of gateways/);
  });

  test("a model that left comes back for a request, at one worker", async () => {
    for (const { name } of workers) {
      const gone = await post("/v1/admin/models/sim", { action: "unload", on: name });
      assert.equal(gone.status, 200, JSON.stringify(gone.body));
    }
    await until(async () => (await boards(nats)).every(({ models }) => models.length === 0), "it left");
    const no = await ask({ model: "sim", load: "refuse" });
    assert.equal(no.status, 503);
    assert.equal(no.body.error.code, "model_loading");
    const back = await ask({ model: "sim" });
    assert.equal(back.status, 200, JSON.stringify(back.body));
    await until(
      async () => (await boards(nats)).filter(({ models }) => models.length > 0).length === 1,
      "one worker has it",
    );
    const again = await ask({ model: "sim", load: "refuse" });
    assert.equal(again.body.choices[0].text, back.body.choices[0].text);
  });

  test("a socket hears that the model loads; a worker that dies meanwhile is left for another", async () => {
    for (const { name } of workers) {
      const known = await post("/v1/admin/models", { name: "late", source: `${sim},load=2500`, on: name });
      assert.equal(known.status, 201, JSON.stringify(known.body));
      await post("/v1/admin/models/late", { action: "unload", on: name });
    }
    await until(async () => (await state_of("late")) === "absent", "it left");
    const socket = new WebSocket(`${gateway.url.replace("http", "ws")}/v1/stream`, "weir.v1");
    const said = [];
    socket.onmessage = ({ data }) => said.push(JSON.parse(data));
    await new Promise((resolve) => (socket.onopen = resolve));
    const create = { type: "response.create", id: "a", model: "late", input: "x", max_tokens: 5 };
    socket.send(JSON.stringify(create));
    const stream = completion(gateway.url, { model: "late", prompt: "a fleet", max_tokens: 20, seed: 5 });
    let first;
    await until(async () => (first = await loading("late")), "a worker loads it");
    assert.equal(said.find(({ type }) => type === "response.created").loading, true);
    assert.equal(await state_of("late"), "loading");
    const dead = workers.findIndex(({ name }) => name === first);
    await workers[dead].kill();
    const { reason, tokens } = await stream.done;
    assert.equal(reason, "length");
    assert.equal(tokens, 20);
    await until(() => said.some(({ type }) => type === "response.done"), "the socket has its answer");
    assert.ok(said.some(({ type }) => type === "response.loaded"));
    assert.equal((await boards(nats))[0].o, workers[1 - dead].name);
    socket.close();
  });

  test("a load that nobody waits for any more is undone, and the gateway counts", async () => {
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    const value = (name) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(metrics)?.[1]);
    assert.ok(value("weir_fleet_loads_total") >= 3);
    assert.equal(value("weir_fleet_waiting"), 0);
    const gone = await post("/v1/admin/models/late", { action: "unload" });
    assert.equal(gone.status, 200, JSON.stringify(gone.body));
    await until(async () => (await state_of("late")) === "absent", "it left");
    const leaves = new AbortController();
    const asked = fetch(`${gateway.url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "late", prompt: "x", stream: true }),
      signal: leaves.signal,
    });
    await until(async () => loading("late"), "a worker loads it");
    await asked.then(() => leaves.abort());
    await until(async () => !(await loading("late")), "its load is undone");
    const [{ known }] = await boards(nats);
    assert.equal(known.find(({ name }) => name === "late").state, "absent");
  });
});
