// `weir models` against a real server, and against one that says odd things.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createServer } from "node:http";
import { describe, test } from "node:test";

import { start_real } from "./real_server.js";

const binary = process.env.WEIR_BIN;

/** Runs `weir models` and resolves to what it said. */
function models(url, ...args) {
  return new Promise((resolve) => {
    execFile(binary, ["models", ...args, "--url", url], { timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, stdout, stderr }));
  });
}

/** A server that gives every question the same answer. */
async function parrot(status, body) {
  const server = createServer((request, answer) => {
    answer.writeHead(status, { "Content-Type": "application/json" });
    answer.end(body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() };
}

describe("weir models", () => {
  test("lists, loads, swaps and unloads", async () => {
    const server = await start_real({ args: ["--device", "sim:rate=5000"] });
    try {
      assert.match((await models(server.url, "list")).stdout, /^sim +ready +sim /);
      const made = await models(server.url, "load", "second", "--source", "sim:rate=100");
      assert.equal(made.code, 0, made.stderr);
      assert.match(made.stdout, /^second +ready /);
      const swapped = await models(`${server.url}/v1`, "swap", "third", "--source", "sim", "--out", "second");
      assert.match(swapped.stdout, /^third +ready /, swapped.stderr);
      const asleep = await models(server.url, "sleep", "third", "--level", "disk", "--drain-s", "1");
      assert.match(asleep.stdout, /^third +asleep disk +- /);
      const deeper = await models(server.url, "sleep", "third", "--level", "host");
      assert.equal(deeper.code, 2);
      assert.match(deeper.stderr, /third sleeps already, at level disk/);
      assert.match((await models(server.url, "wake", "third")).stdout, /^third +ready +sim /);
      const gone = await models(server.url, "unload", "third", "--drain-s", "1");
      assert.match(gone.stdout, /^third +absent /, gone.stderr);
      const list = JSON.parse((await models(server.url, "list", "--json")).stdout);
      assert.deepEqual(list.models.map(({ name, state }) => [name, state]),
        [["sim", "ready"], ["second", "absent"], ["third", "absent"]]);
    } finally {
      await server.stop();
    }
  });

  test("says what the server refuses, and ends with a code", async () => {
    const server = await start_real({ args: ["--device", "sim", "--no-admin"] });
    try {
      const closed = await models(server.url, "list");
      assert.equal(closed.code, 2);
      assert.match(closed.stderr, /nothing at \/v1\/admin\/models/);
    } finally {
      await server.stop();
    }
    const nobody = await models("http://127.0.0.1:1", "list");
    assert.equal(nobody.code, 1);
    assert.match(nobody.stderr, /nobody answers/);
    assert.equal((await models("ws://127.0.0.1:1", "list")).code, 2);
  });

  test("a model that does not fit is exit code 3", async () => {
    const body = JSON.stringify({ error: { code: "does_not_fit", message: "12 G short" } });
    const server = await parrot(422, body);
    const no = await models(server.url, "load", "x", "--source", "sim");
    server.stop();
    assert.equal(no.code, 3);
    assert.match(no.stderr, /12 G short/);
  });

  test("control characters of a server are shown as text", async () => {
    const odd = { name: "\u001b[31mred", state: "\u0007", device: ["\u001b]0;x"] };
    const body = JSON.stringify({ models: [odd] });
    const server = await parrot(200, body);
    for (const args of [["list"], ["load", "x", "--source", "sim"]]) {
      const { stdout, stderr } = await models(server.url, ...args);
      assert.doesNotMatch(stdout + stderr, /[\u0000-\u0008\u000b-\u001f]/);
    }
    server.stop();
    const loud = await parrot(500, JSON.stringify({ error: { message: "\u001b[2Jgone" } }));
    const { code, stderr } = await models(loud.url, "list");
    loud.stop();
    assert.equal(code, 1);
    assert.match(stderr, /\\u001b\[2Jgone/);
  });

  test("an answer that is no JSON, or no object, is survived", async () => {
    for (const body of ["", "nonsense", "[]", "{\"models\":7}", "{\"models\":[7,null,{}]}"]) {
      const server = await parrot(200, body);
      const { code } = await models(server.url, "list");
      server.stop();
      assert.equal(code, 0, body);
    }
  });
});
