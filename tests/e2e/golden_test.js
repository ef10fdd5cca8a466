// Real models, those that ship with weir and those of TEST_DATA_DIR: greedy tokens through `weir generate`,
// the WebSocket and /v1/completions equal those of an independent float64 implementation, on the devices
// reference and cpu.
//
// reference.json has the margin between the two best logits of each step. The comparison ends at the first
// margin under 2e-3, because rounding may decide from there on.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { after, before, describe, test } from "node:test";
import WebSocket from "ws";

import { start_real } from "./real_server.js";

const here = dirname(fileURLToPath(import.meta.url));
const bundled = resolve(here, "../../models");
const data = join(process.env.TEST_DATA_DIR ?? resolve(here, "../../../shared/data"), "models");
const binary = process.env.WEIR_BIN;
const skip = binary ? false : "WEIR_BIN is not set";

const least_margin = 2e-3;
const folders = [bundled, data]
  .filter(existsSync)
  .flatMap((models) => readdirSync(models).map((name) => join(models, name)))
  .filter((folder) => existsSync(join(folder, "reference.json")));

// {prompt_ids, prompt?, ids, text?}[]. `ids` ends before the first step in which rounding may decide.
function cases(folder) {
  const reference = JSON.parse(readFileSync(join(folder, "reference.json"), "utf8"));
  const all = reference.generations.map((g) => {
    const first = g.margins.findIndex((m) => m < least_margin);
    const ids = g.greedy_ids.slice(0, first < 0 ? undefined : first);
    return { prompt: g.prompt, prompt_ids: g.prompt_ids, ids, text: first < 0 ? g.text : undefined };
  });
  const long = reference.long_greedy; // reference.json has only the smallest of its margins
  if (long && long.min_top1_top2_margin >= least_margin)
    all.push({ prompt_ids: long.prompt_ids, ids: long.greedy_ids });
  return all;
}

const exactly = { temperature: 0, ignore_eos: true, return_token_ids: true };
const wanted = (c) => ({ max_tokens: c.ids.length, ...exactly });

async function completion(url, model, prompt, c) {
  const answer = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, prompt, ...wanted(c) }),
  });
  const body = await answer.json();
  assert.equal(answer.status, 200, JSON.stringify(body));
  if (c.text !== undefined) assert.equal(body.choices[0].text, c.text);
  return body.choices[0].token_ids;
}

// Runs all cases at once over one socket, each on a lane of its own, so that they share batches.
function over_socket(url, model, all) {
  return new Promise((done, fail) => {
    const socket = new WebSocket(url.replace("http", "ws") + "/v1/stream", ["weir.v1"]);
    const got = all.map(() => []);
    let open = all.length;
    socket.on("error", fail);
    socket.on("message", (data) => {
      const m = JSON.parse(data);
      if (m.type === "session.created") {
        all.forEach((c, i) => {
          const input = c.prompt_ids;
          socket.send(JSON.stringify({ type: "response.create", id: `${i}`, model, input, ...wanted(c) }));
        });
      } else if (m.type === "response.delta") {
        assert.equal(m.seq - (m.n ?? 1), got[m.id].length, "no gap and no repeat");
        got[m.id].push(...m.token_ids);
      } else if (m.type === "response.done") {
        if (--open === 0) socket.close(1000), done(got);
      } else if (m.type === "error") {
        fail(new Error(m.message));
      }
    });
  });
}

// Loads a model and unloads it, again and again. Resolves with the number of times.
async function visits(url, source, over) {
  const order = async (method, path, body) => {
    const answer = await fetch(`${url}/v1/admin/models${path}`, {
      method,
      headers: { "content-type": "application/json" },
      body: body && JSON.stringify(body),
    });
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.text()}`);
  };
  for (let n = 0; ; ++n) {
    if (n > 0 && over()) return n;
    await order("POST", "", { name: "guest", source, kv_tokens: 1024 });
    await order("DELETE", "/guest");
  }
}

for (const device of ["reference", "cpu"]) {
  describe(`golden models on ${device}`, { skip }, () => {
    let server;
    // rill is a minute's work for the reference device, and its arithmetic is checked there in test_core
    const tested = folders.filter((f) => !(device === "reference" && basename(f) === "rill"));
    before(async () => {
      const served = tested.flatMap((f) => ["--model", `${basename(f)}=${f}`]);
      server = await start_real({ args: ["--device", device, "--kv-tokens", "8192", ...served] });
    });
    after(() => server?.stop());

    for (const folder of tested) {
      const name = basename(folder);
      test(name, async () => {
        const all = cases(folder).filter((c) => c.ids.length > 0);
        assert.ok(all.length > 0);
        for (const c of all) {
          assert.deepEqual(await completion(server.url, name, c.prompt_ids, c), c.ids);
          if (c.prompt === undefined) continue;
          assert.deepEqual(await completion(server.url, name, c.prompt, c), c.ids);
        }
        assert.deepEqual(
          await over_socket(server.url, name, all),
          all.map((c) => c.ids),
        );
        const c = all[0];
        const { stdout } = await promisify(execFile)(binary, [
          "generate", "--device", device, "--model", folder, "--json", "--ignore-eos",
          "--temperature", "0", "--max-tokens", `${c.ids.length}`, "--prompt-ids", c.prompt_ids.join(","),
        ]);
        assert.deepEqual(JSON.parse(stdout).token_ids, c.ids);
      });
    }

  });
}

// The smallest model comes and goes beside the others.
test("models at once, twice each, while another one comes and goes", { skip }, async () => {
  const smallest = folders.find((f) => basename(f).startsWith("stories260K"));
  const served = [...new Set([smallest, ...folders])].filter(Boolean).slice(0, 5);
  const named = served.flatMap((f) => ["--model", `${basename(f)}=${f}`]);
  const server = await start_real({ args: ["--device", "cpu", "--kv-tokens", "8192", ...named] });
  try {
    let over = false;
    const guests = visits(server.url, basename(served[0]), () => over);
    const answers = [...served, ...served].map(async (folder) => {
      const all = cases(folder).filter((c) => c.ids.length > 0);
      const got = await over_socket(server.url, basename(folder), all);
      assert.deepEqual(got, all.map((c) => c.ids), basename(folder));
    });
    await Promise.all(answers).finally(() => (over = true));
    assert.ok((await guests) > 0);
  } finally {
    await server.stop();
  }
});
