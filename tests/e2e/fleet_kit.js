// fleet_kit.js — a fleet of real processes on this machine: a nats-server, workers and gateways, each of
// which can be killed, stopped for a while and started again.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { events_of } from "./event_source.js";

export const binary = process.env.WEIR_BIN;
const search = { env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` } };
const has_server = spawnSync("nats-server", ["--version"], search).status === 0;
const has_client =
  binary && !spawnSync(binary, ["fleet", "--join", "nats://127.0.0.1:1"]).stderr.includes("has no NATS");
export const skip = !binary
  ? "WEIR_BIN is not set"
  : !has_server
    ? "nats-server is not installed"
    : has_client
      ? false
      : "this build has no NATS";

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until `so` is true; fails after a minute. */
export async function until(so, what = "it is so") {
  for (const end = Date.now() + 60_000; !(await so()); await pause(10))
    if (Date.now() > end) throw new Error(`not within a minute: ${what}`);
}

/** A weir process, from its line «weir … ready» on. */
export async function start_weir(words) {
  const child = spawn(binary, words, { stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise((resolve) => child.once("close", (code, signal) => resolve(signal ?? code)));
  let log = "";
  child.stderr.on("data", (text) => (log += text));
  const ready = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (/^weir (worker )?ready /.test(line)) resolve(line);
    });
    child.once("error", reject);
    ended.then((how) => reject(new Error(`weir ${words[0]} ended with ${how} before it was ready:\n${log}`)));
  });
  return {
    ready,
    url: /http:\/\/\S+/.exec(ready)?.[0],
    name: /^weir worker ready (\S+)/.exec(ready)?.[1],
    ended,
    pid: child.pid,
    log: () => log,
    signal: (name) => child.kill(name),
    kill: async () => {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** A nats-server on a port that is free, and on the same one when it is started again. `config`: the text of
 * a configuration file beside that. */
export class Nats {
  #config;
  constructor(config = "") {
    this.#config = config;
  }
  #folder = mkdtempSync(join(tmpdir(), "weir-fleet-"));
  #child;
  #ended;
  port = -1;
  get url() {
    return `nats://127.0.0.1:${this.port}`;
  }
  async start() {
    const words = ["-a", "127.0.0.1", "-p", `${this.port}`, "--ports_file_dir", this.#folder];
    words.push("-l", join(this.#folder, "log"));
    if (this.#config) {
      writeFileSync(join(this.#folder, "nats.conf"), this.#config);
      words.push("-c", join(this.#folder, "nats.conf"));
    }
    this.#child = spawn("nats-server", words, { ...search, stdio: "ignore" });
    this.#ended = new Promise((resolve) => this.#child.once("close", resolve));
    const file = join(this.#folder, `nats-server_${this.#child.pid}.ports`);
    await until(() => {
      try {
        this.port = Number(new URL(JSON.parse(readFileSync(file)).nats[0]).port);
        return true;
      } catch {
        return false;
      }
    }, "nats-server listens");
    return this;
  }
  async kill() {
    this.#child?.kill("SIGKILL");
    await this.#ended;
  }
  async remove() {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Runs `weir fleet` with these words: what it prints, what it logs and how it ends. */
export async function fleet(nats, words) {
  const child = spawn(binary, ["fleet", ...words, "--join", nats.url], { stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise((resolve) => child.once("close", resolve));
  const said = { text: "", log: "" };
  child.stdout.on("data", (piece) => (said.text += piece));
  child.stderr.on("data", (piece) => (said.log += piece));
  return { code: await ended, ...said };
}

/** What the workers say of themselves, as `weir fleet --json` prints it. */
export async function boards(nats) {
  const { text } = await fleet(nats, ["--json"]);
  return text ? JSON.parse(text).workers : [];
}

/** A streamed completion: its text so far, and `done`, which gives the text and how it ended. */
export function completion(url, body) {
  const stream = { text: "", over: false };
  stream.done = (async () => {
    const answer = await fetch(`${url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ stream: true, stream_options: { include_usage: true }, ...body }),
    });
    if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
    let reason;
    let usage;
    for await (const { data } of events_of(answer.body)) {
      if (data === undefined || data === "[DONE]") continue;
      const said = JSON.parse(data);
      if (said.error) throw new Error(JSON.stringify(said.error));
      stream.text += said.choices[0]?.text ?? "";
      reason = said.choices[0]?.finish_reason ?? reason;
      usage = said.usage ?? usage;
    }
    stream.over = true;
    return { text: stream.text, reason, tokens: usage?.completion_tokens };
  })();
  stream.done.catch(() => {});
  return stream;
}
