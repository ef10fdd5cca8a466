// openai_kit.js — what the tests of OpenAI's protocol share: servers that end with the file, their jobs.
import { after } from "node:test";

import { start_real } from "./real_server.js";

export const binary = process.env.WEIR_BIN;
export const skip = binary ? false : "WEIR_BIN is not set";

const servers = [];
after(() => Promise.all(servers.map((server) => server.stop())));

/** A server on the simulated device: `sim` is its speed, `more` are further arguments. */
export async function sim(sim = "rate=2000,prefill=1000000", ...more) {
  const server = await start_real({ args: ["--device", `sim:${sim}`, ...more] });
  servers.push(server);
  return server;
}

/** A server of the bundled model. */
export async function rill() {
  const server = await start_real({ args: [] });
  servers.push(server);
  return server;
}

export async function jobs_of(server, headers = {}) {
  return (await (await fetch(`${server.url}/v1/jobs`, { headers })).json()).jobs;
}

/** Resolves with the first truthy result of `look`, and fails after a minute. */
export async function until(look) {
  for (const limit = Date.now() + 60_000; Date.now() < limit; ) {
    const seen = await look();
    if (seen) return seen;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`waited for a minute in vain: ${look}`);
}

/** Resolves once all jobs but `kept` have ended by a cancel, with their last lines. */
export const all_cancelled = (server, kept = 0) =>
  until(async () => {
    const jobs = await jobs_of(server);
    const ended = jobs.filter((job) => job.state === "finished");
    return jobs.length > kept && ended.length === jobs.length - kept &&
      ended.every((job) => job.finish_reason === "cancel") && ended;
  });

/** Resolves once a job is in this state. */
export const some_job_is = (server, state) =>
  until(async () => (await jobs_of(server)).some((job) => job.state === state));

export const user = (content) => ({ role: "user", content });

/** The answer to a POST of JSON. */
export const post = (server, path, body, headers = {}) =>
  fetch(server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
