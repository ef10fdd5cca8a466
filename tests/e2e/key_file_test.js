// The file of keys of a running server: read again on SIGHUP and when it changes.
import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { WebSocket } from "ws";
import { start_real } from "./real_server.js";

const patience = 30000; // a loaded machine's; what the server itself takes is below a second

async function until(what, holds) {
  for (const end = Date.now() + patience; !(await holds()); ) {
    assert.ok(Date.now() < end, `waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A server on this file of keys, and what its tests ask. */
async function serve(t, text) {
  const folder = mkdtempSync(join(tmpdir(), "weir-key-file-"));
  const file = join(folder, "keys");
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(file, text);
  const server = await start_real({ args: ["--device", "sim", "--api-key-file", file] });
  t.after(() => server.stop());
  const ask = (key, path, options = {}) =>
    fetch(server.url + path, { ...options, headers: { authorization: `Bearer ${key}`, ...options.headers } });
  return {
    ...server,
    file,
    folder,
    ask,
    status: async (key) => (await ask(key, "/v1/models")).status,
    replace(text) {
      writeFileSync(join(folder, "new"), text);
      renameSync(join(folder, "new"), file);
    },
  };
}

/** A socket with a response under way: how it was closed, and the numbers of its tokens so far. */
async function stream(t, server, key) {
  const socket = new WebSocket(server.url.replace("http", "ws") + "/v1/stream", "weir.v1", {
    headers: { authorization: `Bearer ${key}` },
  });
  t.after(() => socket.terminate());
  const s = { seqs: [], closed: undefined };
  socket.on("close", (code) => (s.closed = code));
  socket.on("error", () => {});
  socket.on("message", (data) => {
    const frame = JSON.parse(data);
    if (frame.type === "response.delta") s.seqs.push([frame.seq, frame.n ?? 1]);
  });
  await new Promise((resolve) => socket.once("message", resolve));
  const asked = { id: "a", input: "x", max_tokens: 100000, on_disconnect: "cancel" };
  socket.send(JSON.stringify({ type: "response.create", ...asked }));
  await until("a first token", () => s.seqs.length > 0);
  return s;
}

function no_gap(seqs) {
  let last = 0;
  for (const [seq, n] of seqs) {
    assert.equal(seq, last + n);
    last = seq;
  }
}

for (const how of ["SIGHUP", "a change of the file"])
  test(`${how} lets the new keys in and the removed ones out`, async (t) => {
    const server = await serve(t, "sesame-1\nsesame-2 name=two\nroot admin\n");
    const out = await stream(t, server, "sesame-1");
    const stays = await stream(t, server, "sesame-2");
    const next = "sesame-2 name=two jobs=9\nroot admin\nsesame-3\n";
    if (how === "SIGHUP") {
      writeFileSync(server.file, next);
      server.signal("SIGHUP");
    } else {
      server.replace(next);
    }
    await until("the first key is out", () => out.closed !== undefined);
    assert.equal(out.closed, 4401);
    await until("the third key is in", async () => (await server.status("sesame-3")) === 200);
    assert.equal(await server.status("sesame-1"), 401);
    const seen = stays.seqs.length;
    await until("the second key's tokens go on", () => stays.seqs.length > seen + 20);
    assert.equal(stays.closed, undefined);
    no_gap(stays.seqs);
    await until("the first key's job has ended", async () => {
      const { jobs } = await (await server.ask("root", "/v1/jobs")).json();
      return jobs.filter(({ state }) => state !== "finished").length === 1;
    });
    const { keys } = await (await server.ask("root", "/v1/stats")).json();
    assert.equal(keys.two.jobs, 1);
    assert.match(server.log(), /3 keys; 1 new, 1 removed, 1 changed/);
    assert.ok(!/sesame/.test(server.log()), "no key is in the log");
  });

test("a file with a fault changes nothing, and the log says which line and why, once", async (t) => {
  const server = await serve(t, "sesame-1\n");
  server.replace("sesame-2\nsesame-3 jobs=none\n");
  await until("the log tells", () => /line 2: jobs has to be a number/.test(server.log()));
  assert.equal(await server.status("sesame-1"), 200);
  assert.equal(await server.status("sesame-2"), 401);
  rmSync(server.file);
  await until("the log tells", () => /keys: cannot be read/.test(server.log()));
  assert.equal(await server.status("sesame-1"), 200);
  server.replace("sesame-2\n");
  await until("the second key is in", async () => (await server.status("sesame-2")) === 200);
  assert.equal(await server.status("sesame-1"), 401);
  assert.equal(server.log().match(/jobs has to be/g).length, 1);
  assert.equal(server.log().match(/cannot be read/g).length, 1);
});

test("SIGHUP while a key floods moves nobody else's tokens out of order", async (t) => {
  const server = await serve(t, "sesame-4\nsesame-2\n");
  const stays = await stream(t, server, "sesame-2");
  const times_read = () => server.log().match(/ keys; /g)?.length ?? 0;
  for (let round = 1; round <= 10; ++round) {
    const before = times_read();
    writeFileSync(server.file, round % 2 ? "sesame-2\n" : "sesame-2\nsesame-4\n");
    server.signal("SIGHUP");
    await until("the file is read", () => times_read() > before);
    const body = JSON.stringify({ prompt: "x", max_tokens: 5 });
    const post = { method: "POST", body, headers: { "content-type": "application/json" } };
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => server.ask("sesame-4", "/v1/completions", post)),
    );
    for (const { status } of answers) assert.equal(status, round % 2 ? 401 : 200);
  }
  assert.equal(stays.closed, undefined);
  no_gap(stays.seqs);
});
