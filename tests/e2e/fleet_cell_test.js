// What a gateway says of its whole cell, with real processes over a real nats-server: two gateways and two
// workers. Each gateway lists, finds and ends the jobs of the other, for the key whose they are and for an
// admin.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path_of } from "node:path";
import { after, before, describe, test } from "node:test";
import { WebSocket } from "ws";

import { Nats, boards, fleet, skip, start_weir, until } from "./fleet_kit.js";
import { events_of } from "./event_source.js";

const device = "sim:rate=50";
const [admin, one, another] = ["admin", "one", "another"].map((of) => `weir-${of}-0123456789abcdef`);

describe("the jobs of a cell", { skip }, () => {
  const nats = new Nats();
  const folder = mkdtempSync(path_of(tmpdir(), "weir-cell-"));
  const workers = [];
  const gateways = [];
  before(async () => {
    await nats.start();
    const keys = path_of(folder, "keys");
    writeFileSync(keys, `${admin} admin\n${one}\n${another}\n`, { mode: 0o600 });
    for (let i = 0; i < 2; i++)
      workers.push(await start_weir(["worker", "--join", nats.url, "--device", device]));
    for (let i = 0; i < 2; i++)
      gateways.push(
        await start_weir([
          "gateway", "--join", nats.url, "--model", `sim=${device}`, "--listen", "127.0.0.1:0",
          "--api-key-file", keys, "--write-ms", "600000",
        ]),
      );
    await until(async () => (await boards(nats)).length === 2, "both workers say what they have");
  });
  after(async () => {
    for (const each of [...gateways, ...workers]) await each?.kill();
    await nats.remove();
    rmSync(folder, { recursive: true });
  });

  const asked = async (at, key, path, method = "GET") => {
    const answer = await fetch(at.url + path, { method, headers: { authorization: `Bearer ${key}` } });
    return { status: answer.status, body: await answer.json() };
  };
  const jobs_at = async (at, key) => (await asked(at, key, "/v1/jobs")).body.jobs;

  /** A streamed completion: its id once that is known, and how it ends. */
  function begin(at, key, body) {
    const stream = { id: undefined };
    stream.done = (async () => {
      const answer = await fetch(`${at.url}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
        body: JSON.stringify({ model: "sim", prompt: "a cell", stream: true, ...body }),
      });
      assert.equal(answer.status, 200);
      let reason;
      for await (const { data } of events_of(answer.body)) {
        if (data === undefined || data === "[DONE]") continue;
        const said = JSON.parse(data);
        stream.id ??= said.id?.replace(/^cmpl-/, "");
        reason = said.choices?.[0]?.finish_reason ?? said.error?.code ?? reason;
      }
      return reason;
    })();
    stream.done.catch(() => {});
    return stream;
  }
  const all_begun = (streams) => until(() => streams.every(({ id }) => id), "all have begun");

  test("each gateway has the jobs of both, for whom they belong to", async () => {
    const streams = [];
    for (let i = 0; i < 4; i++)
      streams.push(begin(gateways[i % 2], i < 2 ? one : another, { seed: i, max_tokens: 100000 }));
    await all_begun(streams);
    const ids = streams.map(({ id }) => id);
    for (const at of gateways) {
      const of = async (key) => (await jobs_at(at, key)).map(({ id }) => id).sort();
      await until(async () => (await of(admin)).length === 4, "all are with a worker");
      assert.deepEqual(await of(admin), [...ids].sort());
      assert.deepEqual(await of(one), ids.slice(0, 2).sort());
      assert.deepEqual(await of(another), ids.slice(2).sort());
      for (const id of ids) {
        const { status, body } = await asked(at, admin, `/v1/jobs/${id}`);
        assert.equal(status, 200);
        assert.equal(body.model, "sim");
      }
      assert.equal((await asked(at, one, `/v1/jobs/${ids[2]}`)).status, 404);
      assert.equal((await asked(at, one, `/v1/jobs/${ids[2]}`, "DELETE")).status, 404);
      const stats = (await asked(at, one, "/v1/stats")).body;
      assert.deepEqual(stats.own_jobs.map(({ id }) => id).sort(), ids.slice(0, 2).sort());
    }
    for (const [i, { id, done }] of streams.entries()) {
      const other = gateways[(i + 1) % 2];
      const key = i % 2 ? admin : i < 2 ? one : another;
      const { status, body } = await asked(other, key, `/v1/jobs/${id}`, "DELETE");
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(body.finish_reason, "cancel");
      assert.equal(await done, "cancel");
    }
    await until(async () => (await boards(nats)).every((b) => b.models.every(({ jobs }) => jobs === 0)),
      "no worker has a job");
  });

  test("response.cancel ends a response of the other gateway by its id", async () => {
    const stream = begin(gateways[0], one, { seed: 9, max_tokens: 100000 });
    await all_begun([stream]);
    const socket = new WebSocket(`${gateways[1].url.replace("http", "ws")}/v1/stream`, "weir.v1");
    const said = [];
    socket.onmessage = ({ data }) => said.push(JSON.parse(data));
    await new Promise((resolve) => (socket.onopen = resolve));
    socket.send(JSON.stringify({ type: "session.auth", token: one }));
    await until(() => said.some(({ type }) => type === "session.created"), "the session is there");
    socket.send(JSON.stringify({ type: "response.cancel", response_id: "0".repeat(32) }));
    await until(() => said.some(({ code }) => code === "not_found"), "it is unknown");
    socket.send(JSON.stringify({ type: "response.cancel", response_id: stream.id }));
    assert.equal(await stream.done, "cancel");
    assert.equal(said.filter(({ type }) => type === "error").length, 1, JSON.stringify(said));
    socket.close();
  });

  test("a worker that was killed is counted until it counts as dead", async () => {
    const stream = begin(gateways[0], one, { seed: 10, max_tokens: 100000 });
    await all_begun([stream]);
    workers[0].signal("SIGSTOP");
    const { body } = await asked(gateways[1], admin, "/v1/jobs");
    assert.equal(body.silent_workers, 1);
    assert.equal((await asked(gateways[1], admin, `/v1/jobs/${"0".repeat(32)}`)).status, 503);
    workers[0].signal("SIGCONT");
    await until(async () => !(await asked(gateways[1], admin, "/v1/jobs")).body.silent_workers, "it answers");
    assert.equal((await asked(gateways[1], admin, `/v1/jobs/${"0".repeat(32)}`)).status, 404);
    await until(
      async () => (await asked(gateways[1], one, `/v1/jobs/${stream.id}`, "DELETE")).status === 200,
      "it is found",
    );
    assert.equal(await stream.done, "cancel");
  });

  test("orders for models go to a worker, at a gateway and over the bus", async () => {
    const order = async (key, path, body, method = "POST") => {
      const answer = await fetch(gateways[0].url + path, {
        method,
        headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
        body: body && JSON.stringify(body),
      });
      return { status: answer.status, on: answer.headers.get("x-weir-worker"), body: await answer.json() };
    };
    const models = async () => (await asked(gateways[1], admin, "/v1/admin/models")).body.models;
    const late_at = async () => (await models()).find(({ name }) => name === "late")?.workers ?? [];
    assert.equal((await asked(gateways[0], one, "/v1/admin/models")).status, 403);
    assert.equal((await order(one, "/v1/admin/models", { name: "late", source: "sim:rate=60" })).status, 403);
    const [first] = await models();
    assert.equal(first.name, "sim");
    assert.equal(first.state, "ready");
    const names = workers.map(({ name }) => name);
    assert.deepEqual(first.workers.map(({ worker }) => worker).sort(), names.sort());

    const to = workers[1].name;
    const loaded = await order(admin, "/v1/admin/models", { name: "late", source: "sim:rate=60", on: to });
    assert.equal(loaded.status, 201, JSON.stringify(loaded.body));
    assert.equal(loaded.on, to);
    assert.equal(loaded.body.state, "ready");
    await until(async () => (await late_at()).length === 1, "its board says so");
    assert.equal((await late_at())[0].worker, to);
    const again = await order(admin, "/v1/admin/models", { name: "late", source: "sim:rate=60", on: to });
    assert.equal(again.status, 409);
    assert.equal(again.body.error.code, "already_there");
    assert.equal((await order(admin, "/v1/admin/models", { name: "x", colour: "red" })).status, 400);
    assert.equal((await order(admin, "/v1/admin/models/sim", { action: "unload" })).body.error.param, "on");

    const gone = await order(admin, "/v1/admin/models/late", { action: "unload" });
    assert.equal(gone.status, 200, JSON.stringify(gone.body));
    assert.equal(gone.on, to);
    await until(async () => (await late_at())[0]?.state === "absent", "its board says so");
    const back = await fleet(nats, ["load", "late", "--on", to]);
    assert.equal(back.code, 0, back.log);
    assert.equal(JSON.parse(back.text).state, "ready");
    const nowhere = await fleet(nats, ["unload", "late", "--on", "a".repeat(16)]);
    assert.notEqual(nowhere.code, 0);
    assert.match(nowhere.log, /no worker/);
    const unknown = await fleet(nats, ["wake", "nothing", "--on", to]);
    assert.notEqual(unknown.code, 0);
    assert.match(unknown.log, /nothing/);
    assert.equal((await order(admin, "/v1/admin/models/late", undefined, "DELETE")).status, 200);
    await until(async () => (await late_at()).length === 0, "its name is forgotten");
  });
});
