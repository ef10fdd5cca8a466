// A stream of events through nginx with its defaults: it reaches its reader token by token, comments keep it
// alive, and a reader that leaves cancels the job behind the proxy.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";

import OpenAI from "openai";

import { events_of } from "./event_source.js";
import { all_cancelled, binary, jobs_of, post, sim, until, user } from "./openai_kit.js";

const nginx = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"].find((path) => existsSync(path));
const skip = !binary ? "WEIR_BIN is not set" : !nginx ? "nginx is not installed" : false;

const folder = mkdtempSync(join(tmpdir(), "weir-nginx-"));
const proxies = [];
after(async () => {
  await Promise.all(proxies.map(({ child, ended }) => (child.kill("SIGTERM"), ended)));
  rmSync(folder, { recursive: true });
});

const free_port = () =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });

const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

// What nginx demands to run as any user; all that concerns proxying is its default.
const config = (port, to) => `
daemon off;
master_process off;
pid ${folder}/${port}.pid;
events {}
http {
  access_log off;
  ${temporary.map((part) => `${part}_temp_path ${folder}/${port}.${part};`).join("\n  ")}
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass ${to}; }
  }
}`;

/** nginx before a server. */
async function proxy_of(server) {
  const port = await free_port();
  const file = join(folder, `${port}.conf`);
  writeFileSync(file, config(port, server.url));
  const args = ["-e", "stderr", "-p", folder, "-c", file];
  const child = spawn(nginx, args, { stdio: ["ignore", "ignore", "pipe"] });
  let log = "", over = false;
  child.stderr.on("data", (text) => (log += text));
  const ended = new Promise((resolve) => child.once("close", () => resolve((over = true))));
  proxies.push({ child, ended });
  const url = `http://127.0.0.1:${port}`;
  await until(async () => {
    assert.ok(!over, `nginx has ended: ${log}`);
    return fetch(`${url}/health/live`).then((answer) => answer.ok, () => false);
  });
  return { url };
}

const endless = { model: "sim", messages: [user("hi")], max_tokens: 100_000 };

describe("openai: through nginx", { skip }, () => {
  test("each token comes when it is sampled, and a reader that leaves cancels the job", async () => {
    const server = await sim("rate=4,prefill=1000000");
    const proxy = await proxy_of(server);
    const leave = new AbortController();
    const answer = await fetch(`${proxy.url}/v1/chat/completions`, {
      method: "POST", headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...endless, stream: true }), signal: leave.signal,
    });
    assert.equal(answer.headers.get("content-type"), "text/event-stream");
    assert.equal(answer.headers.get("cache-control"), "no-store");
    let texts = 0, job;
    for await (const event of events_of(answer.body)) {
      const chunk = JSON.parse(event.data);
      if (!chunk.choices[0].delta.content || ++texts < 3) continue;
      job = await (await fetch(`${server.url}/v1/jobs/${chunk.id}`)).json();  // a break closes the stream
      break;
    }
    // A proxy that buffers would hold back some 4 KiB, more than a dozen tokens.
    assert.ok(job.tokens >= 3 && job.tokens < 8, `${job.tokens} tokens were made for the first three`);
    leave.abort();
    await all_cancelled(server);
  });

  test("comments come while the job has nothing to say", async () => {
    const server = await sim("rate=4,prefill=0.001", "--sse-keep-alive-ms", "100");
    const proxy = await proxy_of(server);
    const leave = new AbortController();
    const answer = await fetch(`${proxy.url}/v1/completions`, {
      method: "POST", headers: { "content-type": "application/json" },
      body: JSON.stringify({ prompt: "hi", stream: true }), signal: leave.signal,
    });
    let comments = 0;
    for await (const { comment } of events_of(answer.body)) {
      assert.equal(comment, comments === 0 ? "begun" : "keep-alive");
      if (++comments === 3) break;
    }
    leave.abort();
    await all_cancelled(server);
  });

  test("a whole stream, its end and its usage, and whole answers, as without a proxy", async () => {
    const server = await sim();
    const proxy = await proxy_of(server);
    const with_usage = { stream: true, stream_options: { include_usage: true } };
    const asked = { prompt: "x", max_tokens: 500, seed: 3, ...with_usage };
    const read = async (from) => {
      const data = [];
      const answer = await post(from, "/v1/completions", asked);
      for await (const event of events_of(answer.body)) if (event.data) data.push(event.data);
      const last = data.pop();
      const chunks = data.map((text) => JSON.parse(text));
      const text = chunks.map((chunk) => chunk.choices[0]?.text ?? "").join("");
      return { last, text, usage: chunks.at(-1).usage };
    };
    const direct = await read(server), proxied = await read(proxy);
    assert.deepEqual(proxied, { ...direct, usage: proxied.usage });
    assert.equal(proxied.last, "[DONE]");
    assert.equal(proxied.usage.completion_tokens, 500);
    const client = new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: "none", maxRetries: 0 });
    const whole = await client.completions.create({ model: "sim", prompt: "x", max_tokens: 500, seed: 3 });
    assert.equal(whole.choices[0].text, direct.text);
    await assert.rejects(client.completions.create({ model: "other", prompt: "x" }), OpenAI.NotFoundError);
    assert.ok((await jobs_of(server)).every((job) => job.state === "finished"));
  });
});
